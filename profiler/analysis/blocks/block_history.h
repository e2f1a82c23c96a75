#pragma once

#include "profiler/analysis/step/origin.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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
    /// Of the ranks right after a change at `time_ns`, the rank with the most live bytes: many
    /// changes may have the same time. Without such a change, as first_change_after.
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

/// The addresses that a trace ever uses, without the holes between them, so that they fit a
/// picture:
///
///     address   |segment|  hole  |segment|      a hole is what no segment and no block covers
///     offset    |segment|segment|
///
/// O(n log n) for n blocks and segments.
class AddressMap {
public:
    struct Range {
        int64_t address = 0;
        int64_t size_bytes = 0;
        int64_t offset_bytes = 0;  // of its first byte in the picture
    };

    AddressMap(const Trace& trace, const BlockHistory& history);

    const std::vector<Range>& ranges() const { return ranges_; }  // by address
    int64_t total_bytes() const { return total_bytes_; }
    /// An address that no range holds gets the offset of the next one.
    int64_t offset_of(int64_t address) const;

private:
    std::vector<Range> ranges_;
    int64_t total_bytes_ = 0;
};

// What the blocks of a trace have in common: their layer, their siblings in other layers, and the
// block of another trace that stands for the same tensor.

/// Blocks by a key, for finding the n-th one of a key in a step.
class BlockIndex {
public:
    /// `keys[i]` and `steps[i]` are those of block i. Steps do not decrease: blocks are in the
    /// order of allocation. Blocks with key 0 are left out.
    BlockIndex(std::span<const uint64_t> keys, std::span<const uint32_t> steps);
    BlockIndex() = default;  // of no blocks

    /// How many blocks of the key come before this one in its step.
    std::size_t number_of(uint64_t key, uint32_t step, std::size_t block) const;
    /// The n-th block of the key in the step, or in the last step with that key if that is earlier.
    /// BlockHistory::kNone if there is none.
    uint32_t find(uint64_t key, uint32_t step, std::size_t number) const;

private:
    struct Entry {
        uint32_t step = 0;
        uint32_t block = 0;
        friend auto operator<=>(const Entry&, const Entry&) = default;
    };
    struct Place {
        std::size_t first = 0;  // in entries_
        std::size_t count = 0;
    };
    using Range = std::span<const Entry>;
    Range with_key(uint64_t key) const;
    static Range in_step(Range range, uint32_t step);

    std::vector<Entry> entries_;  // those of a key beside each other, in the order of blocks
    std::unordered_map<uint64_t, Place> places_;  // by key
};

/// Built once per trace in O(blocks), on first use: see StepIndex. Keys stand for the
/// names of a block; they are hashes of text, so they can be compared between traces.
///
///     own key      tensor, module path, phase    "query", "encoder.layer.3.attention.self"
///     family key   the same without the layer    "query", "encoder.layer.*.attention.self"
///     layer key    tensor, layer, phase, size    another recipe may make it in another module
///
/// In a PyTorch snapshot, the call site and the size of a block take the place of the names. A
/// block that has neither has key 0, no siblings and no counterpart.
class BlockLabels {
public:
    /// `storage_names` is names_of_storages(trace).
    BlockLabels(const Trace& trace, const BlockHistory& history,
                const std::vector<StringId>& storage_names, const CallSites& sites);

    int32_t layer(std::size_t block) const { return layer_[block]; }  // -1: in no layer
    uint64_t family(std::size_t block) const { return family_[block]; }

    /// The counterpart of `block` of `labels`: same own key, same n-th allocation in its step; else
    /// the same by layer key; else BlockHistory::kNone. If this trace has fewer steps, its last
    /// step stands for the rest.
    uint32_t counterpart(const BlockLabels& labels, std::size_t block) const;

private:
    void add_keys(const Trace& trace, const BlockHistory& history,
                  const std::vector<StringId>& storage_names, const CallSites& sites);
    void add_steps(const Trace& trace, const BlockHistory& history);

    std::vector<int32_t> layer_;
    std::vector<uint64_t> own_;
    std::vector<uint64_t> family_;
    std::vector<uint64_t> in_layer_;
    std::vector<uint32_t> step_;  // number of steps that began before; 0: before the first
    BlockIndex by_own_;
    BlockIndex by_layer_;
};

struct BlockPair {
    Id<Allocation> first;
    Id<Allocation> second;
};

/// Blocks that two traces have in common on their first devices, in the order in which both
/// allocated them: the longest such list among the pairs of equal keys.
///
///     first    A B C   A D        the key is the size and the call site without its line, which
///              | |     | |        an edit moves, and without its folder, which a copy changes;
///              | |     | |        without call stacks, the name of the op
///     second   A B   E A D
///
/// The i-th block of a key is paired with the i-th. O(n log n).
std::vector<BlockPair> match_blocks(const Trace& first, const Trace& second);

}  // namespace profiler
