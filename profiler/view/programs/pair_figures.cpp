#include "profiler/view/programs/pair_figures.h"

#include "profiler/planner/data/gpu.h"
#include "profiler/trace/units.h"
#include "profiler/view/programs/compare_view.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace profiler {
namespace {

using Columns = std::vector<std::size_t>;  // A, and B if there is one

std::optional<PairFigure> planned_batch(const CompareView& view, const Columns& columns) {
    PairFigure figure{.label = fmt::format("largest batch on {}", short_gpu_name(view.planned_on)),
                      .more_is_good = true};
    std::array<int64_t, 2> batch{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto& planned = view.columns[columns[i]].planned;
        if (!planned || !knows_max_batch(*planned)) return std::nullopt;
        figure.value[i] = max_batch_text(*planned) + max_batch_note(*planned);
        batch[i] = planned->max_batch_size.value_or(0);
    }
    const int64_t more = columns.size() == 2 ? batch[1] - batch[0] : 0;
    if (more != 0) figure.difference = fmt::format("{:+}", more);
    figure.sign = (more > 0) - (more < 0);
    return figure;
}

std::optional<PairFigure> time_figure(const Comparison& comparison, const Columns& columns) {
    PairFigure figure{.label = "step time"};
    std::array<int64_t, 2> time_ns{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const ComparisonColumn& column = comparison.columns[columns[i]];
        if (column.step_time_ns <= 0 || has_bad_times(column)) return std::nullopt;
        figure.value[i] = format_duration(column.step_time_ns);
        time_ns[i] = column.step_time_ns;
    }
    if (columns.size() < 2) return figure;
    const ComparisonColumn &a = comparison.columns[columns[0]], &b = comparison.columns[columns[1]];
    const bool is_predicted = a.source == Source::kPredicted && b.source == Source::kPredicted;
    if (!at_same_batch(a, b) || (!is_predicted && speed_is_uncertain(b, a))) return std::nullopt;
    const double ratio =
        static_cast<double>(time_ns[1] - time_ns[0]) / static_cast<double>(time_ns[0]);
    const bool is_exact = a.time_error == 0 && b.time_error == 0;
    if (std::abs(ratio) < (is_exact ? 0.0005 : 0.005)) return figure;  // reads as 0
    figure.difference =
        is_exact ? format_percent(ratio, true) : fmt::format("≈ {:+.0f} %", 100 * ratio);
    figure.sign = ratio > 0 ? 1 : -1;
    return figure;
}

}  // namespace

std::vector<PairFigure> pair_figures(const Comparison& comparison, const CompareView& view,
                                     std::size_t a, std::optional<std::size_t> b) {
    Columns columns{a};
    if (b) columns.push_back(*b);
    std::vector<PairFigure> figures;
    if (auto batch = planned_batch(view, columns)) figures.push_back(*std::move(batch));
    if (auto time = time_figure(comparison, columns)) figures.push_back(*std::move(time));
    return figures;
}

}  // namespace profiler
