#include "profiler/formats/kineto_steps.h"

#include "profiler/formats/marked_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace profiler::kineto {
namespace {

struct Range {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    PhaseKind kind = PhaseKind::kForward;
};

bool starts_before(const Range& a, const Range& b) { return a.start_ns < b.start_ns; }

constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

/// Annotations with this prefix, by start, without those that lie in another.
std::vector<Range> ranges_named(const Trace& trace, std::string_view prefix, PhaseKind kind) {
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < trace.annotations.size(); ++i) {
        const Annotation row = trace.annotations[Id<Annotation>(i)];
        if (!trace.text(row.text).starts_with(prefix)) continue;
        ranges.push_back({row.start_ns, row.end_ns, kind});
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    std::vector<Range> outer;
    for (const Range& range : ranges) {
        if (outer.empty() || range.start_ns >= outer.back().end_ns) outer.push_back(range);
    }
    return outer;
}

/// Starts of calls that no other call made and that are not autograd's, by time.
std::vector<int64_t> forward_starts(const Trace& trace, const std::vector<Range>& not_forward) {
    std::vector<int64_t> starts;
    auto range = not_forward.begin();
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Id<Op> op(i);
        if (trace.ops.get<&Op::parent>(op).valid()) continue;
        const std::string_view name = trace.text(trace.ops.get<&Op::name>(op));
        if (name.starts_with("autograd::") || name.starts_with("torch::autograd::")) continue;
        const int64_t start_ns = trace.ops.get<&Op::start_ns>(op);
        while (range != not_forward.end() && range->end_ns <= start_ns) ++range;
        if (range == not_forward.end() || start_ns < range->start_ns) starts.push_back(start_ns);
    }
    return starts;
}

/// Autograd's functions, joined unless a forward of at least 4 calls lies between them (hooks call
/// a few ops too).
std::vector<Range> backward_ranges(const Trace& trace, const std::vector<Range>& optimizer) {
    std::vector<Range> functions;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (!trace.text(op.name).starts_with(kEngine)) continue;
        functions.push_back({op.start_ns, op.end_ns, PhaseKind::kBackward});
    }
    const auto starts = forward_starts(trace, optimizer);
    constexpr std::ptrdiff_t kLeastForwardCalls = 4;
    std::vector<Range> joined;
    for (const Range& function : functions) {
        if (!joined.empty()) {
            Range& last = joined.back();
            const auto first = std::lower_bound(starts.begin(), starts.end(), last.end_ns);
            const auto end = std::lower_bound(starts.begin(), starts.end(), function.start_ns);
            const auto step = std::lower_bound(optimizer.begin(), optimizer.end(),
                                               Range{last.end_ns, 0}, starts_before);
            const bool has_step = step != optimizer.end() && step->start_ns <= function.start_ns;
            if (end - first < kLeastForwardCalls && !has_step) {
                last.end_ns = std::max(last.end_ns, function.end_ns);
                continue;
            }
        }
        joined.push_back(function);
    }
    return joined;
}

/// The ranges "## forward ##" and so on, by which programs mark their phases.
std::vector<Range> marked_phases(const Trace& trace) {
    std::vector<Range> marked;
    for (std::size_t i = 0; i < kPhaseKindNames.size(); ++i) {
        const auto kind = static_cast<PhaseKind>(i);
        const auto ranges = ranges_named(trace, phase_mark(kind), kind);
        marked.insert(marked.end(), ranges.begin(), ranges.end());
    }
    return marked;
}

/// The phases of [start_ns, end_ns) from the known ones in it; the time before a backward that has
/// ops is forward.
std::vector<Range> phases_of(const Range& step, const std::vector<Range>& known,
                             const std::vector<int64_t>& starts) {
    std::vector<Range> phases;
    int64_t at_ns = step.start_ns;
    bool has_backward = false;
    for (const Range& range : known) {
        if (range.start_ns < step.start_ns || range.start_ns >= step.end_ns) continue;
        const auto first = std::lower_bound(starts.begin(), starts.end(), at_ns);
        const bool has_ops = first != starts.end() && *first < range.start_ns;
        if (range.kind == PhaseKind::kBackward && has_ops) {
            phases.push_back({at_ns, range.start_ns, PhaseKind::kForward});
        }
        has_backward |= range.kind == PhaseKind::kBackward;
        phases.push_back(range);
        phases.back().start_ns = std::max(range.start_ns, at_ns);
        at_ns = std::max(at_ns, range.end_ns);
    }
    if (!has_backward && !starts.empty()) {
        const int64_t end_ns = phases.empty() ? step.end_ns : phases.front().start_ns;
        if (end_ns > step.start_ns) {
            phases.insert(phases.begin(), {step.start_ns, end_ns, PhaseKind::kForward});
        }
    }
    return phases;
}

std::vector<Range> within(const Range& step, const std::vector<Range>& marked) {
    std::vector<Range> phases;
    for (const Range& range : marked) {
        if (range.start_ns >= step.start_ns && range.start_ns < step.end_ns) {
            phases.push_back(range);
        }
    }
    return phases;
}

/// From the first to the last op; of a file without ops, from the first allocation to the last
/// free.
Range whole_time(const Trace& trace, const std::vector<Range>& known) {
    Range all{known.front().start_ns, known.back().end_ns, PhaseKind::kForward};
    const auto include = [&](std::span<const int64_t> starts, std::span<const int64_t> ends) {
        for (const int64_t start_ns : starts) all.start_ns = std::min(all.start_ns, start_ns);
        for (const int64_t end_ns : ends) all.end_ns = std::max(all.end_ns, end_ns);
    };
    if (!trace.ops.empty()) {
        include(trace.ops.column<&Op::start_ns>(), trace.ops.column<&Op::end_ns>());
    } else {
        const auto starts = trace.allocations.column<&Allocation::alloc_ns>();
        include(starts, starts);
        include({}, trace.allocations.column<&Allocation::free_completed_ns>());
    }
    return all;
}

}  // namespace

void add_steps(Trace& trace, const std::function<int64_t(int64_t time_ns)>& event_at) {
    auto steps = ranges_named(trace, kStepMark, PhaseKind::kForward);
    const auto optimizer = ranges_named(trace, kOptimizerMark, PhaseKind::kOptimizer);
    std::vector<Range> known = marked_phases(trace);
    const bool is_marked = !known.empty();
    if (!is_marked) {
        known = backward_ranges(trace, optimizer);
        known.insert(known.end(), optimizer.begin(), optimizer.end());
    }
    std::stable_sort(known.begin(), known.end(), starts_before);
    if (steps.empty() && !known.empty()) {
        steps.push_back(whole_time(trace, known));
        const std::string_view remedy = trace.ops.empty()
                                            ? "run each step in record_function(\"ProfilerStep#1\")"
                                            : "call profiler.step() after each step";
        add_diagnostic(trace,
                       {.code = "inferred_step",
                        .explanation = fmt::format(
                            "The trace marks no steps, so all of it is one step: {}.", remedy)});
    }
    const auto starts = forward_starts(trace, known);
    std::vector<std::pair<Range, Id<Phase>>> phases;
    for (const Range& step : steps) {
        const Id<Step> row = trace.steps.append({.start_ns = step.start_ns,
                                                 .end_ns = step.end_ns,
                                                 .first_event = event_at(step.start_ns),
                                                 .last_event = event_at(step.end_ns),
                                                 .loss = std::numeric_limits<double>::quiet_NaN()});
        const auto in_step = is_marked ? within(step, known) : phases_of(step, known, starts);
        for (const Range& phase : in_step) {
            const Id<Phase> id = trace.phases.append({.step = row,
                                                      .kind = phase.kind,
                                                      .start_ns = phase.start_ns,
                                                      .end_ns = phase.end_ns,
                                                      .first_event = event_at(phase.start_ns),
                                                      .last_event = event_at(phase.end_ns)});
            phases.emplace_back(phase, id);
        }
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {  // ops and phases are ordered by start
        const int64_t op_ns = trace.ops.get<&Op::start_ns>(Id<Op>(i));
        while (next < phases.size() && phases[next].first.end_ns <= op_ns) ++next;
        if (next == phases.size()) break;
        if (op_ns >= phases[next].first.start_ns) {
            trace.ops.set<&Op::phase>(Id<Op>(i), phases[next].second);
        }
    }
    if (!phases.empty() && !is_marked) {
        add_diagnostic(trace,
                       {.code = "inferred_phases",
                        .count = static_cast<int64_t>(phases.size()),
                        .explanation = trace.ops.empty()
                                           ? "The optimizer's phase is that of its ranges; nothing "
                                             "says where forward and backward are."
                                           : "Forward, backward and optimizer are inferred from "
                                             "autograd's calls and the optimizer's ranges."});
    }
}

}  // namespace profiler::kineto
