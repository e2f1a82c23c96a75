#include "profiler/planner/plan_figures.h"

#include "profiler/trace/text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

/// The points around a batch. Beyond the last point, the line of the last two goes on.
struct Between {
    std::size_t low = 0;
    std::size_t high = 0;
    double share = 0;  // 0: at low, 1: at high

    double mix(double at_low, double at_high) const { return at_low + share * (at_high - at_low); }
    int64_t mix(int64_t at_low, int64_t at_high) const {
        return std::llround(mix(static_cast<double>(at_low), static_cast<double>(at_high)));
    }
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

/// "Batch 48 needs 17.1 GiB, 2.5 GiB more than NVIDIA T4 has."
std::string why_not(const PlanRow& row, int64_t batch_size, int64_t needed_bytes) {
    if (!row.other_limit.empty()) return other_limit_text(row);
    const auto usable_bytes = static_cast<int64_t>(row.gpu.usable_memory_bytes.value);
    const int64_t missing_bytes = needed_bytes - usable_bytes;
    // Just above the largest batch, the line between planned batches may lie below the ceiling.
    if (missing_bytes <= 0) {
        return fmt::format("Batch {} needs a little more than the {} of {}.",
                           format_count(batch_size), format_bytes(usable_bytes), row.gpu.name);
    }
    return fmt::format("Batch {} needs {}, {} more than {} has.", format_count(batch_size),
                       format_bytes(needed_bytes), format_bytes(missing_bytes), row.gpu.name);
}

}  // namespace

std::string recipe_text(const PlanRow& row) {
    return models::to_text(models::layer_recipes_of(row.workload));
}

bool knows_max_batch(const PlanRow& row) {
    return row.max_batch_size.value_or(0) > 0 || row.status == PlanStatus::kDoesNotFit;
}

std::string max_batch_text(const PlanRow& row) {
    const int64_t max_batch = row.max_batch_size.value_or(0);
    if (max_batch <= 0) return row.status == PlanStatus::kDoesNotFit ? "none" : kNoValue;
    const bool is_search = row.max_batch_end == MaxBatchEnd::kSearch;
    return fmt::format("{}{}", is_search ? "≥ " : "", format_count(max_batch));
}

std::string max_batch_note(const PlanRow& row) {
    return row.max_batch_end == MaxBatchEnd::kElements ? ", by tensor size" : "";
}

std::string other_limit_text(const PlanRow& row) { return capitalized(row.other_limit); }

std::string best_text(const PlanRow& row) {
    if (!row.best_batch_size) return {};
    return fmt::format("{} at batch {}", format_rate(row.best_sequences_per_s),
                       *row.best_batch_size);
}

std::string point_text(const PlanPoint& point) {
    return fmt::format("batch {}: {} sequences/s predicted", point.batch_size,
                       format_rate(point.sequences_per_s));
}

bool has_times(const PlanRow& row) {
    return !row.curve.empty() && row.curve.front().step_time_ns > 0;
}

MemoryPoint memory_at(const PlanRow& row, double batch) {
    const Between b = around(row.memory_curve, batch);
    const MemoryPoint &low = row.memory_curve[b.low], &high = row.memory_curve[b.high];
    MemoryPoint point{.batch_size = std::llround(batch),
                      .needed_bytes = b.mix(low.needed_bytes, high.needed_bytes),
                      .gap_bytes = std::max<int64_t>(0, b.mix(low.gap_bytes, high.gap_bytes))};
    for (std::size_t i = 0; i < point.by_category.size(); ++i) {
        point.by_category[i] = std::max<int64_t>(0, b.mix(low.by_category[i], high.by_category[i]));
    }
    return point;
}

PlanPoint speed_at(const PlanRow& row, double batch) {
    const Between b = around(row.curve, batch);
    const PlanPoint& known = row.curve[b.low];
    const double step_ns = b.mix(static_cast<double>(known.step_time_ns),
                                 static_cast<double>(row.curve[b.high].step_time_ns));
    // More than one GPU multiplies the sequences of a step.
    const double known_rate =
        static_cast<double>(known.batch_size) / static_cast<double>(known.step_time_ns);
    return {std::llround(batch), std::llround(step_ns),
            known_rate > 0 ? batch / step_ns * known.sequences_per_s / known_rate : 0};
}

PlanFigures figures_at(const PlanRow& row, int64_t batch_size) {
    const auto batch = static_cast<double>(batch_size);
    const int64_t max_batch = row.max_batch_size.value_or(0);
    PlanFigures figures{.fits = max_batch >= batch_size,
                        .max_batch_text = max_batch_text(row),
                        .best_text = best_text(row)};
    if (max_batch <= 0) figures.why = row.reason;
    if (row.memory) figures.context_bytes = row.memory->context_bytes;
    if (!row.memory_curve.empty()) {
        figures.needed_bytes = memory_at(row, batch).needed_bytes;
        figures.memory_text = format_bytes(figures.needed_bytes);
        if (!figures.fits && figures.why.empty()) {
            figures.why = why_not(row, batch_size, figures.needed_bytes);
        }
    }
    if (has_times(row)) {
        const PlanPoint speed = speed_at(row, batch);
        figures.step_time_ns = speed.step_time_ns;
        figures.sequences_per_s = speed.sequences_per_s;
        figures.step_text = format_duration(speed.step_time_ns);
        figures.rate_text = format_rate(speed.sequences_per_s);
    }
    return figures;
}

void add_notes(const PlanRow& row, std::vector<std::string>& notes) {
    for (const std::string& note : row.notes) {
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    }
}

}  // namespace profiler
