#include "profiler/view/programs/compare_view.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace profiler {
namespace {

/// In place of a time that something else on the machine made too long.
constexpr const char* kBusy = "(busy)";

CurvePoint build_point(const ThroughputPoint& measured) {
    CurvePoint point{.batch_size = measured.batch_size,
                     .sequences_per_s = measured.sequences_per_s,
                     .peak_bytes = measured.peak_allocated_bytes};
    // The slowest step is the lowest rate; without samples the spread is the point itself.
    const auto rate_of_step = [&](int64_t step_time_ns) {
        if (step_time_ns <= 0) return 0.0;
        return measured.sequences_per_s * static_cast<double>(measured.step_time_ns) /
               static_cast<double>(step_time_ns);
    };
    const double low = rate_of_step(measured.step_time_max_ns);
    const double high = rate_of_step(measured.step_time_min_ns);
    point.sequences_per_s_min = low > 0 ? low : point.sequences_per_s;
    point.sequences_per_s_max = high > 0 ? high : point.sequences_per_s;
    point.text =
        fmt::format("batch {}: {} sequences/s ({} to {}) in the sweep, peak {}", point.batch_size,
                    format_rate(point.sequences_per_s), format_rate(point.sequences_per_s_min),
                    format_rate(point.sequences_per_s_max), format_bytes(point.peak_bytes));
    return point;
}

void add_curve(const ComparisonColumn& column, CompareColumn& view) {
    for (const ThroughputPoint& measured : column.curve) {
        if (measured.out_of_memory) {
            view.out_of_memory_batch = std::min(
                view.out_of_memory_batch.value_or(measured.batch_size), measured.batch_size);
            continue;
        }
        if (measured.sequences_per_s <= 0) continue;
        view.curve.push_back(build_point(measured));
        if (column.sweep_was_busy) continue;
        if (!view.best_point ||
            view.curve.back().sequences_per_s > view.curve[*view.best_point].sequences_per_s) {
            view.best_point = view.curve.size() - 1;
        }
    }
    if (view.best_point) {
        const CurvePoint& best = view.curve[*view.best_point];
        view.best_text =
            fmt::format("{} at batch {}", format_rate(best.sequences_per_s), best.batch_size);
    } else if (!view.curve.empty()) {
        view.best_text = kBusy;
    }
}

/// "0.92 (0.89 to 0.96), 6 pairs"
std::string ratio_text(const PairedRatio& ratio) {
    constexpr double kNarrow = 0.05;
    const int digits = ratio.high - ratio.low < kNarrow ? 3 : 2;
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f}), {} pairs", ratio.median, digits, ratio.low,
                       digits, ratio.high, digits, ratio.pairs);
}

void add_times(const ComparisonColumn& column, CompareColumn& view) {
    if (has_bad_times(column)) {
        view.throughput_text = view.step_time_text = kBusy;
        return;
    }
    view.sequences_per_s = column.sequences_per_s;
    view.throughput_text = view.sequences_per_s > 0 ? format_rate(view.sequences_per_s) : kNoValue;
    if (view.sequences_per_s > 0 && column.batch_size > 0 && !column.is_planned) {
        view.captured = {.batch_size = column.batch_size,
                         .sequences_per_s = view.sequences_per_s,
                         .sequences_per_s_min = view.sequences_per_s,
                         .sequences_per_s_max = view.sequences_per_s,
                         .peak_bytes = column.peak_allocated_bytes,
                         .text = fmt::format("batch {}: {} sequences/s, captured step",
                                             column.batch_size, format_rate(view.sequences_per_s))};
    }
    view.step_time_text = column.step_time_ns > 0 ? format_duration(column.step_time_ns) : kNoValue;
}

void add_peak(const ComparisonColumn& column, CompareColumn& view) {
    view.stack = build_stack(column.peak_by_category);
    view.peak_bytes = column.peak_allocated_bytes;
    view.out_of_memory = !column.out_of_memory.empty();
    view.is_cut_off = column.is_cut_off;
    if (view.out_of_memory) view.why_no_peak = column.is_cut_off ? "out of memory" : "does not fit";
    if (column.peak_phase) view.peak_phase_text = name_of(*column.peak_phase);
    if (view.peak_bytes <= 0) {
        view.peak_text = view.out_of_memory ? view.why_no_peak : kNoValue;
        return;
    }
    const std::string_view least = column.is_cut_off ? "≥ " : "";
    view.short_peak_text = fmt::format("{}{}", least, format_bytes(view.peak_bytes));
    view.peak_text = view.out_of_memory
                         ? fmt::format("{}{}, {}", least, peak_of_limit(column), view.why_no_peak)
                         : view.short_peak_text;
}

std::string loss_text(const ComparisonColumn& column) {
    if (!column.loss) return kNoValue;
    if (!std::isfinite(*column.loss)) return "not finite";
    return fmt::format("{:.6g}", *column.loss);
}

CompareColumn build_column(const ComparisonColumn& column, std::size_t index) {
    CompareColumn view;
    view.recipe = column.recipe;
    view.index = index;
    view.is_baseline = column.baseline == index;
    view.is_planned = column.is_planned;
    view.is_predicted = column.source == Source::kPredicted;
    view.memory_is_predicted = has_predicted_memory(column);
    view.source = describe(column.source);
    view.files = column.files;
    add_peak(column, view);
    view.saved_bytes = column.saved_bytes;
    // A step may save nothing, as one checkpointed layer does.
    const bool has_step =
        column.steps > 0 || column.saved_bytes > 0 || !column.memory_planned_for.empty();
    view.saved_text = column.knows_saved && has_step ? format_bytes(view.saved_bytes) : kNoValue;
    add_times(column, view);
    add_curve(column, view);
    view.max_batch_size = column.max_batch.exact();
    view.largest_batch = view.max_batch_size.value_or(column.max_batch.at_least.value_or(0));
    view.max_batch_text = or_no_value(bounds_text(column.max_batch));
    view.loss_text = loss_text(column);
    return view;
}

double best_rate(const CompareColumn& view) {
    return view.best_point ? view.curve[*view.best_point].sequences_per_s : 0;
}

/// Whether the step times at the two best batches overlap.
bool best_rates_overlap(const CompareColumn& a, const CompareColumn& b) {
    if (!a.best_point || !b.best_point) return true;
    const CurvePoint &x = a.curve[*a.best_point], &y = b.curve[*b.best_point];
    return x.sequences_per_s_min <= y.sequences_per_s_max &&
           y.sequences_per_s_min <= x.sequences_per_s_max;
}

/// Where steps were measured in turn, their pairs are compared, not their medians.
void add_changes_of_step_time(const ComparisonColumn& own, const ComparisonColumn& own_baseline,
                              CompareColumn& view) {
    view.was_in_turn = own.step_ratio.has_value();
    if (own.step_ratio && !own.step_ratio->has_enough_pairs()) return;
    view.throughput_change =
        change_of(own.sequences_per_s, own_baseline.sequences_per_s, Better::kMore);
    if (own.step_ratio) {
        view.step_ratio_text = ratio_text(*own.step_ratio);
        view.step_ratio_tone = change_of(own.step_ratio->median, 1, Better::kLess).tone;
    } else {
        view.step_time_change =
            change_of(static_cast<double>(own.step_time_ns),
                      static_cast<double>(own_baseline.step_time_ns), Better::kLess);
    }
    if (own.source != Source::kPredicted && speed_is_uncertain(own, own_baseline)) {
        view.throughput_change.tone = view.step_time_change.tone = view.step_ratio_tone =
            Tone::kNeutral;
    }
}

/// Only for captures on one machine: between two machines, the recipe is not the only difference.
void add_changes_of_speed(const ComparisonColumn& own, const ComparisonColumn& own_baseline,
                          const CompareColumn& baseline, CompareColumn& view) {
    if (own.source != own_baseline.source || own.device != own_baseline.device) return;
    const bool same_batch = is_comparable(own, own_baseline);
    if (same_batch && !has_bad_times(own) && !has_bad_times(own_baseline)) {
        add_changes_of_step_time(own, own_baseline, view);
    }
    view.best_change = change_of(best_rate(view), best_rate(baseline), Better::kMore);
    if (best_rates_overlap(view, baseline)) view.best_change.tone = Tone::kNeutral;
}

/// A plan's peak stands beside a measurement, or beside a prediction of another GPU.
bool is_plan_of_another_device(const ComparisonColumn& a, const ComparisonColumn& b) {
    const auto device_of_peak = [](const ComparisonColumn& column) -> const std::string& {
        return column.memory_planned_for.empty() ? column.device : column.memory_planned_for;
    };
    const bool is_planned = !a.memory_planned_for.empty() || !b.memory_planned_for.empty();
    return is_planned && device_of_peak(a) != device_of_peak(b);
}

void add_changes_of_memory(bool same_batch, const CompareColumn& baseline, CompareColumn& view) {
    const auto bytes = [](int64_t size_bytes) { return static_cast<double>(size_bytes); };
    if (same_batch) {
        view.peak_change =
            change_of(bytes(view.peak_bytes), bytes(baseline.peak_bytes), Better::kLess);
        view.saved_change =
            change_of(bytes(view.saved_bytes), bytes(baseline.saved_bytes), Better::kLess);
    }
    if (view.max_batch_size && baseline.max_batch_size) {
        view.max_batch_change =
            change_of(bytes(*view.max_batch_size), bytes(*baseline.max_batch_size), Better::kMore);
    }
}

/// "Measured on the CPU (AMD EPYC 7763), median of 3 steps." Each source is named once.
std::string describe_sources(const Comparison& comparison) {
    std::vector<std::string> texts;
    for (const ComparisonColumn& column : comparison.columns) {
        if (column.is_cut_off && comparison.columns.size() > 1) continue;
        std::string text(describe(column.source));
        if (!column.device.empty()) text += fmt::format(" ({})", column.device);
        if (column.steps == 1 && text.starts_with("measured")) text += ", one step";
        if (column.steps > 1) text += fmt::format(", median of {} steps", column.steps);
        if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
    return capitalized(fmt::format("{}", fmt::join(texts, "; ")));
}

void find_axis_ends(CompareView& view) {
    for (const CompareColumn& column : view.columns) {
        view.max_peak_bytes = std::max(view.max_peak_bytes, column.peak_bytes);
        view.max_batch_size = std::max(view.max_batch_size, column.max_batch_size.value_or(0));
        view.has_peak |= column.peak_bytes > 0;
        view.has_max_batch |= column.out_of_memory_batch.has_value();
        view.has_throughput |= !column.curve.empty();
        for (const CurvePoint& point : column.curve) {
            view.max_batch_size = std::max(view.max_batch_size, point.batch_size);
            view.max_sequences_per_s =
                std::max(view.max_sequences_per_s, point.sequences_per_s_max);
        }
    }
    view.categories = categories_where([&](Category category) {
        return std::ranges::any_of(view.columns, [&](const CompareColumn& column) {
            return std::ranges::find(column.stack, category, &StackSegment::category) !=
                   column.stack.end();
        });
    });
}

/// The memory that the captured steps had, if it was the same for all.
void find_step_limit(const Comparison& comparison, CompareView& view) {
    int64_t limit_bytes = 0;
    for (const ComparisonColumn& column : comparison.columns) {
        if (!column.step_trace) continue;
        if (column.step_limit_bytes <= 0) return;
        if (limit_bytes != 0 && limit_bytes != column.step_limit_bytes) return;
        limit_bytes = column.step_limit_bytes;
    }
    if (!is_near_limit(view.max_peak_bytes, limit_bytes)) return;
    view.step_limit_bytes = limit_bytes;
    view.max_peak_bytes = std::max(view.max_peak_bytes, limit_bytes);
}

void describe_sweeps(const Comparison& comparison, CompareView& view) {
    std::optional<int64_t> limit_bytes;
    bool limits_differ = false;
    for (const ComparisonColumn& column : comparison.columns) {
        if (column.curve.empty()) continue;
        limits_differ |= limit_bytes && *limit_bytes != column.memory_limit_bytes;
        limit_bytes = column.memory_limit_bytes;
    }
    if (limit_bytes && !limits_differ && *limit_bytes > 0) {
        view.memory_limit_text = format_bytes(*limit_bytes);
    }
    if (!view.has_throughput) {
        const bool predicted = std::ranges::all_of(comparison.columns, [](const auto& column) {
            return column.source == Source::kPredicted;
        });
        view.no_throughput_text =
            predicted ? "A predicted step has no sweep; `temposcope plan` computes what fits."
                      : "These files hold no sweep; run `temposcope sweep`.";
    }
    const bool is_busy = std::ranges::any_of(
        comparison.columns, [](const auto& column) { return has_bad_times(column); });
    view.no_rate_text = is_busy ? "The machine was busy during these steps; capture them again."
                                : view.no_throughput_text;
    if (view.has_max_batch) return;
    view.no_max_batch_text =
        !view.has_throughput
            ? view.no_throughput_text
            : fmt::format(
                  "Every batch up to {} fitted. Sweep with a memory limit to find the maximum.",
                  view.max_batch_size);
}

/// Where the recorded steps had several batches, each column says which one it had. The batch of a
/// snapshot is not known.
void add_batches(const Comparison& comparison, CompareView& view) {
    std::set<int64_t> batches;
    const auto has_batch = [](const ComparisonColumn& column) {
        return column.peak_allocated_bytes > 0 && column.batch_size > 0;
    };
    for (const ComparisonColumn& column : comparison.columns) {
        if (has_batch(column)) batches.insert(column.batch_size);
    }
    if (batches.size() < 2) return;
    for (CompareColumn& column : view.columns) {
        const ComparisonColumn& own = comparison.columns[column.index];
        if (has_batch(own)) column.batch_text = fmt::format("batch {}", own.batch_size);
    }
}

std::string peak_at_batch(const CompareColumn& view) {
    return view.batch_text.empty() ? view.peak_text : view.peak_text + " at " + view.batch_text;
}

/// A row for each column of the comparison.
TextTable build_compare_table(const std::vector<CompareColumn>& views) {
    TextTable table;
    table.rows.resize(views.size());
    table.tones.resize(views.size());
    const auto add = [&](std::size_t row, const std::string& text, Tone tone) {
        table.rows[row].push_back(or_no_value(text));
        table.tones[row].push_back(tone);
    };
    for (const CompareFigure& figure : compare_figures()) {
        if (figure.column.title.empty()) continue;
        table.columns.push_back(figure.column);
        for (std::size_t i = 0; i < views.size(); ++i)
            add(i, figure.text(views[i]), Tone::kNeutral);
        if (figure.what_changes.empty()) continue;
        table.columns.push_back({"Change", Align::kRight,
                                 fmt::format("Change of {} from the first recipe of the same step.",
                                             figure.what_changes)});
        for (std::size_t i = 0; i < views.size(); ++i) {
            const Change change = figure.change(views[i]);
            add(i, change.text, change.tone);
        }
    }
    return table;
}

void add_colors(const Comparison& comparison, CompareView& view) {
    const std::vector<std::size_t> colors = comparison_colors(comparison);
    for (std::size_t i = 0; i < colors.size(); ++i) view.columns[i].color = colors[i];
}

}  // namespace

std::vector<CompareFigure> compare_figures() {
    using View = CompareColumn;
    const auto number = [](const char* title, const char* explanation) {
        return TextTable::Column{title, Align::kRight, explanation};
    };
    // A terminal has the ratio of pairs below its table, in place of changes of the medians.
    const auto change_unless_in_turn = [](const View& view) {
        return view.was_in_turn ? Change() : view.throughput_change;
    };
    return {
        {"",
         {"Recipe", Align::kLeft,
          "The techniques that are switched on. Changes compare with the first recipe of the same "
          "step."},
         &View::recipe},
        {"batch of the step", {}, &View::batch_text},
        {"peak allocated", {}, &View::peak_text, &View::peak_change},
        {"",
         number(kPeakAllocated, "The most bytes in tensors at one time during the recorded steps."),
         peak_at_batch, &View::peak_change, "the peak"},
        {"peak lies in",
         {"Peak in", Align::kLeft, "The phase of the step in which the peak is reached."},
         &View::peak_phase_text},
        {"saved for backward",
         number("Saved for backward",
                "Bytes that autograd holds from forward to backward: the ledger's total."),
         &View::saved_text, &View::saved_change, "the saved bytes"},
        {"step time", number("Step", "Median duration of the recorded steps."),
         &View::step_time_text, &View::step_time_change},
        {"sequences/s", {}, &View::throughput_text, change_unless_in_turn},
        {"",
         number("Sequences/s", "Batch size divided by the median duration of the recorded steps."),
         &View::throughput_text, &View::throughput_change, "the throughput"},
        {"largest batch",
         number(kLargestBatch, "The largest batch that trained under the sweep's memory limit."),
         &View::max_batch_text, &View::max_batch_change, "the largest batch"},
        {"best sequences/s",
         number(kBestRate,
                "The highest throughput in the sweep, and the batch size that reached it."),
         &View::best_text, &View::best_change, "the best throughput"},
        {"",
         number(kLossTitle,
                "Loss of the last recorded step. Recipes that compute the same function have the "
                "same loss."),
         &View::loss_text}};
}

std::vector<std::size_t> comparison_colors(const Comparison& comparison) {
    std::vector<std::string> recipes;
    for (const ComparisonColumn& column : comparison.columns) {
        recipes.push_back(column.recipe_of_trace.empty() ? column.recipe : column.recipe_of_trace);
    }
    return recipe_color_indices(recipes);
}

CompareView build_compare_view(const Comparison& comparison) {
    CompareView view;
    view.workload = comparison.workload;
    view.sentence = comparison.sentence;
    view.notes = comparison.notes;
    view.source = describe_sources(comparison);
    for (const ComparisonColumn& column : comparison.columns) {
        view.columns.push_back(build_column(column, view.columns.size()));
    }
    add_colors(comparison, view);
    add_batches(comparison, view);
    for (CompareColumn& column : view.columns) {
        if (column.is_baseline) continue;
        const ComparisonColumn& own = comparison.columns[column.index];
        const CompareColumn& baseline = view.columns[own.baseline];
        if (own.is_cut_off || comparison.columns[own.baseline].is_cut_off) continue;
        const ComparisonColumn& own_baseline = comparison.columns[own.baseline];
        const bool same_step = is_comparable(own, own_baseline);
        add_changes_of_memory(same_step && !is_plan_of_another_device(own, own_baseline), baseline,
                              column);
        add_changes_of_speed(own, own_baseline, baseline, column);
    }
    view.has_one_baseline =
        std::ranges::count_if(view.columns, [](const auto& c) { return c.is_baseline; }) == 1;
    find_axis_ends(view);
    find_step_limit(comparison, view);
    describe_sweeps(comparison, view);
    view.table = build_compare_table(view.columns);
    return view;
}

// ---- what a plan says -------------------------------------------------------------------------

namespace {

const PlanRow* find_row(const Plan& plan, const std::string& recipe) {
    const auto found = std::ranges::find_if(
        plan.rows, [&](const PlanRow& row) { return row.workload.recipe_name == recipe; });
    return found == plan.rows.end() ? nullptr : &*found;
}

ComparisonColumn* find_column(Comparison& comparison, const std::string& recipe) {
    const auto found =
        std::ranges::find(comparison.columns, recipe, &ComparisonColumn::recipe_of_trace);
    return found == comparison.columns.end() ? nullptr : &*found;
}

/// What the plan's batch needs; its status says if it does not fit.
void take_memory(const PlanRow& row, ComparisonColumn& column) {
    column.memory_planned_for = row.device_name();
    column.batch_size = row.batch_size.value_or(0);
    if (row.status != PlanStatus::kOk) column.out_of_memory = row.reason;
    column.knows_saved = row.memory && row.memory->saved_bytes;
    if (!row.memory) return;
    column.peak_allocated_bytes = row.memory->contents.peaks.peak_allocated_bytes;
    column.peak_reserved_bytes = row.memory->contents.peaks.peak_reserved_bytes;
    column.peak_phase = row.memory->contents.peak_phase;
    column.peak_by_category = row.memory->contents.by_category;
    column.saved_bytes = row.memory->saved_bytes.value_or(0);
}

ComparisonColumn planned_column(const PlanRow& row) {
    ComparisonColumn column{.recipe = row.workload.recipe_name,
                            .recipe_of_trace = row.workload.recipe_name,
                            .source = Source::kPredicted,
                            .device = row.device_name(),
                            .is_planned = true};
    take_memory(row, column);
    if (row.time) column.step_time_ns = std::llround(row.time->total_ns());
    column.sequences_per_s = row.sequences_per_s;
    return column;
}

/// Fills the cells of what no sweep has measured: "55 predicted". A recipe that is predicted as a
/// whole says so beside its name.
void add_to_table(CompareView& view) {
    TextTable& table = view.table;
    const auto put = [&](const CompareColumn& column, std::string_view title,
                         const std::string& value, const Change& change, std::string_view note) {
        const auto found = std::ranges::find_if(
            table.columns, [&](const auto& one) { return one.title == title; });
        const auto cell = static_cast<std::size_t>(found - table.columns.begin());
        if (cell + 1 >= table.columns.size() || value.empty() || value == kNoValue) return;
        std::vector<std::string>& cells = table.rows[column.index];
        if (cells[cell] != kNoValue) return;
        cells[cell] = fmt::format("{}{}{}", value, column.is_predicted ? "" : " predicted", note);
        cells[cell + 1] = change.empty() ? kNoValue : change.text;
        table.tones[column.index][cell + 1] = change.tone;
    };
    for (const CompareColumn& column : view.columns) {
        if (!column.planned) continue;
        put(column, kLargestBatch, max_batch_text(*column.planned), column.planned_max_batch_change,
            max_batch_note(*column.planned));
        put(column, kBestRate, best_text(*column.planned), column.planned_best_change, "");
    }
}

/// Changes against the baseline's prediction. A measured baseline shows its measurement instead,
/// and a prediction for one GPU does not compare with a measurement on another.
void add_changes(CompareView& view) {
    const CompareColumn& first = view.columns.front();
    if (!first.planned) return;
    const PlanRow& baseline = *first.planned;
    for (CompareColumn& column : view.columns) {
        if (!column.planned || column.is_baseline) continue;
        const PlanRow& planned = *column.planned;
        if (first.max_batch_text == kNoValue) {
            column.planned_max_batch_change =
                change_of(static_cast<double>(planned.max_batch_size.value_or(0)),
                          static_cast<double>(baseline.max_batch_size.value_or(0)), Better::kMore);
        }
        if (first.best_text.empty()) {
            column.planned_best_change = change_of(planned.best_sequences_per_s,
                                                   baseline.best_sequences_per_s, Better::kMore);
        }
    }
}

}  // namespace

void add_planned_columns(Comparison& comparison, const Plan& plan) {
    for (const ComparisonColumn& column : comparison.columns) {
        if (column.baseline != 0) return;
    }
    for (const PlanRow& row : plan.rows) {
        if (row.status == PlanStatus::kNotSupported) continue;
        ComparisonColumn* const column = find_column(comparison, row.workload.recipe_name);
        if (column == nullptr) {
            comparison.columns.push_back(planned_column(row));
        } else if (column->peak_allocated_bytes == 0) {
            take_memory(row, *column);
        }
    }
}

void add_plan(CompareView& view, const Comparison& comparison, const Plan& plan) {
    if (plan.rows.empty() || view.columns.empty()) return;
    view.planned_on = plan.rows.front().gpu.name;
    view.planned_mark = "predicted";
    const std::string& device = comparison.columns.front().device;
    if (device != view.planned_on && !device.starts_with(view.planned_on + " with ")) {
        view.planned_mark += fmt::format(", {}", short_gpu_name(view.planned_on));
    }
    for (CompareColumn& column : view.columns) {
        const ComparisonColumn& own = comparison.columns[column.index];
        if (own.baseline != 0) continue;
        if (const PlanRow* row = find_row(plan, own.recipe_of_trace)) column.planned = *row;
    }
    add_changes(view);
    add_to_table(view);
}

namespace {

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
    return all;
}

}  // namespace

DataTable compare_data(const Comparison& comparison, const CompareView& view) {
    DataTable table{.columns = {"recipe", "source", "device", "batch_size", "steps",
                                "peak_allocated_bytes", "peak_reserved_bytes"}};
    for (const Category category : view.categories) {
        table.columns.push_back(fmt::format("peak_{}_bytes", name_of(category)));
    }
    for (const char* name : {"kept_bytes", "step_time_ns", "throughput_sequences_per_s",
                             "max_batch_size", "best_batch_size", "best_throughput_sequences_per_s",
                             "predicted_for", "predicted_max_batch_size",
                             "predicted_best_throughput_sequences_per_s", "loss", "files"}) {
        table.columns.emplace_back(name);
    }
    for (const CompareColumn& shown : view.columns) {
        const ComparisonColumn& column = comparison.columns[shown.index];
        std::vector<Cell> row{shown.recipe,
                              name_of(column.source),
                              column.device,
                              known(column.batch_size),
                              known(column.steps),
                              known(column.peak_allocated_bytes),
                              known(column.peak_reserved_bytes)};
        for (const Category category : view.categories) {
            row.emplace_back(column.peak_by_category[static_cast<std::size_t>(category)]);
        }
        row.emplace_back(column.saved_bytes);
        row.push_back(known(shown.sequences_per_s > 0 ? column.step_time_ns : 0));
        row.push_back(known(shown.sequences_per_s));
        row.push_back(shown.max_batch_size);
        row.push_back(column.best_batch_size);
        row.push_back(column.best_sequences_per_s);
        const PlanRow planned = shown.planned.value_or(PlanRow{});
        row.emplace_back(shown.planned ? Cell(view.planned_on) : Cell());
        row.push_back(known(planned.max_batch_size.value_or(0)));
        row.push_back(known(planned.best_sequences_per_s));
        row.push_back(column.loss);
        row.emplace_back(joined(shown.files));
        table.rows.push_back(std::move(row));
    }
    return table;
}

DataTable throughput_data(const Comparison& comparison, const CompareView& view) {
    DataTable table{.columns = {"recipe", "kind", "batch_size", "outcome", "step_time_ns",
                                "step_time_min_ns", "step_time_max_ns",
                                "throughput_sequences_per_s", "peak_allocated_bytes"}};
    for (const CompareColumn& shown : view.columns) {
        for (const ThroughputPoint& point : comparison.columns[shown.index].curve) {
            const bool failed = point.out_of_memory;
            table.rows.push_back({shown.recipe, "measured", point.batch_size,
                                  name_of(failed ? SweepOutcome::kOutOfMemory : SweepOutcome::kOk),
                                  known(point.step_time_ns), known(point.step_time_min_ns),
                                  known(point.step_time_max_ns), known(point.sequences_per_s),
                                  known(point.peak_allocated_bytes)});
        }
        if (!shown.planned) continue;
        for (const PlanPoint& point : shown.planned->curve) {
            table.rows.push_back({shown.recipe, "predicted", point.batch_size,
                                  name_of(SweepOutcome::kOk), Cell(), Cell(), Cell(),
                                  known(point.sequences_per_s), Cell()});
        }
    }
    return table;
}

Change change_of(double value, double baseline, Better better) {
    if (!(value > 0) || !(baseline > 0)) return {};
    Change change;
    change.ratio = value / baseline - 1;
    change.text = format_percent(change.ratio, /*with_sign=*/true);
    // Half a unit of the last digit: a change that reads as 0.0 % is neither good nor bad.
    if (std::abs(change.ratio) >= 0.0005) {
        const bool is_less = change.ratio < 0;
        change.tone = is_less == (better == Better::kLess) ? Tone::kGood : Tone::kBad;
    }
    return change;
}

std::string bounds_text(const BatchBounds& bounds) {
    if (const auto exact = bounds.exact()) return format_count(*exact);
    std::vector<std::string> parts;
    if (bounds.at_least) parts.push_back("≥ " + format_count(*bounds.at_least));
    if (bounds.below) parts.push_back("< " + format_count(*bounds.below));
    return fmt::to_string(fmt::join(parts, ", "));
}

std::vector<StackSegment> build_stack(const CategoryBytes& by_category) {
    std::vector<StackSegment> stack;
    int64_t start_bytes = 0;
    for (const Category category : kCategoryStackOrder) {
        const int64_t size_bytes = by_category[static_cast<std::size_t>(category)];
        if (size_bytes <= 0) continue;
        stack.push_back({category, start_bytes, size_bytes, format_bytes(size_bytes)});
        start_bytes += size_bytes;
    }
    return stack;
}

}  // namespace profiler
