#include "profiler/formats/snapshot/same_blocks.h"

#include "profiler/formats/parts/memory_actions.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace profiler {
namespace {

// So many blocks whose address was used once tell the clocks apart.
constexpr std::size_t kLeastCertain = 8;
// A block that both files hold has times that differ by this much at most, once the clocks agree.
constexpr int64_t kSameMomentNs = 2'000'000;
// One clock read twice differs by far less. More means that the files are of two runs.
constexpr int64_t kMostClockShiftNs = 1'000'000'000;

}  // namespace

RunningOps::RunningOps(const Trace& trace) {
    std::map<int32_t, std::vector<kineto::SpanTree::Node>> nodes;  // by thread
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        nodes[op.thread.value].push_back({op.start_ns, op.end_ns, static_cast<uint32_t>(i), -1});
    }
    for (auto& [thread, spans] : nodes) threads_.emplace_back(std::move(spans));
}

Id<Op> RunningOps::at(int64_t time_ns) const {
    Id<Op> latest;
    int64_t latest_ns = INT64_MIN;
    for (const kineto::SpanTree& thread : threads_) {
        const int32_t node = thread.innermost(time_ns);
        if (node < 0 || thread.at(node).start_ns <= latest_ns) continue;
        latest_ns = thread.at(node).start_ns;
        latest = Id<Op>(thread.at(node).item);
    }
    return latest;
}

StartEvents::StartEvents(const Trace& trace) {
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        counts_.push_back(num_start_events(trace, Id<Device>(i)));
    }
}

SameBlocks::SameBlocks(const Trace& memory, const Trace& profile) : profile_(profile) {
    const int64_t profile_start = num_start_events(profile);
    for (std::size_t i = 0; i < profile.allocations.size(); ++i) {
        const Allocation block = profile.allocations[Id<Allocation>(i)];
        if (block.address <= 0 || block.alloc_event < profile_start) continue;
        by_address_[block.address].push_back(Id<Allocation>(i));
    }
    const StartEvents memory_start(memory);
    std::unordered_map<int64_t, int> uses;  // by address
    for (const int64_t address : memory.allocations.column<&Allocation::address>()) ++uses[address];
    std::vector<int64_t> all, certain;
    for (std::size_t i = 0; i < memory.allocations.size(); ++i) {
        const Allocation block = memory.allocations[Id<Allocation>(i)];
        if (block.alloc_event < memory_start.of(block.device)) continue;
        const Id<Allocation> nearest = nearest_to(block);
        if (!nearest.valid()) continue;
        all.push_back(time_of(nearest) - block.alloc_ns);
        if (uses[block.address] == 1 && by_address_.at(block.address).size() == 1) {
            certain.push_back(all.back());
        }
    }
    // Where an address is used again and again, the nearest use may be another one.
    std::vector<int64_t>& differences = certain.size() >= kLeastCertain ? certain : all;
    if (differences.empty()) return;
    const auto middle = differences.begin() + std::ssize(differences) / 2;
    std::nth_element(differences.begin(), middle, differences.end());
    clock_shift_ns_ = std::abs(*middle) <= kMostClockShiftNs ? *middle : 0;
}

Id<Allocation> SameBlocks::of(const Allocation& block) const {
    const Id<Allocation> nearest = nearest_to(block);
    if (!nearest.valid()) return {};
    const bool is_same = std::abs(time_of(nearest) - block.alloc_ns) <= kSameMomentNs;
    return is_same ? nearest : Id<Allocation>();
}

int64_t SameBlocks::time_of(Id<Allocation> row) const {
    return profile_.allocations.get<&Allocation::alloc_ns>(row);
}

Id<Allocation> SameBlocks::nearest_to(const Allocation& block) const {
    const auto found = by_address_.find(block.address);
    if (found == by_address_.end()) return {};
    const auto& rows = found->second;  // in the order of time
    const auto next = std::lower_bound(
        rows.begin(), rows.end(), block.alloc_ns,
        [&](Id<Allocation> row, int64_t time_ns) { return time_of(row) < time_ns; });
    Id<Allocation> nearest;
    int64_t distance = INT64_MAX;
    // The block that is nearest in time may be of another size: look at two on either side.
    const auto first = next - std::min<std::ptrdiff_t>(next - rows.begin(), 2);
    const auto end = next + std::min<std::ptrdiff_t>(rows.end() - next, 2);
    for (auto row = first; row != end; ++row) {
        const int64_t bytes = profile_.allocations.get<&Allocation::block_bytes>(*row);
        const bool fits = bytes >= block.requested_bytes && bytes <= block.block_bytes;
        const int64_t away = std::abs(time_of(*row) - block.alloc_ns);
        if (!fits || away >= distance) continue;
        nearest = *row;
        distance = away;
    }
    return nearest;
}

}  // namespace profiler
