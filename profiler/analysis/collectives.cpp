#include "profiler/analysis/collectives.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

struct OpRange {
    std::size_t begin = 0;
    std::size_t end = 0;

    bool holds(Id<Op> op) const { return op.valid() && op.index() >= begin && op.index() < end; }
};

/// From the end of the phases before the last step to the end of its own. Its first ops may lie in
/// no phase: a stage of a pipeline receives before its forward begins.
OpRange ops_of_last_step(const Trace& trace) {
    if (trace.steps.empty() || trace.phases.empty()) return {.end = trace.ops.size()};
    const Id<Step> last(trace.steps.size() - 1);
    const auto phases = trace.ops.column<&Op::phase>();
    OpRange range;
    for (std::size_t i = 0; i < phases.size(); ++i) {
        if (!phases[i].valid()) continue;
        const bool is_last = trace.phases.get<&Phase::step>(phases[i]) == last;
        (is_last ? range.end : range.begin) = i + 1;
    }
    return range;
}

}  // namespace

std::vector<CollectiveTotal> collectives_of_step(const Trace& trace) {
    const OpRange ops = ops_of_last_step(trace);
    const bool is_measured = trace.run().source != Source::kPredicted;
    std::map<std::pair<CollectiveKind, Id<Communicator>>, CollectiveTotal> groups;
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        if (!ops.holds(row.op)) continue;
        CollectiveTotal& total = groups[{row.kind, row.communicator}];
        total.kind = row.kind;
        total.communicator = row.communicator;
        ++total.count;
        total.in_bytes += row.in_bytes;
        total.out_bytes += row.out_bytes;
        total.size_bytes += std::max(row.in_bytes, row.out_bytes);
        if (is_measured) total.time_ns += std::max<int64_t>(row.end_ns - row.start_ns, 0);
    }
    std::vector<CollectiveTotal> totals;
    for (const auto& [key, total] : groups) totals.push_back(total);
    std::ranges::stable_sort(totals, std::greater(), &CollectiveTotal::size_bytes);
    return totals;
}

}  // namespace profiler
