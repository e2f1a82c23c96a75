#include "profiler/charts/throughput_panel.h"

#include "profiler/charts/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace profiler {
namespace {

constexpr double kInset = 10;  // keeps the first and last marker inside the plot
constexpr double kLogRatio = 16;
constexpr std::size_t kMaxLabelled = 3;

/// Maps batch sizes to x. The axis is logarithmic when small batches would overlap on a linear one,
/// since sweeps double the batch.
class BatchAxis {
public:
    BatchAxis(const CompareView& view, const Rect& plot) : plot_(plot) {
        for (const CompareColumn& column : view.columns) {
            for (const CurvePoint& point : column.curve) batches_.insert(point.batch_size);
            if (column.out_of_memory_batch) batches_.insert(*column.out_of_memory_batch);
        }
        low_ = static_cast<double>(*batches_.begin());
        high_ = static_cast<double>(*batches_.rbegin());
        is_log_ = low_ > 0 && high_ / low_ >= kLogRatio;
    }

    double x(int64_t batch_size) const {
        if (high_ <= low_) return plot_.center_x();
        const auto b = static_cast<double>(batch_size);
        const double t =
            is_log_ ? std::log(b / low_) / std::log(high_ / low_) : (b - low_) / (high_ - low_);
        return plot_.x + kInset + t * (plot_.width - 2 * kInset);
    }

    /// Labels at the batches that were tried, as many as fit without touching.
    void draw(Canvas& canvas, const Theme& theme) const {
        const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
        const LineStyle grid{.color = theme.text, .alpha = theme.is_dark ? 0.07 : 0.08};
        double free_from = plot_.x - kInset;
        for (const int64_t batch_size : batches_) {
            const std::string label = fmt::format("{}", batch_size);
            const double half = canvas.measure(label, style) / 2 + 4;
            const double at = x(batch_size);
            if (at - half < free_from) continue;
            canvas.line({at, plot_.y}, {at, plot_.bottom()}, grid);
            canvas.text({at, plot_.bottom() + 15}, label, style);
            free_from = at + half;
        }
    }

private:
    Rect plot_;
    std::set<int64_t> batches_;
    double low_ = 0;
    double high_ = 1;
    bool is_log_ = false;
};

struct Scales {
    Rect plot;
    BatchAxis batch;
    double rate_end = 1;
    bool has_bands = true;  // bands of many recipes hide each other, so they get bars alone

    double y(double rate) const { return plot.bottom() - rate / rate_end * plot.height; }
};

void draw_spread(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color) {
    std::vector<Point> outline;
    for (const CurvePoint& point : column.curve) {
        outline.push_back({scales.batch.x(point.batch_size), scales.y(point.sequences_per_s_max)});
    }
    for (auto point = column.curve.rbegin(); point != column.curve.rend(); ++point) {
        outline.push_back(
            {scales.batch.x(point->batch_size), scales.y(point->sequences_per_s_min)});
    }
    if (scales.has_bands) canvas.polygon(outline, color, 0.16);
    for (const CurvePoint& point : column.curve) {  // visible even with a single batch
        const double x = scales.batch.x(point.batch_size);
        canvas.line({x, scales.y(point.sequences_per_s_min)},
                    {x, scales.y(point.sequences_per_s_max)},
                    {.color = color, .width = 1, .alpha = 0.6});
    }
}

void draw_curve(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color) {
    std::vector<Point> points;
    for (const CurvePoint& point : column.curve) {
        points.push_back({scales.batch.x(point.batch_size), scales.y(point.sequences_per_s)});
    }
    canvas.polyline(points, {.color = color, .width = 1.8});
    for (const Point& point : points) {
        canvas.marker(recipe_marker(column.color), point, 3.6, color);
    }
}

/// Crosses at the bottom of the plot. Recipes that failed at the same batch are stacked.
bool draw_failures(Canvas& canvas, const Theme& theme, const CompareView& view,
                   const Scales& scales) {
    std::multiset<int64_t> drawn;
    for (const CompareColumn& column : view.columns) {
        if (!column.out_of_memory_batch) continue;
        const auto below = static_cast<double>(drawn.count(*column.out_of_memory_batch));
        const Point at{scales.batch.x(*column.out_of_memory_batch),
                       scales.plot.bottom() - 8 - 11 * below};
        canvas.marker(Marker::kCross, at, 4, recipe_color(theme, column.color));
        drawn.insert(*column.out_of_memory_batch);
    }
    return !drawn.empty();
}

struct BestLabel {
    Point at;  // of the point
    double text_y = 0;
    std::string text;
};

/// Up to kMaxLabelled recipes all show their best rate; of more, the baseline and the fastest.
bool is_labelled(const CompareView& view, const CompareColumn& column) {
    const auto rate = [](const CompareColumn& c) {
        return c.best_point ? c.curve[*c.best_point].sequences_per_s : 0;
    };
    if (view.columns.size() <= kMaxLabelled || column.is_baseline) return true;
    return std::all_of(view.columns.begin(), view.columns.end(),
                       [&](const CompareColumn& other) { return rate(other) <= rate(column); });
}

/// Places labels from the top down. A label that would overlap another moves down to the next free
/// line.
void draw_best(Canvas& canvas, const Theme& theme, const CompareView& view, const Scales& scales) {
    std::vector<BestLabel> labels;
    for (const CompareColumn& column : view.columns) {
        if (!column.best_point || !is_labelled(view, column)) continue;
        const CurvePoint& best = column.curve[*column.best_point];
        const Point at{scales.batch.x(best.batch_size), scales.y(best.sequences_per_s)};
        const std::string rate = column.best_text.substr(0, column.best_text.find(' '));
        labels.push_back({at, at.y - 9, rate});
        canvas.ring(at, 6.5, {.color = recipe_color(theme, column.color), .width = 1.4});
    }
    std::stable_sort(labels.begin(), labels.end(),
                     [](const BestLabel& a, const BestLabel& b) { return a.at.y < b.at.y; });
    const TextStyle style{
        .size = kLabelSize, .weight = Weight::kBold, .color = theme.text, .align = 0.5};
    std::vector<Rect> taken;
    for (BestLabel& label : labels) {
        const double half = canvas.measure(label.text, style) / 2 + 3;
        const double x = std::clamp(label.at.x, scales.plot.x + half, scales.plot.right() - half);
        const auto overlaps = [&](double y) {
            return std::any_of(taken.begin(), taken.end(), [&](const Rect& r) {
                return x + half > r.x && x - half < r.right() && y > r.y && y - 12 < r.bottom();
            });
        };
        while (overlaps(label.text_y) && label.text_y < scales.plot.bottom()) label.text_y += 4;
        taken.push_back({x - half, label.text_y - 12, 2 * half, 12});
        canvas.fill_rounded({x - half, label.text_y - 10.5, 2 * half, 13}, 3, theme.plot, 0.8);
        canvas.text({x, label.text_y}, label.text, style);
    }
}

}  // namespace

void draw_throughput_panel(Canvas& canvas, const Theme& theme, const CompareView& view,
                           const ComparisonLayout& layout) {
    const Rect& plot = layout.throughput;
    const int ticks = std::max(3, static_cast<int>(plot.height) / 46);
    const Scales scales{plot, BatchAxis(view, plot),
                        axis_end(AxisUnit::kRate, view.max_sequences_per_s, 0.1, ticks),
                        view.columns.size() <= kMaxLabelled};
    draw_panel_title(canvas, theme, {plot.x - 36, layout.panel_title_y}, plot.width + 36,
                     "Throughput",
                     {scales.has_bands ? "sequences/s; band: slowest to fastest step; ring: best"
                                       : "sequences/s; bars: slowest to fastest step; ring: best",
                      "sequences/s; ring: best", "sequences/s"});
    draw_y_axis(canvas, theme, plot, make_ticks(AxisUnit::kRate, 0, scales.rate_end, ticks),
                scales.rate_end);
    scales.batch.draw(canvas, theme);
    for (const CompareColumn& column : view.columns) {
        if (!column.curve.empty()) {
            draw_spread(canvas, scales, column, recipe_color(theme, column.color));
        }
    }
    for (const CompareColumn& column : view.columns) {
        draw_curve(canvas, scales, column, recipe_color(theme, column.color));
    }
    const bool has_failures = draw_failures(canvas, theme, view, scales);
    draw_best(canvas, theme, view, scales);
    canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()},
                {.color = theme.dim_text, .alpha = 0.7});
    canvas.text({plot.center_x(), plot.bottom() + 31},
                has_failures ? "batch size  (× did not fit)" : "batch size",
                {.size = kLabelSize, .color = theme.dim_text, .align = 0.5});
}

}  // namespace profiler
