#include "profiler/analysis/collectives.h"

#include "profiler/trace/imported.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

/// By op. One outside of phases belongs to the step of the next op that is in one: a stage of a
/// pipeline receives before its forward begins. Behind the last phase that is the next step, which
/// only a trace of a single step cannot mean.
std::vector<Id<Step>> steps_of_ops(const Trace& trace, const OpsOfRank& of_rank) {
    const auto phases = trace.ops.column<&Op::phase>();
    std::vector<Id<Step>> steps(phases.size());
    Id<Step> next = trace.steps.size() == 1 ? Id<Step>(0) : Id<Step>();
    for (std::size_t i = phases.size(); i-- > 0;) {
        if (!of_rank.contain(Id<Op>(i))) continue;
        if (phases[i].valid()) next = trace.phases.get<&Phase::step>(phases[i]);
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
