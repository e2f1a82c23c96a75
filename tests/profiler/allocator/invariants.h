#pragma once

#include "profiler/allocator/simulator.h"
#include "profiler/allocator/sizes.h"

#include <gtest/gtest.h>

namespace tests {

/// The invariants of every allocator state: blocks fill their segments, their sizes are multiples
/// of 512 bytes, no two free blocks touch, and the counters are the sums over the blocks.
inline void expect_sound(const profiler::Simulator& simulator) {
    using namespace profiler;
    MemoryUse sums;
    for (const RecordedSegment& segment : simulator.segments()) {
        int64_t end = segment.address;
        bool after_free = false;
        for (const RecordedBlock& block : segment.blocks) {
            ASSERT_EQ(block.address, end);
            ASSERT_GT(block.size_bytes, 0);
            ASSERT_EQ(block.size_bytes % kMinBlockBytes, 0);
            const bool is_free = block.state == BlockState::kInactive;
            ASSERT_FALSE(is_free && after_free) << "free neighbours at " << end;
            after_free = is_free;
            end += block.size_bytes;
            if (is_free && !segment.is_expandable && segment.blocks.size() > 1) {
                sums.inactive_split_bytes += block.size_bytes;
            }
            if (is_free) continue;
            ASSERT_LE(block.requested_bytes, block.size_bytes);
            sums.active_bytes += block.size_bytes;
            sums.requested_bytes += block.requested_bytes;
            if (block.state == BlockState::kAllocated) sums.allocated_bytes += block.size_bytes;
        }
        ASSERT_EQ(end, segment.address + segment.size_bytes);
        sums.reserved_bytes += segment.size_bytes;
    }
    EXPECT_EQ(simulator.use().allocated_bytes, sums.allocated_bytes);
    EXPECT_EQ(simulator.use().active_bytes, sums.active_bytes);
    EXPECT_EQ(simulator.use().requested_bytes, sums.requested_bytes);
    EXPECT_EQ(simulator.use().reserved_bytes, sums.reserved_bytes);
    EXPECT_EQ(simulator.use().inactive_split_bytes, sums.inactive_split_bytes);
}

}  // namespace tests
