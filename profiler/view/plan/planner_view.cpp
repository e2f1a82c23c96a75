#include "profiler/view/plan/planner_view.h"

#include "profiler/planner/step/kernel_model.h"
#include "profiler/trace/units.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace profiler {
namespace {

constexpr double kBytesHeadroom = 1.25;  // above the ceiling, for the labels of the crossings
constexpr double kBatchHeadroom = 1.12;
constexpr int kSpeedPoints = 64;

void set_axes(PlannerView& view) {
    view.axes.last_bytes = static_cast<double>(view.usable_bytes) * kBytesHeadroom;
    for (const PlannerRecipe& recipe : view.recipes) {
        const auto max_batch = static_cast<double>(recipe.row.max_batch_size.value_or(0));
        view.axes.last_batch = std::max(
            view.axes.last_batch, static_cast<int64_t>(std::ceil(max_batch * kBatchHeadroom)));
        if (!recipe.row.memory_curve.empty()) {
            const auto least = static_cast<double>(recipe.row.memory_curve.front().needed_bytes);
            view.axes.last_bytes = std::max(view.axes.last_bytes, 1.1 * least);
        }
    }
}

void add_memory_line(PlannerRecipe& recipe, const PlannerView& view) {
    const auto add = [&](int64_t batch_size) {
        const auto batch = static_cast<double>(batch_size);
        recipe.memory_x.push_back(batch);
        recipe.memory_y.push_back(static_cast<double>(memory_at(recipe.row, batch).needed_bytes));
    };
    const std::vector<MemoryPoint>& curve = recipe.row.memory_curve;
    for (const MemoryPoint& point : curve) add(point.batch_size);
    if (curve.size() > 1 && curve.back().batch_size < view.axes.last_batch)
        add(view.axes.last_batch);
}

void add_speed_line(PlannerRecipe& recipe, PlannerView& view) {
    if (!has_times(recipe.row)) return;
    const auto first = static_cast<double>(recipe.row.curve.front().batch_size);
    const auto last = static_cast<double>(recipe.row.curve.back().batch_size);
    for (int i = 0; i < kSpeedPoints; ++i) {
        const double batch = first + (last - first) * i / (kSpeedPoints - 1);
        const double rate = speed_at(recipe.row, batch).sequences_per_s;
        recipe.speed_x.push_back(batch);
        recipe.speed_y.push_back(rate);
        view.axes.last_rate = std::max(view.axes.last_rate, 1.15 * rate);
        if (!recipe.row.time_accuracy) continue;
        // The rate is the inverse of the time.
        recipe.speed_low.push_back(rate * (1 - recipe.row.time_accuracy->error));
        recipe.speed_high.push_back(rate * (1 + recipe.row.time_accuracy->error));
        view.axes.last_rate = std::max(view.axes.last_rate, 1.05 * recipe.speed_high.back());
    }
}

std::vector<PlannerPart> parts_of(const MemoryPoint& memory) {
    std::vector<PlannerPart> parts{{.label = "CUDA context, rounding"}};
    int64_t others = memory.needed_bytes - memory.gap_bytes;
    for (const Category category : kCategoryStackOrder) {
        const int64_t bytes = memory.by_category[static_cast<std::size_t>(category)];
        if (bytes == 0) continue;
        others -= bytes;
        parts.push_back({category, std::string(label_of(category)), bytes});
    }
    parts.front().bytes = std::max<int64_t>(0, others);
    if (memory.gap_bytes > 0) {
        parts.push_back(
            {.label = "Gaps between blocks", .bytes = memory.gap_bytes, .is_gap = true});
    }
    return parts;
}

/// "11.1 of 14.6 GiB"; each with its unit where those differ.
std::string gauge_text(int64_t needed_bytes, int64_t usable_bytes) {
    const std::string needed = format_bytes(needed_bytes);
    const std::string usable = format_bytes(usable_bytes);
    const std::size_t unit = needed.rfind(' ');
    const bool same = unit != needed.npos && usable.ends_with(needed.substr(unit));
    return fmt::format("{} of {}", same ? needed.substr(0, unit) : needed, usable);
}

/// "Batch 14: 583 sequences/s"
std::string with_rate(std::string text, const PlanRow& row, int64_t batch_size) {
    const std::string rate = figures_at(row, batch_size).rate_text;
    return rate.empty() ? text : fmt::format("{}: {} sequences/s", text, rate);
}

/// Only from what was planned: nothing is estimated for recipes that were not.
std::vector<PlannerFix> fixes_for(const PlannerView& view, std::size_t index, int64_t batch_size) {
    std::vector<PlannerFix> fixes;
    const PlanRow& own = view.recipes[index].row;
    if (const int64_t largest = own.max_batch_size.value_or(0); largest > 0) {
        fixes.push_back({.text = with_rate("Batch " + max_batch_text(own), own, largest),
                         .batch_size = largest});
    }
    std::optional<std::size_t> fastest;
    double highest = -1;
    for (std::size_t i = 0; i < view.recipes.size(); ++i) {
        const PlanRow& row = view.recipes[i].row;
        if (row.max_batch_size.value_or(0) < batch_size) continue;
        const auto batch = static_cast<double>(batch_size);
        const double rate = has_times(row) ? speed_at(row, batch).sequences_per_s : 0;
        if (rate <= highest) continue;
        fastest = i;
        highest = rate;
    }
    if (fastest) {
        const PlannerRecipe& other = view.recipes[*fastest];
        fixes.push_back(
            {.text = with_rate(other.name(), other.row, batch_size), .recipe = fastest});
    }
    return fixes;
}

/// A pin of a much larger step must not press the plan into a corner.
constexpr double kMostGrowth = 2;

double grown(double own, double of_pin, bool has_own) {
    if (!has_own) return of_pin;
    return std::max(own, std::min(of_pin, own * kMostGrowth));
}

double last_of(const std::vector<double>& values) { return values.empty() ? 0 : values.back(); }

}  // namespace

PlannerView build_planner_view(const Plan& plan) {
    PlannerView view;
    for (const PlanRow& row : plan.rows) {
        view.gpu = row.gpu.name;
        view.usable_bytes = static_cast<int64_t>(row.gpu.usable_memory_bytes.value);
        view.recipes.push_back({.row = row});
        add_notes(row, view.notes);
    }
    set_axes(view);
    for (PlannerRecipe& recipe : view.recipes) {
        add_memory_line(recipe, view);
        add_speed_line(recipe, view);
        if (!recipe.speed_low.empty()) {
            view.band_text = recipe.row.time_accuracy->text();
        }
    }
    return view;
}

PlanFigures planner_figures(const PlannerRecipe& recipe, int64_t batch_size) {
    PlanFigures figures = figures_at(recipe.row, batch_size);
    if (!figures.fits) figures.step_text = figures.rate_text = {};
    return figures;
}

PlannerReading read_planner(const PlannerView& view, std::size_t index, int64_t batch_size) {
    if (index >= view.recipes.size()) return {};
    const PlanRow& row = view.recipes[index].row;
    PlannerReading reading{.figures = planner_figures(view.recipes[index], batch_size)};
    if (row.memory_curve.empty()) return reading;
    reading.gauge_text = gauge_text(reading.figures.needed_bytes, view.usable_bytes);
    reading.parts = parts_of(memory_at(row, static_cast<double>(batch_size)));
    if (!reading.figures.fits) reading.fixes = fixes_for(view, index, batch_size);
    return reading;
}

PlannerPin pin_of(const PlannerView& view, std::size_t recipe, int64_t batch_size,
                  std::string detail) {
    return {.recipe = recipe < view.recipes.size()
                          ? view.recipes[recipe]
                          : PlannerRecipe{.row = {.workload = {.recipe_name = ""}}},
            .detail = std::move(detail),
            .batch_size = batch_size,
            .figures = read_planner(view, recipe, batch_size).figures};
}

PlannerAxes axes_of(const PlannerView& view, std::span<const PlannerPin> pins) {
    PlannerAxes axes = view.axes;
    double batch = static_cast<double>(view.axes.last_batch);
    const bool has_own = std::ranges::any_of(
        view.recipes, [](const auto& recipe) { return !recipe.speed_x.empty(); });
    for (const PlannerPin& pin : pins) {
        const PlannerRecipe& recipe = pin.recipe;
        const double fastest =
            recipe.speed_y.empty() ? 0 : *std::ranges::max_element(recipe.speed_y);
        batch = std::max(batch, grown(static_cast<double>(view.axes.last_batch),
                                      1.05 * last_of(recipe.speed_x), has_own));
        axes.last_rate =
            std::max(axes.last_rate, grown(view.axes.last_rate, 1.1 * fastest, has_own));
    }
    axes.last_batch = static_cast<int64_t>(batch);
    return axes;
}

DataTable planner_data(const PlannerView& view) {
    DataTable table{.columns = {"recipe", "gpu", "batch_size", "needed_bytes", "usable_bytes",
                                "step_time_ns", "throughput_sequences_per_s", "max_batch_size"}};
    for (const PlannerRecipe& recipe : view.recipes) {
        struct Figures {
            Cell bytes, step_time_ns, rate;
        };
        std::map<int64_t, Figures> by_batch;
        for (const MemoryPoint& point : recipe.row.memory_curve) {
            by_batch[point.batch_size].bytes = point.needed_bytes;
        }
        for (const PlanPoint& point : recipe.row.curve) {
            by_batch[point.batch_size].step_time_ns = point.step_time_ns;
            by_batch[point.batch_size].rate = point.sequences_per_s;
        }
        for (const auto& [batch, figures] : by_batch) {
            table.rows.push_back({recipe.name(), view.gpu, batch, figures.bytes, view.usable_bytes,
                                  figures.step_time_ns, figures.rate,
                                  known(recipe.row.max_batch_size.value_or(0))});
        }
    }
    return table;
}

}  // namespace profiler
