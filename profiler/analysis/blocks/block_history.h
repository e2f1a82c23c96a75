#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

/// The blocks of a trace from their allocation to their free, as pictures of single blocks need
/// them.
namespace profiler {

/// Every block of the profiled device, in the order of allocation, and every change of memory in
/// the allocator's order. The number of a change is its rank; ranks order blocks exactly, also
/// where times tie.
///
///     block   0  1     2        alloc_rank  0, 1, 3
///     change  +  +  -  +  -     free_rank   2, 4, none
///     rank    0  1  2  3  4
///
/// Built once per trace in O(events). It copies what it needs, so the trace need not outlive it.
/// Memory: 44 bytes per block that is freed. Blocks that a damaged file frees before it allocates
/// them are left out.
class BlockHistory {
public:
    static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

    struct Change {
        uint32_t block = 0;
        bool is_free = false;
    };

    explicit BlockHistory(const Trace& trace);

    std::size_t size() const { return alloc_rank_.size(); }  // number of blocks
    std::size_t change_count() const { return time_ns_.size(); }

    Id<Allocation> allocation(std::size_t block) const {
        return Id<Allocation>(static_cast<std::size_t>(allocation_[block]));
    }
    /// As requested, not as rounded by the allocator.
    int64_t size_bytes(std::size_t block) const { return size_bytes_[block]; }
    uint32_t alloc_rank(std::size_t block) const { return alloc_rank_[block]; }
    uint32_t free_rank(std::size_t block) const { return free_rank_[block]; }  // kNone: never
    int64_t alloc_ns(std::size_t block) const { return time_ns_[alloc_rank_[block]]; }
    /// The largest number if it is never freed.
    int64_t free_ns(std::size_t block) const {
        const uint32_t rank = free_rank_[block];
        return rank == kNone ? std::numeric_limits<int64_t>::max() : time_ns_[rank];
    }

    Change change(std::size_t rank) const { return {code_[rank] >> 1, (code_[rank] & 1) != 0}; }
    /// Times never decrease: a time that runs backwards is raised to its predecessor.
    int64_t time_ns(std::size_t rank) const { return time_ns_[rank]; }
    /// The rank of the first change at `time_ns` or later.
    uint32_t first_change_at(int64_t time_ns) const;
    /// The rank of the first change after `time_ns`.
    uint32_t first_change_after(int64_t time_ns) const;
    /// The rank after which most is live, of those that follow a change at `time_ns`: many changes
    /// may have the same time. Without such a change, as first_change_after.
    uint32_t highest_rank_at(int64_t time_ns) const;
    /// Whether the block is live after the changes before `rank`.
    bool is_live(std::size_t block, uint32_t rank) const {
        return alloc_rank_[block] < rank && free_rank_[block] >= rank;
    }
    /// Number of blocks that are allocated before the change `rank`, freed or not.
    std::size_t allocated_before(uint32_t rank) const;

    /// The block of a row of the trace; kNone if there is none.
    uint32_t block_of(Id<Allocation> allocation) const {
        return allocation.valid() && allocation.index() < block_.size() ? block_[allocation.index()]
                                                                        : kNone;
    }

private:
    std::vector<uint32_t> code_;    // of each change: 2 * block + (1 for a free)
    std::vector<int64_t> time_ns_;  // of each change
    std::vector<uint32_t> alloc_rank_;
    std::vector<uint32_t> free_rank_;
    std::vector<uint32_t> allocation_;
    std::vector<int64_t> size_bytes_;
    std::vector<uint32_t> block_;  // by row of allocation
};

}  // namespace profiler
