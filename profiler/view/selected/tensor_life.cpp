#include "profiler/view/selected/tensor_life.h"

#include "profiler/analysis/step/block_origin.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/phases_by_event.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace profiler {
namespace {

/// The last step that began before an event; none before the first one.
std::optional<std::size_t> step_of(const Trace& trace, int64_t event) {
    const auto first = trace.steps.column<&Step::first_event>();
    const auto after = std::upper_bound(first.begin(), first.end(), event);
    if (after == first.begin()) return std::nullopt;
    return static_cast<std::size_t>(after - first.begin()) - 1;
}

int64_t layer_of(const Trace& trace, Id<Op> op) {
    const Id<ModulePath> module = op.valid() ? module_of(trace, op) : Id<ModulePath>();
    return module.valid() ? trace.module_paths.get<&ModulePath::layer>(module) : -1;
}

/// The step that the share and the peak are of: the one that made the block, else the last one.
std::optional<Step> step_around(const Trace& trace, const Allocation& block) {
    if (trace.steps.empty()) return std::nullopt;
    return trace
        .steps[Id<Step>(step_of(trace, block.alloc_event).value_or(trace.steps.size() - 1))];
}

double share_of_step(const std::optional<Step>& step, int64_t start_ns, int64_t end_ns) {
    if (!step || step->end_ns <= step->start_ns) return 0;
    const auto held_ns =
        static_cast<double>(std::min(end_ns, step->end_ns) - std::max(start_ns, step->start_ns));
    return std::clamp(held_ns / static_cast<double>(step->end_ns - step->start_ns), 0.0, 1.0);
}

/// After how many changes the step, or the trace without one, holds most.
uint32_t rank_of_peak(const BlockHistory& history, const std::optional<Step>& step) {
    uint32_t rank = step ? history.first_change_at(step->start_ns) : 0;
    const uint32_t end = step ? history.first_change_after(step->end_ns)
                              : static_cast<uint32_t>(history.change_count());
    uint32_t highest = rank;
    int64_t live_bytes = 0, most_bytes = 0;  // beyond those at the begin of the step
    while (rank < end) {
        const BlockHistory::Change change = history.change(rank++);
        const int64_t size_bytes = history.size_bytes(change.block);
        live_bytes += change.is_free ? -size_bytes : size_bytes;
        if (live_bytes <= most_bytes) continue;
        most_bytes = live_bytes;
        highest = rank;
    }
    return highest;
}

/// Whether b is freed before a. Backward runs the last layer first. Where phases and layers do not
/// tell, the share of the step does.
bool is_freed_earlier(const TensorLife& b, const TensorLife& a) {
    if (!a.freed || !b.freed) return b.freed.has_value() && !a.freed;
    const StepPlace &of_b = *b.freed, &of_a = *a.freed;
    if (of_b.steps_later != of_a.steps_later) return of_b.steps_later < of_a.steps_later;
    if (of_b.phase && of_a.phase) {
        if (of_b.phase != of_a.phase) return of_b.phase < of_a.phase;
        if (of_b.layer >= 0 && of_a.layer >= 0 && of_b.layer != of_a.layer) {
            return (of_b.layer < of_a.layer) == (of_b.phase != PhaseKind::kBackward);
        }
    }
    return b.share_of_step < a.share_of_step;
}

/// Of a tensor of an earlier step nobody knows whether autograd keeps it, unless it still does.
bool differ_in_saves(const TensorLife& a, const TensorLife& b) {
    const auto is_known = [](const TensorLife& life) {
        return life.is_saved || life.is_in_ledger_step;
    };
    return a.is_saved != b.is_saved && is_known(a) && is_known(b);
}

/// What a tensor is alive across, whatever the time it takes.
bool lives_across_the_same(const TensorLife& a, const TensorLife& b) {
    return !differ_in_saves(a, b) && a.is_at_peak == b.is_at_peak && a.made == b.made &&
           a.freed == b.freed;
}

std::string until_text(const TensorLife& life) {
    if (!life.freed) return "to the end";
    const std::string place = text_of(*life.freed);
    return place.empty() ? "" : "until " + place;
}

/// " keeps it for backward, until backward of layer 3"
std::string keeps_text(const TensorLife& life) {
    const std::string until = until_text(life);
    const std::string_view what = life.is_saved ? " keeps it for backward" : " holds it";
    if (until.empty()) return std::string(what);
    return fmt::format("{}{} {}", what, life.is_saved ? "," : "", until);
}

std::string frees_text(const TensorLife& life) {
    const std::string place = life.freed ? text_of(*life.freed) : "";
    return place.empty() ? " frees it earlier" : " frees it in " + place;
}

/// In one sentence each: how many bytes, when it is freed, and whether it is there at the peak.
std::string difference_text(const TensorLife& a, const TensorLife& b) {
    std::string text;
    const auto add = [&](const std::string& sentence) {
        text += (text.empty() ? "" : " ") + sentence;
    };
    if (a.size_bytes != b.size_bytes) {
        add(fmt::format("B {} it in {} instead of {}.", b.is_saved ? "keeps" : "holds",
                        format_bytes(b.size_bytes), format_bytes(a.size_bytes)));
    }
    if (a.made != b.made && !text_of(a.made).empty() && !text_of(b.made).empty()) {
        add(fmt::format("B makes it in {}, A in {}.", text_of(b.made), text_of(a.made)));
    }
    if (a.freed != b.freed) {
        add(is_freed_earlier(b, a) ? fmt::format("B{}; A{}.", frees_text(b), keeps_text(a))
                                   : fmt::format("A{}; B{}.", frees_text(a), keeps_text(b)));
    } else if (differ_in_saves(a, b)) {
        add(fmt::format("{} keeps it for backward, {} does not.", a.is_saved ? "A" : "B",
                        a.is_saved ? "B" : "A"));
    }
    if (a.is_at_peak != b.is_at_peak) {
        add(fmt::format("It is there at the peak of {}, not at that of {}.",
                        a.is_at_peak ? "A" : "B", a.is_at_peak ? "B" : "A"));
    }
    return text;
}

}  // namespace

std::string text_of(const StepPlace& place) {
    if (!place.phase) return {};
    std::string text(name_of(*place.phase));
    if (place.layer >= 0) text += fmt::format(" of layer {}", place.layer);
    if (place.steps_later == 1) text += " of the next step";
    if (place.steps_later > 1) text += fmt::format(", {} steps later", place.steps_later);
    return text;
}

TensorLife life_of(const Trace& trace, const BlockHistory& history, Id<Allocation> allocation,
                   bool is_saved) {
    const Allocation block = trace.allocations[allocation];
    const std::optional<Step> step = step_around(trace, block);
    const int64_t freed_event = block.free_requested_event;
    const bool is_freed = freed_event >= 0 && block.free_requested_ns >= 0;
    const int64_t last_ns = trace.steps.empty()
                                ? block.alloc_ns
                                : trace.steps.get<&Step::end_ns>(Id<Step>(trace.steps.size() - 1));
    const int64_t end_ns = is_freed ? block.free_requested_ns : std::max(last_ns, block.alloc_ns);
    const PhasesByEvent phases(trace);
    TensorLife life{
        .size_bytes = block.requested_bytes,
        .is_saved = is_saved,
        .is_in_ledger_step = block.alloc_ns >= start_of_ledger_step(trace),
        .made = {.phase = phases.kind_at(block.alloc_event), .layer = layer_of(trace, block.op)},
        .lifetime_ns = end_ns - block.alloc_ns,
        .share_of_step = share_of_step(step, block.alloc_ns, end_ns)};
    if (is_freed) {
        const auto made = step_of(trace, block.alloc_event), freed = step_of(trace, freed_event);
        life.freed = {.phase = phases.kind_at(freed_event),
                      .layer = layer_of(trace, block.freeing_op),
                      .steps_later = made && freed ? static_cast<int64_t>(*freed - *made) : 0};
        life.freeing_op = block.freeing_op;
    }
    const uint32_t index = history.block_of(allocation);
    life.is_at_peak =
        index != BlockHistory::kNone && history.is_live(index, rank_of_peak(history, step));
    return life;
}

std::string length_text(const TensorLife& life) {
    std::string text = life.freed ? format_duration(life.lifetime_ns) : "to the end";
    constexpr double kReadsAsNone = 0.0005, kReadsAsAll = 0.9995;
    if (life.share_of_step >= kReadsAsAll) return text + ", the whole step";
    if (life.share_of_step < kReadsAsNone) return text;
    return text + fmt::format(", {} of the step", format_percent(life.share_of_step));
}

TensorFate compare_lives(const TensorLife* a, const TensorLife* b) {
    if (!a) return {Fate::kAdded, fmt::format("A does not {} it.", b->is_saved ? "keep" : "hold")};
    if (!b) return {Fate::kGone, fmt::format("B does not {} it.", a->is_saved ? "keep" : "hold")};
    if (a->size_bytes == b->size_bytes && lives_across_the_same(*a, *b)) {
        const std::string until = until_text(*b);
        return {Fate::kSame, fmt::format("B {} the same{}.", b->is_saved ? "keeps" : "holds",
                                         until.empty() ? "" : ", also " + until)};
    }
    return {.fate = b->size_bytes < a->size_bytes   ? Fate::kSmaller
                    : b->size_bytes > a->size_bytes ? Fate::kLarger
                    : a->freed == b->freed          ? Fate::kOther
                    : is_freed_earlier(*b, *a)      ? Fate::kShorter
                                                    : Fate::kLonger,
            .text = difference_text(*a, *b)};
}

}  // namespace profiler
