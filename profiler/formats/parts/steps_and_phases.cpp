#include "profiler/formats/parts/steps_and_phases.h"

#include "profiler/trace/trace_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace profiler {
namespace {

bool is_mark(std::string_view name) {
    if (name.starts_with(kStepMark)) return true;
    for (std::size_t kind = 0; kind < kPhaseKindNames.size(); ++kind) {
        if (name == phase_mark(static_cast<PhaseKind>(kind))) return true;
    }
    return false;
}

}  // namespace

std::string phase_mark(PhaseKind kind) { return fmt::format("## {} ##", name_of(kind)); }

std::vector<MarkedRange> marked_ranges(const Trace& trace) {
    // Those of a snapshot follow from its annotations alone.
    const bool are_annotations = trace.ops.empty() && !trace.annotations.empty();
    // Those of another profiler have numbers of their own.
    const bool are_numbered =
        are_annotations ||
        std::ranges::any_of(trace.annotations.column<&Annotation::text>(),
                            [&](StringId text) { return trace.text(text).starts_with(kStepMark); });
    std::vector<MarkedRange> ranges;
    for (std::size_t i = 0; i < trace.steps.size() && !are_numbered; ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        ranges.push_back({fmt::format("{}{}", kStepMark, i), step.start_ns, step.end_ns});
    }
    for (std::size_t i = 0; i < trace.phases.size() && !are_annotations; ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        ranges.push_back({phase_mark(phase.kind), phase.start_ns, phase.end_ns});
    }
    for (const Annotation row : trace.annotations.rows()) {
        const std::string_view name = trace.text(row.text);
        if (is_mark(name) && !are_annotations && !name.starts_with(kStepMark)) continue;
        ranges.push_back({std::string(name), row.start_ns, row.end_ns, !is_mark(name)});
    }
    std::stable_sort(ranges.begin(), ranges.end(), [](const MarkedRange& a, const MarkedRange& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    return ranges;
}

namespace {

struct Range {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    PhaseKind kind = PhaseKind::kForward;
};

bool starts_before(const Range& a, const Range& b) { return a.start_ns < b.start_ns; }

bool holds_or_starts_before(const Range& a, const Range& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
}

constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

/// Annotations with this prefix, by start, without annotations inside another one.
std::vector<Range> ranges_named(const Trace& trace, std::string_view prefix, PhaseKind kind) {
    std::vector<Range> ranges;
    for (const Annotation row : trace.annotations.rows()) {
        if (!trace.text(row.text).starts_with(prefix)) continue;
        ranges.push_back({row.start_ns, row.end_ns, kind});
    }
    std::sort(ranges.begin(), ranges.end(), holds_or_starts_before);
    std::vector<Range> outer;
    for (const Range& range : ranges) {
        if (outer.empty() || range.start_ns >= outer.back().end_ns) outer.push_back(range);
    }
    return outer;
}

/// Starts of outermost calls without autograd's, by time, on the thread with the most such calls.
/// Other threads load data, or run replicas.
std::vector<int64_t> forward_starts(const Trace& trace, const std::vector<Range>& not_forward) {
    std::map<int32_t, std::vector<int64_t>> by_thread;
    auto range = not_forward.begin();
    for (const Id<Op> op : trace.ops.ids()) {
        if (trace.ops.get<&Op::parent>(op).valid()) continue;
        const std::string_view name = trace.text(trace.ops.get<&Op::name>(op));
        if (name.starts_with("autograd::") || name.starts_with("torch::autograd::")) continue;
        const int64_t start_ns = trace.ops.get<&Op::start_ns>(op);
        while (range != not_forward.end() && range->end_ns <= start_ns) ++range;
        if (range != not_forward.end() && start_ns >= range->start_ns) continue;
        by_thread[trace.ops.get<&Op::thread>(op).value].push_back(start_ns);
    }
    const auto most = std::ranges::max_element(
        by_thread, {}, [](const auto& of_thread) { return of_thread.second.size(); });
    return most == by_thread.end() ? std::vector<int64_t>() : std::move(most->second);
}

std::vector<Range> autograd_functions(const Trace& trace) {
    std::vector<Range> functions;
    for (const Op op : trace.ops.rows()) {
        if (!trace.text(op.name).starts_with(kEngine)) continue;
        functions.push_back({op.start_ns, op.end_ns, PhaseKind::kBackward});
    }
    return functions;
}

/// Autograd's functions, joined unless an update or a forward of at least 4 calls lies between them
/// (hooks call a few ops too).
std::vector<Range> backward_ranges(const Trace& trace, const std::vector<Range>& functions,
                                   const std::vector<Range>& optimizer) {
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

/// Ranges in which others lie are split around them, so that none overlap.
std::vector<Range> without_overlaps(const std::vector<Range>& ranges) {
    std::vector<Range> flat, open;
    int64_t at_ns = std::numeric_limits<int64_t>::min();
    const auto advance = [&](int64_t until_ns) {
        for (; !open.empty(); open.pop_back()) {
            const Range& inner = open.back();
            const int64_t start_ns = std::max(at_ns, inner.start_ns);
            const int64_t end_ns = std::min(inner.end_ns, until_ns);
            if (start_ns < end_ns) flat.push_back({start_ns, end_ns, inner.kind});
            at_ns = std::max(at_ns, end_ns);
            if (inner.end_ns > until_ns) return;
        }
    };
    for (const Range& range : ranges) {
        advance(range.start_ns);
        open.push_back(range);
    }
    advance(std::numeric_limits<int64_t>::max());
    return flat;
}

/// LBFGS runs forward and backward inside of its step: its update begins after the last backward.
void begin_after_backward(std::vector<Range>& optimizer, const std::vector<Range>& backward) {
    for (Range& step : optimizer) {
        auto inner = std::lower_bound(backward.begin(), backward.end(), step, starts_before);
        for (; inner != backward.end() && inner->end_ns <= step.end_ns; ++inner) {
            step.start_ns = std::max(step.start_ns, inner->end_ns);
        }
    }
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

/// What the phases of a file are inferred from, each in the order of time.
struct PhaseSigns {
    std::vector<Range> known;          // backward and the optimizer, without overlaps
    std::vector<Range> zero_grads;     // gradients are dropped
    std::vector<int64_t> call_starts;  // of calls that autograd did not make
};

/// Dropping the gradients of the step before is no part of forward.
int64_t after_zero_grads(int64_t at_ns, const PhaseSigns& signs) {
    auto zero = std::lower_bound(signs.zero_grads.begin(), signs.zero_grads.end(), Range{at_ns, 0},
                                 starts_before);
    for (; zero != signs.zero_grads.end(); ++zero) {
        const auto first = std::ranges::lower_bound(signs.call_starts, at_ns);
        if (first == signs.call_starts.end() || *first < zero->start_ns) break;
        at_ns = std::max(at_ns, zero->end_ns);
    }
    return at_ns;
}

/// The phases of [start_ns, end_ns) from the known ones in it; the time before a backward that has
/// ops is forward.
std::vector<Range> phases_of(const Range& step, const PhaseSigns& signs) {
    const auto& [known, zero_grads, starts] = signs;
    std::vector<Range> phases;
    int64_t at_ns = after_zero_grads(step.start_ns, signs);
    bool has_backward = false;
    auto next = std::lower_bound(known.begin(), known.end(), step, starts_before);
    for (; next != known.end() && next->start_ns < step.end_ns; ++next) {
        const Range& range = *next;
        const auto first = std::lower_bound(starts.begin(), starts.end(), at_ns);
        const bool has_ops = first != starts.end() && *first < range.start_ns;
        if (range.kind == PhaseKind::kBackward && has_ops) {
            phases.push_back({at_ns, range.start_ns, PhaseKind::kForward});
        }
        has_backward |= range.kind == PhaseKind::kBackward;
        phases.push_back(range);
        at_ns = after_zero_grads(std::max(at_ns, range.end_ns), signs);
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
    const auto starts_in = [&](int64_t time_ns) {
        return std::lower_bound(marked.begin(), marked.end(), Range{time_ns, 0}, starts_before);
    };
    return {starts_in(step.start_ns), starts_in(step.end_ns)};
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

std::vector<Range> inferred_phases(const Trace& trace) {
    const std::vector<Range> functions = autograd_functions(trace);
    auto optimizer = ranges_named(trace, kOptimizerMark, PhaseKind::kOptimizer);
    begin_after_backward(optimizer, functions);
    std::vector<Range> phases = backward_ranges(trace, functions, optimizer);
    phases.insert(phases.end(), optimizer.begin(), optimizer.end());
    return phases;
}

}  // namespace

void add_steps(Trace& trace, const std::function<int64_t(int64_t time_ns)>& event_at) {
    auto steps = ranges_named(trace, kStepMark, PhaseKind::kForward);
    std::vector<Range> known = marked_phases(trace);
    const bool is_marked = !known.empty();
    if (!is_marked) known = inferred_phases(trace);
    std::stable_sort(known.begin(), known.end(), holds_or_starts_before);
    known = without_overlaps(known);
    if (steps.empty() && !known.empty()) {
        steps.push_back(whole_time(trace, known));
        const std::string_view remedy = trace.ops.empty()
                                            ? "run step N in record_function(\"ProfilerStep#N\")"
                                            : "call profiler.step() after each step";
        add_diagnostic(trace,
                       {.code = kInferredStep,
                        .explanation = fmt::format(
                            "The trace marks no steps, so all of it is one step: {}.", remedy)});
    }
    const PhaseSigns signs{known, ranges_named(trace, kZeroGradMark, PhaseKind::kOptimizer),
                           forward_starts(trace, known)};
    std::vector<std::pair<Range, Id<Phase>>> phases;
    for (const Range& step : steps) {
        const Id<Step> row = trace.steps.append({.start_ns = step.start_ns,
                                                 .end_ns = step.end_ns,
                                                 .first_event = event_at(step.start_ns),
                                                 .last_event = event_at(step.end_ns),
                                                 .loss = std::numeric_limits<double>::quiet_NaN()});
        const auto in_step = is_marked ? within(step, known) : phases_of(step, signs);
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
        add_diagnostic(
            trace,
            {.code = "inferred_phases",
             .count = static_cast<int64_t>(phases.size()),
             .explanation = trace.ops.empty() ? "The optimizer's phase follows its ranges; nothing "
                                                "says where forward and backward are."
                                              : "Forward, backward and optimizer are inferred from "
                                                "autograd's calls and the optimizer's ranges."});
    }
}

}  // namespace profiler
