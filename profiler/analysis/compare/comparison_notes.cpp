#include "profiler/analysis/compare/comparison_notes.h"

#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

namespace profiler {
namespace {

/// "trains the same step of Net in"; of two steps that differ "takes".
std::string deed_of(const ComparisonColumn& column) {
    if (!column.differs_in.empty()) return "takes";
    return fmt::format("trains the same step{}{} in", column.model.empty() ? "" : " of ",
                       column.model);
}

std::string change_in_memory(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    const double ratio = static_cast<double>(column.peak_allocated_bytes) /
                         static_cast<double>(baseline.peak_allocated_bytes);
    const std::string deed = deed_of(column);
    if (std::abs(1 - ratio) < 0.0005) {  // 0.0 % as printed
        return fmt::format("{} the same memory as {} ({})", deed, baseline.recipe,
                           format_bytes(column.peak_allocated_bytes));
    }
    return fmt::format("{} {} {} memory than {} ({} instead of {})", deed,
                       format_percent(std::abs(1 - ratio)), ratio <= 1 ? "less" : "more",
                       baseline.recipe, format_bytes(column.peak_allocated_bytes),
                       format_bytes(baseline.peak_allocated_bytes));
}

/// Only for peaks that are not made of activations.
std::string where_peaks_lie(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    const auto in_optimizer = [](const ComparisonColumn& c) {
        return c.peak_phase == PhaseKind::kOptimizer;
    };
    if (!column.peak_phase || !baseline.peak_phase) return {};
    if (!in_optimizer(column) && !in_optimizer(baseline)) return {};
    if (column.peak_phase != baseline.peak_phase) {
        return fmt::format("; its peak lies in {}, and the peak of {} in {}",
                           describe(*column.peak_phase), baseline.recipe,
                           describe(*baseline.peak_phase));
    }
    const auto has_activations = [](const ComparisonColumn& c) {
        return c.peak_by_category[static_cast<std::size_t>(Category::kActivation)] > 0;
    };
    const bool none_lives = !has_activations(column) && !has_activations(baseline);
    return fmt::format("; both peaks lie in the optimizer's step{}",
                       none_lives ? ", where no activation lives" : "");
}

/// If a peak lies in the optimizer's step (of a small batch), it hides what a recipe saves for
/// backward. A larger batch would show the change in its peak.
std::string change_in_saved(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    const bool hides = column.peak_phase == PhaseKind::kOptimizer ||
                       baseline.peak_phase == PhaseKind::kOptimizer ||
                       column.peak_allocated_bytes == baseline.peak_allocated_bytes;
    if (!hides) return {};
    if (baseline.saved_bytes <= 0 || column.saved_bytes == baseline.saved_bytes) return {};
    const double ratio =
        static_cast<double>(column.saved_bytes) / static_cast<double>(baseline.saved_bytes);
    return fmt::format("has {} {} saved for backward", format_percent(std::abs(1 - ratio)),
                       ratio <= 1 ? "less" : "more");
}

std::string change_in_batch(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    const auto most = column.max_batch.exact();
    const auto most_before = baseline.max_batch.exact();
    if (!most || !most_before) return {};
    if (column.memory_limit_bytes != baseline.memory_limit_bytes) return {};
    const std::string limit = column.memory_limit_bytes > 0
                                  ? " within " + format_bytes(column.memory_limit_bytes)
                                  : std::string();
    if (*most == *most_before) return fmt::format("fits the same batch of {}{}", *most, limit);
    return fmt::format("fits a batch of {} instead of {}{}", *most, *most_before, limit);
}

/// " at a batch of 8"; empty for steps of different batches.
std::string at_batch(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (!at_same_batch(column, baseline)) return {};
    return fmt::format(" at a batch of {}", column.batch_size);
}

/// "takes 4.1 % more time a step at a batch of 8"
std::string more_or_less_time(double step_time_ratio, std::string_view at_batch) {
    if (std::abs(step_time_ratio - 1) < 0.0005) {  // 0.0 % as printed
        return fmt::format("takes the same time a step{}", at_batch);
    }
    return fmt::format("takes {} {} time a step{}", format_percent(std::abs(step_time_ratio - 1)),
                       step_time_ratio <= 1 ? "less" : "more", at_batch);
}

/// "takes about 4 % more time a step at a batch of 8": predicted times err by whole percents.
std::string predicted_more_or_less_time(double step_time_ratio, std::string_view at_batch) {
    const auto percent = std::lround(std::abs(step_time_ratio - 1) * 100);
    if (percent == 0) return fmt::format("takes about the same time a step{}", at_batch);
    return fmt::format("takes about {} % {} time a step{}", percent,
                       step_time_ratio <= 1 ? "less" : "more", at_batch);
}

std::string change_in_paired_steps(const PairedRatio& ratio, std::string_view at_batch) {
    if (!ratio.has_enough_pairs()) {
        const std::string pairs = ratio.pairs == 1
                                      ? std::string("1 pair of steps is")
                                      : fmt::format("{} pairs of steps are", ratio.pairs);
        return fmt::format(
            "shows no certain difference in step time{} ({} too few to tell; capture {} steps or "
            "more)",
            at_batch, pairs, PairedRatio::kFewestPairs);
    }
    const std::string spread = fmt::format(
        "{} to {} in {} pairs of steps", format_percent(ratio.low - 1, /*with_sign=*/true),
        format_percent(ratio.high - 1, /*with_sign=*/true), ratio.pairs);
    if (!ratio.shows_difference()) {
        return fmt::format("shows no difference in step time{} ({})", at_batch, spread);
    }
    return fmt::format("{} ({})", more_or_less_time(ratio.median, at_batch), spread);
}

std::string change_in_unpaired_steps(const ComparisonColumn& column,
                                     const ComparisonColumn& baseline) {
    const double ratio =
        static_cast<double>(column.step_time_ns) / static_cast<double>(baseline.step_time_ns);
    std::string change = more_or_less_time(ratio, at_batch(column, baseline));
    if (speed_is_uncertain(column, baseline)) {
        constexpr double kAsFast = 0.05;
        change = std::abs(std::log(ratio)) > kAsFast
                     ? "takes steps too uneven to compare their times"
                     : "shows no difference in step time" + at_batch(column, baseline);
    }
    return change + " (not measured alternately)";
}

std::string strategy_of(const ComparisonColumn& column) {
    const auto program = column.step_trace ? program_of(*column.step_trace) : std::nullopt;
    return program ? strategy_of(*program) : std::string();
}

/// Whether predicted times of two strategies do not say which of them is faster.
bool lacks_communication(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (strategy_of(column) == strategy_of(baseline)) return false;
    const auto knows = [](const ComparisonColumn& one) {
        return one.step_trace && knows_communication(*one.step_trace);
    };
    return !knows(column) || !knows(baseline);
}

/// Whether the two are not the same stage of a pipeline, and at least one of them is a stage.
bool is_stage_beside_other(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (strategy_of(column) == strategy_of(baseline)) return false;
    const auto is_one = [](const ComparisonColumn& one) {
        return one.step_trace && is_stage(*one.step_trace);
    };
    return is_one(column) || is_one(baseline);
}

/// What a recipe costs, or gains, in time. A single measured step has no spread, so it says
/// nothing.
std::string change_in_speed(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (column.step_time_ns <= 0 || baseline.step_time_ns <= 0) return {};
    if (column.source == Source::kPredicted) {
        if (lacks_communication(column, baseline)) return {};
        std::string change = predicted_more_or_less_time(
            static_cast<double>(column.step_time_ns) / static_cast<double>(baseline.step_time_ns),
            at_batch(column, baseline));
        if (column.time_error > 0) change += fmt::format(" (±{:.0f} %)", 100 * kErrorOfRatio);
        return change;
    }
    if (column.was_busy || baseline.was_busy) {
        return fmt::format(
            "has no step time to compare, because the machine was busy with something else while "
            "{} ran",
            column.was_busy ? column.recipe : baseline.recipe);
    }
    if (column.steps < 2 || baseline.steps < 2) return {};
    if (column.step_ratio) {
        return change_in_paired_steps(*column.step_ratio, at_batch(column, baseline));
    }
    return change_in_unpaired_steps(column, baseline);
}

/// Whether the recipe alone can explain the differences between two columns. A prediction and a
/// measurement, runs on two devices, or steps of two batches differ for other reasons, too.
bool ran_alike(const ComparisonColumn& a, const ComparisonColumn& b) {
    return is_comparable(a, b) && a.source == b.source &&
           (a.device.empty() || b.device.empty() || a.device == b.device);
}

/// " They differ in precision (fp32 and amp-fp16)."; empty: the steps are the same.
std::string where_they_differ(const ComparisonColumn& column) {
    if (column.differs_in.empty()) return {};
    return fmt::format(" They differ in {}.", join_with_and(column.differs_in));
}

/// Where the baseline does not fit, what it would take is not known or beside the point.
std::string quote_against_too_large(const ComparisonColumn& best,
                                    const ComparisonColumn& baseline) {
    const bool is_same = best.differs_in.empty() && baseline.differs_in.empty();
    return fmt::format("{} {} {}; {} {} {}{}.", best.recipe,
                       is_same ? "trains the step in" : "takes", peak_of_limit(best),
                       baseline.recipe, baseline.is_cut_off ? "ran out of memory at" : "needs",
                       format_bytes(baseline.peak_allocated_bytes),
                       baseline.is_cut_off ? "" : " and does not fit");
}

}  // namespace

std::string about_communication(const ComparisonColumn& column, const ComparisonColumn& baseline) {
    if (column.source != Source::kPredicted || strategy_of(column) == strategy_of(baseline)) {
        return {};
    }
    if (is_stage_beside_other(column, baseline)) {
        return fmt::format(
            "{} or {} is one pipeline stage and cannot be compared. Run temposcope info FOLDER for "
            "all stages.",
            baseline.recipe, column.recipe);
    }
    if (lacks_communication(column, baseline)) {
        return fmt::format(
            "Communication between GPUs is not, or not wholly, in the times of {} and {}: they do "
            "not say which is faster.",
            baseline.recipe, column.recipe);
    }
    return fmt::format(
        "Communication between GPUs is modelled in the times of {} and {}; no machine has "
        "confirmed it.",
        baseline.recipe, column.recipe);
}

std::string quote(const std::vector<ComparisonColumn>& columns) {
    // The smallest peak; of equal peaks the fewest saved bytes, then the fastest.
    const auto rank = [](const ComparisonColumn& c) {
        return std::tuple(c.peak_allocated_bytes, c.saved_bytes, -c.sequences_per_s);
    };
    const ComparisonColumn* best = nullptr;
    for (std::size_t i = 1; i < columns.size(); ++i) {
        if (columns[i].peak_allocated_bytes == 0 || !columns[i].out_of_memory.empty()) continue;
        if (!ran_alike(columns[i], columns.front())) continue;
        if (!best || rank(columns[i]) < rank(*best)) best = &columns[i];
    }
    if (!best || columns.front().peak_allocated_bytes == 0) return {};
    return quote_pair(*best, columns.front());
}

std::string quote_pair(ComparisonColumn column, const ComparisonColumn& baseline) {
    if (column.peak_allocated_bytes == 0 || baseline.peak_allocated_bytes == 0) return {};
    if (!ran_alike(column, baseline) || is_stage_beside_other(column, baseline)) return {};
    const std::string end = where_they_differ(column);
    if (!column.out_of_memory.empty()) {
        return (baseline.out_of_memory.empty() ? quote_against_too_large(baseline, column)
                                               : "Neither fits.") +
               end;
    }
    if (!baseline.out_of_memory.empty()) return quote_against_too_large(column, baseline) + end;
    pair_steps(column, baseline);
    std::vector<std::string> parts{change_in_memory(column, baseline)};
    for (auto& part : {change_in_saved(column, baseline), change_in_batch(column, baseline),
                       change_in_speed(column, baseline)}) {
        if (!part.empty()) parts.push_back(part);
    }
    return fmt::format("{} {}{}.{}", column.recipe, join_with_and(parts),
                       where_peaks_lie(column, baseline), end);
}

void pair_steps(ComparisonColumn& column, const ComparisonColumn& baseline) {
    column.step_ratio.reset();
    if (&column == &baseline || column.turns_run.empty()) return;
    if (column.turns_run != baseline.turns_run) return;
    column.step_ratio = paired_ratio(column.step_times_ns, baseline.step_times_ns);
}

}  // namespace profiler
