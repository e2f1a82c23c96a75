#include "profiler/analysis/collectives.h"

#include "profiler/trace/imported.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

/// By op. One outside of all steps belongs to the step of the next op that is in one: a stage of a
/// pipeline receives before its forward begins.
std::vector<Id<Step>> steps_of_ops(const Trace& trace, const OpsOfRank& of_rank) {
    const auto starts_ns = trace.steps.column<&Step::start_ns>();
    std::vector<Id<Step>> steps(trace.ops.size());
    Id<Step> next;
    for (std::size_t i = steps.size(); i-- > 0;) {
        const Id<Op> op(i);
        if (!of_rank.contain(op)) continue;
        const int64_t time_ns = trace.ops.get<&Op::start_ns>(op);
        const auto after = std::ranges::upper_bound(starts_ns, time_ns);
        const Id<Step> last(static_cast<std::size_t>(after - starts_ns.begin()) - 1);
        const Id<Phase> phase = trace.ops.get<&Op::phase>(op);
        const bool is_inside =
            after != starts_ns.begin() && time_ns < trace.steps.get<&Step::end_ns>(last);
        if (phase.valid()) {
            next = trace.phases.get<&Phase::step>(phase);
        } else if (is_inside) {
            next = last;
        }
        steps[i] = next;
    }
    return steps;
}

}  // namespace

std::vector<CollectiveTotal> collectives_of_step(const Trace& trace) {
    const bool takes_all = trace.steps.empty() || trace.phases.empty();
    const Id<Step> last(trace.steps.size() - 1);
    const OpsOfRank of_rank(trace);
    const std::vector<Id<Step>> steps = steps_of_ops(trace, of_rank);
    const bool is_measured = trace.run().source != Source::kPredicted;
    std::map<std::pair<CollectiveKind, Id<Communicator>>, CollectiveTotal> groups;
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        const bool is_in_last = row.op.valid() && steps[row.op.index()] == last;
        if (!takes_all && !is_in_last) continue;
        if (row.op.valid() && !of_rank.contain(row.op)) continue;
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
