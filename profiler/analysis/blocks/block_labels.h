#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/analysis/step/call_site.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

/// What the blocks of a trace have in common: their layer, their siblings in other layers, and the
/// block of another trace that stands for the same tensor.
namespace profiler {

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

}  // namespace profiler
