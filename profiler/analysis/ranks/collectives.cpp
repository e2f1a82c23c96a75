#include "profiler/analysis/ranks/collectives.h"

#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

/// By op. An op outside of phases belongs to the step of the next op inside a phase: a stage of a
/// pipeline receives before its forward begins. After the last phase an op belongs to no step,
/// unless the trace has only one step.
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

std::vector<Id<Step>> steps_of_collectives(const Trace& trace) {
    const std::vector<Id<Step>> steps = steps_of_ops(trace, OpsOfRank(trace));
    std::vector<Id<Step>> of_collectives;
    for (const Id<Op> op : trace.collectives.column<&Collective::op>()) {
        of_collectives.push_back(op.valid() ? steps[op.index()] : Id<Step>());
    }
    return of_collectives;
}

std::vector<bool> are_in(const Trace& trace, Id<Step> step) {
    const bool takes_all = trace.steps.empty() || trace.phases.empty();
    const OpsOfRank of_rank(trace);
    const std::vector<Id<Step>> steps = steps_of_collectives(trace);
    std::vector<bool> are(trace.collectives.size());
    for (std::size_t i = 0; i < are.size(); ++i) {
        const Id<Op> op = trace.collectives.get<&Collective::op>(Id<Collective>(i));
        const bool is_of_rank = !op.valid() || of_rank.contain(op);
        are[i] = is_of_rank && (takes_all || (step.valid() && steps[i] == step));
    }
    return are;
}

bool is_stage(const Trace& trace) {
    return std::ranges::any_of(trace.collectives.column<&Collective::kind>(), [](auto kind) {
        return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
    });
}

bool knows_communication(const Trace& trace) {
    if (trace.run().time_basis == TimeBasis::kMeasured) return true;
    if (is_stage(trace)) return false;
    bool has_times = trace.collectives.empty();
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        has_times |= row.end_ns > row.start_ns;
    }
    return has_times;
}

std::vector<CollectiveTotal> collectives_of(const Trace& trace, Id<Step> step) {
    const std::vector<bool> are_of_step = are_in(trace, step);
    const bool has_times = trace.run().time_basis != TimeBasis::kEventOrder;
    std::map<std::pair<CollectiveKind, Id<Communicator>>, CollectiveTotal> groups;
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        if (!are_of_step[i]) continue;
        const Collective row = trace.collectives[Id<Collective>(i)];
        CollectiveTotal& total = groups[{row.kind, row.communicator}];
        total.kind = row.kind;
        total.communicator = row.communicator;
        ++total.count;
        total.in_bytes += row.in_bytes;
        total.out_bytes += row.out_bytes;
        total.size_bytes += std::max(row.in_bytes, row.out_bytes);
        if (has_times) total.time_ns += std::max<int64_t>(row.end_ns - row.start_ns, 0);
    }
    std::vector<CollectiveTotal> totals;
    for (const auto& [key, total] : groups) totals.push_back(total);
    std::ranges::stable_sort(totals, std::greater(), &CollectiveTotal::size_bytes);
    return totals;
}

}  // namespace profiler
