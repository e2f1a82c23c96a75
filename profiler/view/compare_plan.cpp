#include "profiler/view/compare_plan.h"

#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/compare_figures.h"
#include "profiler/view/no_value.h"
#include "profiler/view/plan_view.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

const PlanRow* find_row(const Plan& plan, const std::string& recipe) {
    const auto found = std::find_if(plan.rows.begin(), plan.rows.end(), [&](const PlanRow& row) {
        return row.workload.recipe_name == recipe;
    });
    return found == plan.rows.end() ? nullptr : &*found;
}

ComparisonColumn* find_column(Comparison& comparison, const std::string& recipe) {
    const auto found = std::find_if(
        comparison.columns.begin(), comparison.columns.end(),
        [&](const ComparisonColumn& column) { return column.recipe_of_trace == recipe; });
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

PlannedRecipe planned_recipe(const PlanRow& row) {
    PlannedRecipe planned{.max_batch_size = row.max_batch_size,
                          .max_batch_text = max_batch_text(row),
                          .why = row.reason,
                          .other_limit = capitalized(row.other_limit),
                          .max_batch_note = max_batch_note(row),
                          .is_too_large = row.status == PlanStatus::kDoesNotFit,
                          .best_sequences_per_s = row.best_sequences_per_s};
    if (planned.max_batch_size == 0) planned.max_batch_size.reset();
    for (const PlanPoint& point : row.curve) {
        const std::string text = fmt::format("batch {}: {} sequences/s predicted", point.batch_size,
                                             rate_text(point.sequences_per_s));
        planned.curve.push_back({.batch_size = point.batch_size,
                                 .sequences_per_s = point.sequences_per_s,
                                 .sequences_per_s_min = point.sequences_per_s,
                                 .sequences_per_s_max = point.sequences_per_s,
                                 .text = text});
    }
    if (row.best_batch_size) {
        planned.best_text = fmt::format("{} at batch {}", rate_text(row.best_sequences_per_s),
                                        *row.best_batch_size);
    }
    return planned;
}

/// Fills the cells of what no sweep has measured: "55 predicted". A recipe that is predicted as a
/// whole says so beside its name.
void add_to_table(CompareView& view) {
    TextTable& table = view.table;
    const auto put = [&](const CompareColumn& column, std::string_view title,
                         const std::string& value, const Change& change, std::string_view note) {
        const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                        [&](const auto& one) { return one.title == title; });
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
        put(column, kLargestBatch, column.planned->max_batch_text, column.planned->max_batch_change,
            column.planned->max_batch_note);
        put(column, kBestRate, column.planned->best_text, column.planned->best_change, "");
    }
}

/// From the baseline's prediction. There is none where the baseline was measured: that is what is
/// shown of it, and a prediction for one GPU does not compare with a measurement on another.
void add_changes(CompareView& view) {
    const CompareColumn& first = view.columns.front();
    if (!first.planned) return;
    const PlannedRecipe& baseline = *first.planned;
    for (CompareColumn& column : view.columns) {
        if (!column.planned || column.is_baseline) continue;
        PlannedRecipe& planned = *column.planned;
        if (first.max_batch_text == kNoValue) {
            planned.max_batch_change =
                change_of(static_cast<double>(planned.max_batch_size.value_or(0)),
                          static_cast<double>(baseline.max_batch_size.value_or(0)), Better::kMore);
        }
        if (first.best_text.empty()) {
            planned.best_change = change_of(planned.best_sequences_per_s,
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
    view.planned_on = plan.rows.front().gpu->name;
    view.planned_mark = "predicted";
    const std::string& device = comparison.columns.front().device;
    if (device != view.planned_on && !device.starts_with(view.planned_on + " with ")) {
        view.planned_mark += fmt::format(", {}", short_gpu_name(view.planned_on));
    }
    for (CompareColumn& column : view.columns) {
        const ComparisonColumn& own = comparison.columns[column.index];
        if (own.baseline != 0) continue;
        if (const PlanRow* row = find_row(plan, own.recipe_of_trace)) {
            column.planned = planned_recipe(*row);
        }
    }
    add_changes(view);
    add_to_table(view);
}

}  // namespace profiler
