#include "profiler/allocator/recorded_segments.h"

#include "profiler/formats/snapshot/recorded_trace.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

constexpr Id<Device> kDevice(0);

TEST(SegmentsAt, TheEndAreThoseOfTheSnapshot) {
    for (const bool is_expandable : {false, true}) {
        tests::Recorder recorder({.settings = {.expandable_segments = is_expandable}});
        run_random(recorder, {.num_steps = 500});
        const AllocatorRecording recording = recorder.recording();
        const Trace trace = trace_of({recording}).value();
        const SegmentsOfTrace end = segments_at(trace, kDevice, INT64_MAX);
        EXPECT_EQ(end.segments, recording.segments) << is_expandable;
        std::size_t num_used = 0;
        for (const RecordedSegment& segment : end.segments) {
            for (const RecordedBlock& block : segment.blocks) {
                if (block.state == BlockState::kInactive) continue;
                EXPECT_EQ(trace.allocations[end.rows[num_used++]].address, block.address);
            }
        }
        EXPECT_EQ(end.rows.size(), num_used);
    }
}

TEST(SegmentsAt, AnEventAreThoseBeforeIt) {
    const Trace trace = trace_of({tests::out_of_memory_recording()}).value();
    const int64_t second_segment = 2;
    EXPECT_TRUE(segments_at(trace, kDevice, 0).segments.empty());
    const SegmentsOfTrace one = segments_at(trace, kDevice, second_segment);
    ASSERT_EQ(one.segments.size(), 1u);
    EXPECT_EQ(one.segments[0].blocks[0].state, BlockState::kAllocated);
    EXPECT_EQ(segments_at(trace, kDevice, second_segment + 1).segments.size(), 2u);
    EXPECT_TRUE(segments_at(trace, Id<Device>(7), INT64_MAX).segments.empty());
}

TEST(CachedPieces, AreTheFreeBlocksOfAllSegments) {
    const Trace trace = trace_of({tests::out_of_memory_recording()}).value();
    const Failure failure = trace.failures[fatal_failure(trace)];
    EXPECT_EQ(cached_pieces_at(trace, kDevice, failure.event),
              (CachedPieces{.num = 2, .total_bytes = 20 * kMiB, .largest_bytes = 10 * kMiB}));
    const int64_t after_both_frees = 8;
    EXPECT_EQ(cached_pieces_at(trace, kDevice, after_both_frees),
              (CachedPieces{.num = 2, .total_bytes = 80 * kMiB, .largest_bytes = 40 * kMiB}));
    EXPECT_EQ(cached_pieces({}), CachedPieces{});
}

}  // namespace
}  // namespace profiler
