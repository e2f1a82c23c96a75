#include "profiler/charts/throughput_chart.h"

#include "profiler/view/axis.h"
#include "profiler/view/place_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace profiler {
namespace {

constexpr double kInset = 10;  // keeps the first and last marker inside the plot
constexpr double kLogRatio = 16;
constexpr double kReach = 6;  // of the mouse to a point

/// Calls `visit` with batch and rate of each point that is drawn.
template <typename Visit>
void for_each_point(const CompareView& view, const ThroughputParts& parts, const Visit& visit) {
    for (const CompareColumn& column : view.columns) {
        for (const CurvePoint& point : column.curve) visit(point.batch_size, point.sequences_per_s);
        if (parts.captured && column.captured) {
            visit(column.captured->batch_size, column.captured->sequences_per_s);
        }
        if (!parts.plans || !column.planned) continue;
        for (const PlanPoint& point : column.planned->curve) {
            visit(point.batch_size, point.sequences_per_s);
        }
    }
}

/// Maps batch sizes to x. The axis is logarithmic when small batches would overlap on a linear one,
/// since sweeps double the batch.
class BatchAxis {
public:
    BatchAxis(const CompareView& view, const ThroughputParts& parts, const Rect& plot)
        : plot_(plot) {
        for_each_point(view, parts,
                       [&](int64_t batch_size, double) { batches_.insert(batch_size); });
        for (const CompareColumn& column : view.columns) {
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
    bool has_bands = true;

    double y(double rate) const { return plot.bottom() - rate / rate_end * plot.height; }
    /// Of a point of a sweep or of a plan.
    template <typename CurvePlace>
    Point at(const CurvePlace& point) const {
        return {batch.x(point.batch_size), y(point.sequences_per_s)};
    }
};

int num_rate_ticks(const Rect& plot) { return std::max(3, static_cast<int>(plot.height) / 46); }

Scales scales_of(const CompareView& view, const ThroughputParts& parts, const Rect& plot) {
    double most = view.max_sequences_per_s;
    for_each_point(view, parts, [&](int64_t, double rate) { most = std::max(most, rate); });
    return {plot, BatchAxis(view, parts, plot),
            axis_end(AxisUnit::kRate, most, 0.1, num_rate_ticks(plot)),
            view.columns.size() <= kMostBands};
}

// ---- marks ----------------------------------------------------------------------------------

using Marks = std::vector<ThroughputMark>;

/// The prediction as a dashed line, under what was measured.
void draw_plan(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color,
               Marks& marks) {
    std::vector<Point> points;
    for (const PlanPoint& point : column.planned->curve) points.push_back(scales.at(point));
    canvas.polyline(points, {.color = color, .width = 1.3, .alpha = 0.9, .dashed = true});
    for (std::size_t i = 0; i < points.size(); ++i) {
        canvas.ring(points[i], 2.6, {.color = color, .width = 1.3});
        marks.push_back({.at = points[i],
                         .most = kReach,
                         .column = column.index,
                         .text = point_text(column.planned->curve[i])});
    }
}

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

void draw_curve(Canvas& canvas, const Scales& scales, const CompareColumn& column, Color color,
                Marks& marks) {
    std::vector<Point> points;
    for (const CurvePoint& point : column.curve) points.push_back(scales.at(point));
    canvas.polyline(points, {.color = color, .width = 1.8});
    for (std::size_t i = 0; i < points.size(); ++i) {
        canvas.marker(recipe_marker(column.color), points[i], 3.6, color);
        marks.push_back({.at = points[i],
                         .most = kReach,
                         .column = column.index,
                         .text = column.curve[i].text});
    }
}

/// Crosses at the bottom of the plot. Recipes that failed at the same batch are stacked.
bool draw_failures(Canvas& canvas, const Theme& theme, const CompareView& view,
                   const Scales& scales, Marks& marks) {
    std::multiset<int64_t> drawn;
    for (const CompareColumn& column : view.columns) {
        if (!column.out_of_memory_batch) continue;
        const int64_t batch_size = *column.out_of_memory_batch;
        const auto below = static_cast<double>(drawn.count(batch_size));
        const Point at{scales.batch.x(batch_size), scales.plot.bottom() - 8 - 11 * below};
        canvas.marker(Marker::kCross, at, 4, recipe_color(theme, column.color));
        marks.push_back({.at = at,
                         .most = kReach,
                         .column = column.index,
                         .text = fmt::format("runs out of memory at batch {}", batch_size)});
        drawn.insert(batch_size);
    }
    return !drawn.empty();
}

/// Rings, each around those of earlier columns in the same place.
void draw_captured(Canvas& canvas, const Theme& theme, const CompareView& view,
                   const Scales& scales, Marks& marks) {
    constexpr double kSamePlace = 2.5, kRadius = 5, kStep = 2.6, kHalfWidth = 1.3;
    constexpr int kMostAround = 3;
    std::vector<Point> drawn;
    for (const CompareColumn& column : view.columns) {
        if (!column.captured) continue;
        const Point at = scales.at(*column.captured);
        const auto covered = std::ranges::count_if(drawn, [&](Point other) {
            return std::hypot(other.x - at.x, other.y - at.y) < kSamePlace;
        });
        const int around = static_cast<int>(std::min<std::ptrdiff_t>(covered, kMostAround));
        const double radius = kRadius + kStep * around;
        canvas.ring(at, radius, {.color = recipe_color(theme, column.color), .width = 1.7});
        marks.push_back({.at = at,
                         .least = around > 0 ? radius - kHalfWidth : 0,
                         .most = radius + kHalfWidth,
                         .column = column.index,
                         .text = column.captured->text});
        drawn.push_back(at);
    }
}

// ---- the best batches -----------------------------------------------------------------------

struct BestLabel {
    Point at;  // of the point
    std::string text;
};

/// Up to kMostBands recipes all show their best rate; of more, the baseline and the fastest.
bool is_labelled(const CompareView& view, const CompareColumn& column) {
    const auto rate = [](const CompareColumn& c) {
        return c.best_point ? c.curve[*c.best_point].sequences_per_s : 0;
    };
    if (view.columns.size() <= kMostBands || column.is_baseline) return true;
    return std::ranges::all_of(
        view.columns, [&](const CompareColumn& other) { return rate(other) <= rate(column); });
}

/// A ring around the best point of each recipe, with its rate beside it.
void draw_best(Canvas& canvas, const Theme& theme, const CompareView& view, const Scales& scales) {
    const TextStyle style{.size = kLabelSize, .weight = Weight::kBold, .color = theme.text};
    std::vector<BestLabel> labels;
    for (const CompareColumn& column : view.columns) {
        if (!column.best_point || !is_labelled(view, column)) continue;
        const CurvePoint& best = column.curve[*column.best_point];
        const Point at{scales.batch.x(best.batch_size), scales.y(best.sequences_per_s)};
        labels.push_back({at, column.best_text.substr(0, column.best_text.find(' '))});
        canvas.ring(at, 6.5, {.color = recipe_color(theme, column.color), .width = 1.4});
    }
    std::ranges::stable_sort(
        labels, [](const BestLabel& a, const BestLabel& b) { return a.at.y < b.at.y; });
    std::vector<LabelWish> wishes;
    for (const BestLabel& label : labels) {
        wishes.push_back(
            above_point(label.at, 7, {canvas.measure(label.text, style) + 6, 13}, scales.plot));
    }
    const auto places = place_labels(wishes, {.frame = scales.plot});
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (!places[i]) continue;
        canvas.fill_rounded(*places[i], 3, theme.plot, 0.8);
        canvas.text({places[i]->x + 3, places[i]->y + 10.5}, labels[i].text, style);
    }
}

bool has_curve(const CompareColumn& column, const ThroughputParts& parts) {
    return !column.curve.empty() || (parts.plans && column.planned) ||
           (parts.captured && column.captured);
}

}  // namespace

bool ThroughputMark::covers(Point point) const {
    const double distance = std::hypot(point.x - at.x, point.y - at.y);
    return distance >= least && distance <= most;
}

bool has_throughput(const CompareView& view, const ThroughputParts& parts) {
    bool has_rate = false;
    for_each_point(view, parts, [&](int64_t, double rate) { has_rate |= rate > 0; });
    return has_rate;
}

std::vector<LegendEntry> throughput_legend(Canvas& canvas, const Theme& theme,
                                           const CompareView& view, const ThroughputParts& parts,
                                           bool with_names) {
    std::vector<LegendEntry> entries;
    bool has_failures = false, has_sweep = false, has_captured = false;
    bool all_predicted = true;  // of the captured steps
    for (const CompareColumn& column : view.columns) {
        if (!has_curve(column, parts)) continue;
        has_failures |= column.out_of_memory_batch.has_value();
        has_sweep |= !column.curve.empty();
        if (parts.captured && column.captured) {
            has_captured = true;
            all_predicted &= column.memory_is_predicted;
        }
        if (!with_names) continue;
        entries.push_back(marker_entry(canvas, recipe_marker(column.color),
                                       recipe_color(theme, column.color), column.recipe));
    }
    const auto add = [&](std::string name, std::function<void(Point)> draw_mark) {
        entries.push_back(
            {.name = std::move(name), .mark_width = 11, .draw_mark = std::move(draw_mark)});
    };
    if (has_sweep) {
        add("sweep", [&canvas, color = theme.dim_text](Point at) {
            canvas.line({at.x, at.y + 6}, {at.x + 12, at.y + 6}, {.color = color, .width = 1.8});
            canvas.disc({at.x + 6, at.y + 6}, 2.8, color);
        });
    }
    if (has_captured) {
        add(all_predicted ? "predicted step" : "captured step",
            [&canvas, color = theme.dim_text](Point at) {
                canvas.ring({at.x + 6, at.y + 6}, 4.5, {.color = color, .width = 1.7});
            });
    }
    if (has_failures) {
        entries.push_back(marker_entry(canvas, Marker::kCross, theme.dim_text, "out of memory"));
    }
    return entries;
}

std::vector<ThroughputMark> draw_throughput(Canvas& canvas, const Theme& theme,
                                            const CompareView& view, const ThroughputParts& parts,
                                            const Rect& plot) {
    const Scales scales = scales_of(view, parts, plot);
    Marks marks;
    draw_y_axis(canvas, theme, plot,
                make_ticks(AxisUnit::kRate, 0, scales.rate_end, num_rate_ticks(plot)),
                scales.rate_end);
    scales.batch.draw(canvas, theme);
    for (const CompareColumn& column : view.columns) {
        if (!parts.plans || !column.planned) continue;
        draw_plan(canvas, scales, column, recipe_color(theme, column.color), marks);
    }
    for (const CompareColumn& column : view.columns) {
        if (!column.curve.empty()) {
            draw_spread(canvas, scales, column, recipe_color(theme, column.color));
        }
    }
    for (const CompareColumn& column : view.columns) {
        draw_curve(canvas, scales, column, recipe_color(theme, column.color), marks);
    }
    if (parts.captured) draw_captured(canvas, theme, view, scales, marks);
    const bool has_failures = draw_failures(canvas, theme, view, scales, marks);
    draw_best(canvas, theme, view, scales);
    canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()},
                {.color = theme.dim_text, .alpha = 0.7});
    canvas.text({plot.center_x(), plot.bottom() + 31},
                has_failures ? "batch size  (× did not fit)" : "batch size",
                {.size = kLabelSize, .color = theme.dim_text, .align = 0.5});
    return marks;
}

}  // namespace profiler
