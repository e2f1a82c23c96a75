#include "profiler/view/planner_view.h"

#include "profiler/planner/step/kernel_model.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/compare_figures.h"
#include "profiler/view/plan_view.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

constexpr double kBytesHeadroom = 1.25;  // above the ceiling, for the labels of the crossings
constexpr double kBatchHeadroom = 1.12;
constexpr int kSpeedPoints = 64;

/// The points around a batch. Beyond the last point, the line of the last two goes on.
struct Between {
    std::size_t low = 0;
    std::size_t high = 0;
    double share = 0;  // 0: at low, 1: at high

    double mix(double at_low, double at_high) const { return at_low + share * (at_high - at_low); }
};

template <typename Point>
Between around(const std::vector<Point>& points, double batch) {
    if (points.size() < 2) return {};
    std::size_t high = 1;
    while (high + 1 < points.size() && static_cast<double>(points[high].batch_size) < batch) ++high;
    const auto x0 = static_cast<double>(points[high - 1].batch_size);
    const auto x1 = static_cast<double>(points[high].batch_size);
    return {high - 1, high, x1 > x0 ? (batch - x0) / (x1 - x0) : 0};
}

}  // namespace

double memory_bytes_at(const PlannerRecipe& recipe, double batch) {
    const Between b = around(recipe.memory, batch);
    return b.mix(static_cast<double>(recipe.memory[b.low].needed_bytes),
                 static_cast<double>(recipe.memory[b.high].needed_bytes));
}

double step_ns_at(const PlannerRecipe& recipe, double batch) {
    const Between b = around(recipe.speed, batch);
    return b.mix(static_cast<double>(recipe.speed[b.low].step_time_ns),
                 static_cast<double>(recipe.speed[b.high].step_time_ns));
}

double rate_at(const PlannerRecipe& recipe, double batch) {
    const Between b = around(recipe.speed, batch);
    const PlanPoint& known = recipe.speed[b.low];
    const double known_rate =
        static_cast<double>(known.batch_size) / static_cast<double>(known.step_time_ns);
    const double rate = batch / step_ns_at(recipe, batch);
    return known_rate > 0 ? rate * known.sequences_per_s / known_rate : 0;
}

PlannerRecipe make_planner_recipe(const PlanRow& row) {
    PlannerRecipe recipe{.name = row.workload.recipe_name, .memory = row.memory_curve};
    for (const PlanPoint& point : row.curve) {
        if (point.batch_size > 0 && point.step_time_ns > 0) recipe.speed.push_back(point);
    }
    if (row.max_batch_size.value_or(0) > 0) {
        recipe.max_batch = row.max_batch_size;
        recipe.other_limit = capitalized(row.other_limit);
        recipe.max_batch_note = max_batch_note(row);
    } else {
        recipe.why = row.reason;
    }
    if (row.times_are_calibrated == false) recipe.speed_error = kNotCalibratedError;
    recipe.max_batch_text = max_batch_text(row);
    if (recipe.max_batch && !recipe.memory.empty()) {
        recipe.bytes_at_max =
            std::llround(memory_bytes_at(recipe, static_cast<double>(*recipe.max_batch)));
    }
    return recipe;
}

namespace {

void set_axes(PlannerView& view) {
    view.last_bytes = static_cast<double>(view.usable_bytes) * kBytesHeadroom;
    for (const PlannerRecipe& recipe : view.recipes) {
        const auto wanted =
            std::ceil(static_cast<double>(recipe.max_batch.value_or(1)) * kBatchHeadroom);
        view.last_batch = std::max(view.last_batch, static_cast<int64_t>(wanted));
        if (!recipe.memory.empty()) {
            const auto least = static_cast<double>(recipe.memory.front().needed_bytes);
            view.last_bytes = std::max(view.last_bytes, 1.1 * least);
        }
    }
}

void add_memory_line(PlannerRecipe& recipe, const PlannerView& view) {
    if (recipe.memory.empty()) return;
    const auto add = [&](double batch) {
        recipe.memory_x.push_back(batch);
        recipe.memory_y.push_back(memory_bytes_at(recipe, batch));
    };
    for (const MemoryPoint& point : recipe.memory) add(static_cast<double>(point.batch_size));
    const auto last = static_cast<double>(view.last_batch);
    if (recipe.memory.size() > 1 && recipe.memory_x.back() < last) add(last);
}

void add_speed_line(PlannerRecipe& recipe, PlannerView& view) {
    if (recipe.speed.empty()) return;
    const auto first = static_cast<double>(recipe.speed.front().batch_size);
    const auto last = static_cast<double>(recipe.speed.back().batch_size);
    for (int i = 0; i < kSpeedPoints; ++i) {
        const double batch = first + (last - first) * i / (kSpeedPoints - 1);
        recipe.speed_x.push_back(batch);
        recipe.speed_y.push_back(rate_at(recipe, batch));
        view.last_rate = std::max(view.last_rate, 1.15 * recipe.speed_y.back());
        if (recipe.speed_error <= 0) continue;
        // The error is one of times: the rate is their inverse.
        recipe.speed_low.push_back(recipe.speed_y.back() / (1 + recipe.speed_error));
        recipe.speed_high.push_back(recipe.speed_y.back() / (1 - recipe.speed_error));
        view.last_rate = std::max(view.last_rate, 1.05 * recipe.speed_high.back());
    }
}

std::vector<PlannerPart> parts_at(const PlannerRecipe& recipe, double batch, int64_t needed_bytes) {
    const Between b = around(recipe.memory, batch);
    const auto mixed = [&](int64_t at_low, int64_t at_high) {
        return std::max<int64_t>(
            0, std::llround(b.mix(static_cast<double>(at_low), static_cast<double>(at_high))));
    };
    const MemoryPoint &low = recipe.memory[b.low], &high = recipe.memory[b.high];
    const int64_t gaps = mixed(low.gap_bytes, high.gap_bytes);
    std::vector<PlannerPart> parts{{.label = "CUDA context, rounding"}};
    int64_t others = needed_bytes - gaps;
    for (const Category category : kCategoryStackOrder) {
        const auto i = static_cast<std::size_t>(category);
        const int64_t bytes = mixed(low.by_category[i], high.by_category[i]);
        if (bytes == 0) continue;
        others -= bytes;
        parts.push_back({category, std::string(label_of(category)), bytes});
    }
    parts.front().bytes = std::max<int64_t>(0, others);
    if (gaps > 0) parts.push_back({.label = "Gaps between blocks", .bytes = gaps, .is_gap = true});
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

/// "Batch 48 needs 17.1 GiB, 2.5 GiB more than NVIDIA T4 has."
std::string why_not(const PlannerView& view, const PlannerRecipe& recipe, int64_t batch_size,
                    int64_t needed_bytes) {
    if (!recipe.other_limit.empty()) return recipe.other_limit;
    const std::string needed = format_bytes(needed_bytes);
    const int64_t missing_bytes = needed_bytes - view.usable_bytes;
    // Just above the largest batch, the line between planned batches may lie below the ceiling.
    if (missing_bytes <= 0) {
        return fmt::format("Batch {} needs a little more than the {} of {}.",
                           format_count(batch_size), format_bytes(view.usable_bytes), view.gpu);
    }
    return fmt::format("Batch {} needs {}, {} more than {} has.", format_count(batch_size), needed,
                       format_bytes(missing_bytes), view.gpu);
}

std::string with_rate(std::string text, const PlannerRecipe& recipe, double batch) {
    if (!recipe.speed.empty()) {
        text += fmt::format(": {} sequences/s", rate_text(rate_at(recipe, batch)));
    }
    return text;
}

/// Only from what was planned: nothing is estimated for recipes that were not.
std::vector<PlannerFix> fixes_for(const PlannerView& view, std::size_t index, int64_t batch_size) {
    std::vector<PlannerFix> fixes;
    const PlannerRecipe& recipe = view.recipes[index];
    if (recipe.max_batch) {
        const auto largest = static_cast<double>(*recipe.max_batch);
        fixes.push_back({.text = with_rate("Batch " + recipe.max_batch_text, recipe, largest),
                         .batch_size = recipe.max_batch});
    }
    std::optional<std::size_t> fastest;
    const auto batch = static_cast<double>(batch_size);
    const auto rate = [&](std::size_t i) {
        return view.recipes[i].speed.empty() ? 0 : rate_at(view.recipes[i], batch);
    };
    for (std::size_t i = 0; i < view.recipes.size(); ++i) {
        if (view.recipes[i].max_batch.value_or(0) < batch_size) continue;
        if (!fastest || rate(i) > rate(*fastest)) fastest = i;
    }
    if (fastest) {
        const PlannerRecipe& other = view.recipes[*fastest];
        fixes.push_back({.text = with_rate(other.name, other, batch), .recipe = fastest});
    }
    return fixes;
}

}  // namespace

PlannerView build_planner_view(const Plan& plan) {
    PlannerView view;
    for (const PlanRow& row : plan.rows) {
        view.gpu = row.gpu->name;
        view.usable_bytes = static_cast<int64_t>(row.gpu->usable_memory_bytes.value);
        view.recipes.push_back(make_planner_recipe(row));
        for (const std::string& note : row.notes) {
            const auto known = std::find(view.notes.begin(), view.notes.end(), note);
            if (known == view.notes.end()) view.notes.push_back(note);
        }
    }
    set_axes(view);
    for (PlannerRecipe& recipe : view.recipes) {
        add_memory_line(recipe, view);
        add_speed_line(recipe, view);
        if (!recipe.speed_low.empty()) {
            view.band_text = fmt::format("±{:.0f} %: times are not calibrated on this GPU",
                                         100 * kNotCalibratedError);
        }
    }
    return view;
}

PlannerReading read_planner(const PlannerView& view, std::size_t index, int64_t batch_size) {
    PlannerReading reading;
    if (index >= view.recipes.size()) return reading;
    const PlannerRecipe& recipe = view.recipes[index];
    const auto batch = static_cast<double>(batch_size);
    reading.fits = recipe.max_batch.value_or(0) >= batch_size;
    reading.why = recipe.why;
    if (!recipe.memory.empty()) {
        reading.has_memory = true;
        reading.needed_bytes = std::llround(memory_bytes_at(recipe, batch));
        reading.memory_text = format_bytes(reading.needed_bytes);
        reading.gauge_text = gauge_text(reading.needed_bytes, view.usable_bytes);
        reading.parts = parts_at(recipe, batch, reading.needed_bytes);
        if (!reading.fits && reading.why.empty()) {
            reading.why = why_not(view, recipe, batch_size, reading.needed_bytes);
        }
        if (!reading.fits) reading.fixes = fixes_for(view, index, batch_size);
    }
    if (reading.fits && !recipe.speed.empty()) {
        reading.step_text = format_duration(std::llround(step_ns_at(recipe, batch)));
        reading.rate_text = rate_text(rate_at(recipe, batch));
    }
    return reading;
}

}  // namespace profiler
