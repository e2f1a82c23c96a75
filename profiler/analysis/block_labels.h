#pragma once

#include "profiler/analysis/block_history.h"
#include "profiler/analysis/call_site.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <span>
#include <vector>

/// What the blocks of a trace have in common: their layer, their siblings in other layers, and the
/// block of another trace that stands for the same tensor.
namespace profiler {

/// Built once per trace in O(blocks log blocks), on first use: see BlockDetails. Two keys stand for
/// the names of a block; both are hashes of text, so they can be compared between traces.
///
///     own key      tensor, module path, phase    "query", "encoder.layer.3.attention.self"
///     family key   the same without the layer    "query", "encoder.layer.*.attention.self"
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

    /// The block that stands for `block` of `labels`: the one with the same own key that was
    /// allocated as the n-th of that key in its step, as was `block`. Where this trace has fewer
    /// steps, its last one stands for the rest. BlockHistory::kNone if there is none.
    uint32_t counterpart(const BlockLabels& labels, std::size_t block) const;

private:
    struct Keyed {
        uint64_t key = 0;
        uint32_t step = 0;
        uint32_t block = 0;
        friend auto operator<=>(const Keyed&, const Keyed&) = default;
    };
    using Range = std::span<const Keyed>;

    void add_keys(const Trace& trace, const BlockHistory& history,
                  const std::vector<StringId>& storage_names, const CallSites& sites);
    void add_steps(const Trace& trace, const BlockHistory& history);
    Range with_key(uint64_t key) const;
    Keyed keyed(std::size_t block) const {
        return {own_[block], step_[block], static_cast<uint32_t>(block)};
    }

    std::vector<int32_t> layer_;
    std::vector<uint64_t> own_;
    std::vector<uint64_t> family_;
    std::vector<uint32_t> step_;  // number of steps that began before; 0: before the first
    std::vector<Keyed> by_key_;   // sorted; without blocks of key 0
};

}  // namespace profiler
