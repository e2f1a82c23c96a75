#include "profiler/analysis/ranks/collectives.h"

#include "profiler/analysis/ops/gpu_time.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/collective_rows.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <string>
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
    for (const Collective row : trace.collectives.rows()) {
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

namespace {

/// A communicator: its number among the communicators of all ranks, and the own rank in it.
struct RankGroup {
    std::size_t number = 0;
    int64_t own = 0;
};

/// Numbers the communicators of all traces: those of one name and the same ranks are one.
class Groups {
public:
    /// Of a trace, by communicator; the last one is for collectives without one.
    std::vector<RankGroup> of(const Trace& trace) {
        std::vector<RankGroup> groups;
        const int64_t rank = trace.run().rank;
        for (const Communicator one : trace.communicators.rows()) {
            const std::string_view ranks = trace.text(one.ranks);
            const std::vector<int64_t> numbers = ranks_in(ranks);
            const auto own = std::ranges::find(numbers, rank);
            groups.push_back({number_of(trace.text(one.name), ranks),
                              own != numbers.end() ? own - numbers.begin() : rank});
        }
        groups.push_back({number_of({}, {}), rank});
        return groups;
    }

private:
    std::size_t number_of(std::string_view name, std::string_view ranks) {
        return numbers_.try_emplace({std::string(name), std::string(ranks)}, numbers_.size())
            .first->second;
    }

    std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
};

/// What the calls of one collective have in common, but for how many came before.
struct Line {
    std::size_t group = 0;
    CollectiveKind kind = CollectiveKind::kOther;  // a receive counts as its send
    int64_t from = -1, to = -1;                    // of a send
    Id<Step> step;                                 // of a send

    friend auto operator<=>(const Line&, const Line&) = default;
};

Line line_of(const Collective& row, const RankGroup& group, Id<Step> step) {
    const auto kind = row.kind;
    if (kind == CollectiveKind::kSend) return {group.number, kind, group.own, row.peer, step};
    if (kind == CollectiveKind::kRecv) {
        return {group.number, CollectiveKind::kSend, row.peer, group.own, step};
    }
    return {.group = group.number, .kind = kind};
}

/// What all ranks of a collective agree on. Shards may differ where sizes do not divide.
bool agree(const Collective& a, const Collective& b) {
    const bool has_one_size =
        a.kind == CollectiveKind::kAllReduce || a.kind == CollectiveKind::kBroadcast;
    return a.dtype == b.dtype && (!has_one_size || a.in_bytes == b.in_bytes);
}

bool is_measured(const Trace& trace) { return trace.run().time_basis == TimeBasis::kMeasured; }

/// When a rank was in a collective, where the trace says it: its kernel, or gloo's threads. Without
/// either the times are those of the call alone.
std::optional<TimeSpan> time_of(std::span<const Trace* const> traces,
                                const JoinedCollective::Part& part) {
    const Trace& trace = *traces[part.trace];
    const Collective row = trace.collectives[part.collective];
    const bool is_of_gloo = trace.run().source == Source::kMeasuredCpu;
    const bool is_known = is_measured(trace) && (row.kernel.valid() || is_of_gloo);
    if (!is_known || row.end_ns <= row.start_ns) return std::nullopt;
    return TimeSpan{row.start_ns, row.end_ns};
}

CollectiveKind kind_of(std::span<const Trace* const> traces, const JoinedCollective& joined) {
    const auto& first = joined.parts.front();
    return traces[first.trace]->collectives.get<&Collective::kind>(first.collective);
}

/// How far the clock of another trace is ahead.
struct Neighbour {
    std::size_t trace = 0;
    int64_t ahead_ns = 0;
};

/// By trace: the traces that end a collective with it.
std::vector<std::vector<Neighbour>> neighbours_at_ends(std::span<const Trace* const> traces,
                                                       std::span<const JoinedCollective> joined) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<int64_t>> differences;
    for (const JoinedCollective& one : joined) {
        if (!waits_for_all(kind_of(traces, one))) continue;
        // Neighbouring parts are enough: a chain joins all ranks of a communicator.
        for (std::size_t i = 1; i < one.parts.size(); ++i) {
            const auto before = time_of(traces, one.parts[i - 1]);
            const auto after = time_of(traces, one.parts[i]);
            if (!before || !after) continue;
            differences[{one.parts[i - 1].trace, one.parts[i].trace}].push_back(after->end_ns -
                                                                                before->end_ns);
        }
    }
    std::vector<std::vector<Neighbour>> neighbours(traces.size());
    for (auto& [pair, all_ns] : differences) {
        const int64_t ahead_ns = median(std::move(all_ns));
        neighbours[pair.first].push_back({pair.second, ahead_ns});
        neighbours[pair.second].push_back({pair.first, -ahead_ns});
    }
    return neighbours;
}

int64_t first_step_ns(const Trace& trace) {
    return trace.steps.empty() ? 0 : trace.steps.get<&Step::start_ns>(Id<Step>(0));
}

/// How far the wall clocks say that `trace` is ahead of `first`. None: one has no wall clock, or
/// they are too far apart to be of one run.
std::optional<int64_t> ahead_by_wall_clock(const Trace& first, const Trace& trace) {
    constexpr double kMostApart_ns = 0x1p52;  // 52 days
    const int64_t own_ns = trace.run().start_unix_ns, first_ns = first.run().start_unix_ns;
    const double apart_ns = static_cast<double>(own_ns) - static_cast<double>(first_ns);
    if (own_ns <= 0 || first_ns <= 0 || std::abs(apart_ns) > kMostApart_ns) return std::nullopt;
    return first_ns - own_ns;
}

/// Gives clocks to all traces that a chain of neighbours joins with `root`, which has one.
void follow_neighbours(std::size_t root, const std::vector<std::vector<Neighbour>>& neighbours,
                       std::vector<bool>& is_known, std::vector<int64_t>& ahead_ns) {
    std::vector<std::size_t> queue{root};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const Neighbour& next : neighbours[queue[i]]) {
            if (is_known[next.trace]) continue;
            is_known[next.trace] = true;
            ahead_ns[next.trace] = ahead_ns[queue[i]] + next.ahead_ns;
            queue.push_back(next.trace);
        }
    }
}

/// A rank comes to a collective.
struct Arrival {
    JoinedCollective::Part part;
    int64_t time_ns = 0;  // on the clock of the first trace
};

}  // namespace

bool waits_for_all(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kAllGather:
        case CollectiveKind::kReduceScatter:
        case CollectiveKind::kAllToAll:
        case CollectiveKind::kBarrier:
            return true;
        default:
            return false;
    }
}

std::string_view name_of(RankClocks::Basis basis) {
    constexpr std::array<std::string_view, 3> kNames{"collectives", "wall_clock", "first_step"};
    return kNames.at(static_cast<std::size_t>(basis));
}

std::vector<JoinedCollective> join_collectives(std::span<const Trace* const> traces) {
    std::vector<JoinedCollective> joined;
    std::map<std::pair<Line, int64_t>, std::size_t> known;  // the n-th call, or the -n-th
    Groups groups;
    for (std::size_t t = 0; t < traces.size(); ++t) {
        const Trace& trace = *traces[t];
        const std::vector<RankGroup> own = groups.of(trace);
        const std::vector<Id<Step>> steps = steps_of_collectives(trace);
        std::vector<Line> lines;
        std::map<Line, int64_t> count;
        for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
            const Collective row = trace.collectives[Id<Collective>(i)];
            const RankGroup& group =
                row.communicator.valid() ? own[row.communicator.index()] : own.back();
            lines.push_back(line_of(row, group, steps[i]));
            if (lines.back().kind == CollectiveKind::kSend) --count[lines.back()];
        }
        for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
            const Collective row = trace.collectives[Id<Collective>(i)];
            const auto [at, is_new] =
                known.try_emplace({lines[i], count[lines[i]]++}, joined.size());
            std::size_t index = at->second;
            if (!is_new) {
                const JoinedCollective::Part& first = joined[index].parts.front();
                const Collective other = traces[first.trace]->collectives[first.collective];
                if (!agree(other, row)) index = joined.size();
            }
            if (index == joined.size()) joined.emplace_back();
            joined[index].parts.push_back({t, Id<Collective>(i)});
        }
    }
    return joined;
}

RankClocks compare_clocks(std::span<const Trace* const> traces,
                          std::span<const JoinedCollective> joined) {
    RankClocks clocks{.ahead_ns = std::vector<int64_t>(traces.size(), 0)};
    const bool all_measured =
        std::ranges::all_of(traces, [](const Trace* trace) { return is_measured(*trace); });
    const auto neighbours = neighbours_at_ends(traces, joined);
    std::vector<bool> is_known(traces.size(), false);
    for (std::size_t root = 0; root < traces.size(); ++root) {
        if (is_known[root]) continue;
        is_known[root] = true;
        if (root > 0) {
            const auto ahead_ns = all_measured ? ahead_by_wall_clock(*traces[0], *traces[root])
                                               : std::optional<int64_t>();
            clocks.ahead_ns[root] =
                ahead_ns ? *ahead_ns : first_step_ns(*traces[root]) - first_step_ns(*traces[0]);
            clocks.basis = std::max(clocks.basis, ahead_ns ? RankClocks::Basis::kWallClock
                                                           : RankClocks::Basis::kFirstStep);
        }
        if (all_measured) follow_neighbours(root, neighbours, is_known, clocks.ahead_ns);
    }
    return clocks;
}

std::vector<std::optional<RankWaits>> waits_in(std::span<const Id<Step>> steps,
                                               std::span<const Trace* const> traces,
                                               std::span<const JoinedCollective> joined,
                                               const RankClocks& clocks) {
    std::vector<std::vector<bool>> is_in_step;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        is_in_step.push_back(are_in(*traces[i], steps[i]));
    }
    std::vector<std::vector<TimeSpan>> waits(traces.size()), waits_of_others(traces.size());
    for (const JoinedCollective& one : joined) {
        if (one.parts.size() < 2 || !waits_for_all(kind_of(traces, one))) continue;
        std::vector<Arrival> arrivals;
        for (const JoinedCollective::Part& part : one.parts) {
            const auto time = time_of(traces, part);
            if (time) arrivals.push_back({part, time->start_ns - clocks.ahead_ns[part.trace]});
        }
        if (arrivals.size() < 2) continue;
        const auto [first, last] = std::ranges::minmax(arrivals, {}, &Arrival::time_ns);
        for (const auto& [part, time_ns] : arrivals) {
            if (!is_in_step[part.trace][part.collective.index()]) continue;
            waits[part.trace].push_back({time_ns, last.time_ns});
            if (part.trace == last.part.trace) {
                waits_of_others[part.trace].push_back({first.time_ns, last.time_ns});
            }
        }
    }
    std::vector<std::optional<RankWaits>> of_ranks(traces.size());
    for (std::size_t i = 0; i < traces.size(); ++i) {
        if (waits[i].empty()) continue;
        of_ranks[i] = {.wait_ns = covered_ns(std::move(waits[i])),
                       .waited_for_ns = covered_ns(std::move(waits_of_others[i]))};
    }
    return of_ranks;
}

}  // namespace profiler
