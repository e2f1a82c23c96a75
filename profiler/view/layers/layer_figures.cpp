#include "profiler/view/layers/layer_figures.h"

#include "profiler/analysis/step/throughput.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/units.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/programs/compare_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

int64_t bytes_in_layers(const Ledger& ledger, const LayerRange& layers) {
    int64_t bytes = 0;
    for (const LedgerRow& row : ledger.rows) {
        if (row.layer >= 0 && layers.contains(row.layer)) bytes += row.size_bytes;
    }
    return bytes;
}

template <typename BytesOf>
PairFigure bytes_figure(std::string label, const Steps& steps, BytesOf bytes_of) {
    PairFigure figure{.label = std::move(label)};
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const int64_t bytes = bytes_of(steps[i]);
        figure.value[i] = format_bytes(bytes);
        figure.share[i] = static_cast<double>(bytes);
    }
    if (steps.size() == 2) {
        const auto difference = static_cast<int64_t>(figure.share[1] - figure.share[0]);
        figure.difference = difference == 0 ? std::string() : change_in_bytes(difference);
        figure.sign = (difference > 0) - (difference < 0);
    }
    return figure;
}

std::optional<PairFigure> swept_batch(const Steps& steps) {
    PairFigure figure{.label = "largest batch", .more_is_good = true};
    std::array<std::optional<int64_t>, 2> batch;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const BatchBounds bounds = bounds_of(sweep_curve(steps[i].trace()));
        batch[i] = bounds.exact();
        figure.value[i] = bounds_text(bounds);
    }
    if (figure.value[0].empty() && figure.value[1].empty()) return std::nullopt;
    if (batch[0] && batch[1] && *batch[0] != *batch[1]) {
        const int64_t difference = *batch[1] - *batch[0];
        figure.difference = with_sign(difference, format_count(std::abs(difference)));
        figure.sign = difference > 0 ? 1 : -1;
    }
    return figure;
}

std::string name_of_range(const LayerRange& layers, int64_t num_layers) {
    if (layers.count() == 1) return fmt::format("layer {}", layers.first);
    if (layers.count() == num_layers) return fmt::format("all {} layers", num_layers);
    return fmt::format("layers {} to {}", layers.first, layers.last);
}

}  // namespace

std::vector<PairFigure> layer_figures(const LayerRequest& request, const LayerRange& layers,
                                      int64_t num_layers) {
    const Steps& steps = request.steps;
    std::vector<PairFigure> figures;
    const auto in_layers = [](const LayerRange& range) {
        return [range](const StepIndex& step) { return bytes_in_layers(step.ledger(), range); };
    };
    figures.push_back(bytes_figure(name_of_range(layers, num_layers), steps, in_layers(layers)));
    if (layers.count() < num_layers) {
        const LayerRange all{0, num_layers - 1};
        figures.push_back(bytes_figure(name_of_range(all, num_layers), steps, in_layers(all)));
    }
    figures.push_back(bytes_figure("saved for backward", steps, [](const StepIndex& step) {
        return step.ledger().total_bytes;
    }));
    figures.push_back(bytes_figure(
        "peak", steps, [](const StepIndex& step) { return step.peak().allocated_bytes; }));
    double most = 1;
    for (const PairFigure& figure : figures) {
        most = std::max({most, figure.share[0], figure.share[1]});
    }
    for (PairFigure& figure : figures) {
        for (double& share : figure.share) share /= most;
    }
    for (std::size_t i = 1; i < figures.size(); ++i) {
        for (std::size_t k = 0; k < steps.size(); ++k) {
            figures[i].start[k] = std::min(figures[i - 1].share[k], figures[i].share[k]);
        }
    }
    if (auto batch = swept_batch(steps)) figures.push_back(*std::move(batch));
    return figures;
}

std::vector<std::pair<std::string, std::string>> switch_effect(const LayerRequest& request,
                                                               int64_t num_layers) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (PairFigure& figure : layer_figures(request, request.layers, num_layers)) {
        if (figure.difference.empty()) continue;
        rows.emplace_back(std::move(figure.label), std::move(figure.difference));
    }
    const Trace &first = request.steps.a->trace(), &second = request.steps.b->trace();
    const int64_t before_ns = median(step_times_ns(first));
    const int64_t after_ns = median(step_times_ns(second));
    const bool has_times = before_ns > 0 && after_ns > 0 && before_ns != after_ns &&
                           first.run().source == Source::kPredicted &&
                           second.run().source == Source::kPredicted;
    if (has_times) {
        const double ratio = static_cast<double>(after_ns) / static_cast<double>(before_ns);
        rows.emplace_back("step time", format_percent(ratio - 1, /*with_sign=*/true));
    }
    return rows;
}

}  // namespace profiler
