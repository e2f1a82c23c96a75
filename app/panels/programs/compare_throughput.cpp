#include "app/panels/programs/compare_charts.h"

#include "app/widgets/marks.h"
#include "app/widgets/plot.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::CompareColumn;
using profiler::CompareView;

ImPlotMarker plot_marker(size_t index) {
    switch (profiler::recipe_marker(index)) {
        case profiler::Marker::kCircle:
            return ImPlotMarker_Circle;
        case profiler::Marker::kSquare:
            return ImPlotMarker_Square;
        case profiler::Marker::kDiamond:
            return ImPlotMarker_Diamond;
        case profiler::Marker::kUp:
            return ImPlotMarker_Up;
        case profiler::Marker::kDown:
            return ImPlotMarker_Down;
        case profiler::Marker::kCross:
            return ImPlotMarker_Cross;
        case profiler::Marker::kPlus:
            return ImPlotMarker_Plus;
        case profiler::Marker::kLeft:
            return ImPlotMarker_Left;
    }
    return ImPlotMarker_Circle;
}

/// Where a point of a sweep or of a plan lies.
template <typename Point>
ImVec2 place_of(const Point& point) {
    return ImPlot::PlotToPixels(static_cast<double>(point.batch_size), point.sequences_per_s);
}

void point_tooltip(const CompareColumn& column, const std::string& words) {
    if (!ImGui::BeginTooltip()) return;
    swatch(recipe_color(column.color));
    bold_text(column.recipe);
    text(words);
    ImGui::EndTooltip();
}

void draw_curve(ImDrawList* draw, const CompareColumn& column) {
    std::vector<double> x, y;
    const ImU32 color = recipe_color(column.color);
    for (const profiler::CurvePoint& point : column.curve) {
        x.push_back(static_cast<double>(point.batch_size));
        y.push_back(point.sequences_per_s);
        const ImVec2 high = ImPlot::PlotToPixels(x.back(), point.sequences_per_s_max);
        const ImVec2 low = ImPlot::PlotToPixels(x.back(), point.sequences_per_s_min);
        draw->AddRectFilled({high.x - px(0.5F), high.y}, {low.x + px(0.5F), low.y},
                            with_alpha(color, 0.6F));
    }
    ImPlotSpec line;
    line.LineColor = to_vec4(color);
    line.LineWeight = px(2);
    line.Marker = plot_marker(column.color);
    line.MarkerSize = px(4);
    line.MarkerFillColor = to_vec4(color);
    line.MarkerLineColor = to_vec4(palette().plot);
    ImPlot::PlotLine(column.recipe.c_str(), x.data(), y.data(), static_cast<int>(x.size()), line);
    for (size_t i = 0; i < x.size(); ++i) {
        const ImVec2 at = ImPlot::PlotToPixels(x[i], y[i]);
        const ImVec2 reach{px(7), px(7)};
        if (mouse_in(at - reach, at + reach)) point_tooltip(column, column.curve[i].text);
    }
}

/// The prediction as a dashed line without points, under what was measured.
void draw_planned_curve(ImDrawList* draw, const CompareColumn& column) {
    const ImU32 color = recipe_color(column.color);
    const auto& curve = column.planned->curve;
    for (size_t i = 0; i + 1 < curve.size(); ++i) {
        draw_dashed_line(draw, place_of(curve[i]), place_of(curve[i + 1]), with_alpha(color, 0.9F),
                         px(1.5F));
    }
    for (const profiler::PlanPoint& point : curve) {
        const ImVec2 center = place_of(point);
        draw->AddCircle(center, px(3), color, 0, px(1.5F));
        const ImVec2 reach{px(7), px(7)};
        if (mouse_in(center - reach, center + reach)) {
            point_tooltip(column, profiler::point_text(point));
        }
    }
}

/// A ring: the step that was captured by itself, beside the points of a sweep. It lies around the
/// rings of earlier columns in the same place.
void draw_captured(ImDrawList* draw, const CompareView& view, const CompareColumn& column) {
    const profiler::CurvePoint& point = *column.captured;
    const ImVec2 center = place_of(point);
    const auto covered = std::count_if(
        view.columns.begin(), view.columns.begin() + static_cast<std::ptrdiff_t>(column.index),
        [&](const CompareColumn& earlier) {
            if (!earlier.captured) return false;
            const ImVec2 way = place_of(*earlier.captured) - center;
            return std::hypot(way.x, way.y) < px(3);
        });
    constexpr auto kMostAround = 3;
    const auto around = static_cast<float>(std::min<std::ptrdiff_t>(covered, kMostAround));
    const float radius = px(6 + 3 * around);
    draw->AddCircle(center, radius, recipe_color(column.color), 0, px(2));
    const ImVec2 way = ImGui::GetMousePos() - center;
    const float distance = std::hypot(way.x, way.y);
    const float inner = around > 0 ? radius - px(1.5F) : 0;
    if (!ImGui::IsWindowHovered() || distance < inner || distance > radius + px(1.5F)) return;
    point_tooltip(column, point.text);
}

/// Marks the batch that ran out of memory, at the height of the last batch that trained.
void draw_out_of_memory(ImDrawList* draw, const CompareColumn& column) {
    if (!column.out_of_memory_batch || column.curve.empty()) return;
    const ImVec2 at = ImPlot::PlotToPixels(static_cast<double>(*column.out_of_memory_batch),
                                           column.curve.back().sequences_per_s);
    draw_cross(draw, at, px(4), recipe_color(column.color));
    const ImVec2 reach{px(8), px(8)};
    if (mouse_in(at - reach, at + reach)) {
        ImGui::SetTooltip("%s runs out of memory at batch %lld", column.recipe.c_str(),
                          static_cast<long long>(*column.out_of_memory_batch));
    }
}

bool has_curve(const CompareColumn& column) {
    return !column.curve.empty() || column.planned || column.captured;
}

/// What the marks mean above the plot, in as many lines as they need; before them marker and name
/// of each curve if `with_names`.
void curve_legend(const CompareView& view, float width, bool with_names) {
    const float left = ImGui::GetCursorPosX(), mark = em(1.2F), gap = px(14);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    bool out_of_memory = false, has_sweep = false, has_captured = false;
    bool all_predicted = true;
    bool is_first = true;
    const auto item = [&](const std::string& name, const auto& draw_mark) {
        const std::string shown = fit_to(name, std::min(width, em(14)) - mark);
        const float end = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + ImGui::GetScrollX();
        const bool fits = end + gap + mark + text_width(shown) <= left + width;
        if (!is_first && fits) ImGui::SameLine(0, gap);
        is_first = false;
        const ImVec2 corner = ImGui::GetCursorScreenPos();
        draw_mark(
            ImVec2{corner.x + em(0.45F), std::round(corner.y + ImGui::GetTextLineHeight() / 2)});
        ImGui::Dummy({mark, 1});
        ImGui::SameLine(0, 0);
        dim_text(shown);
        if (shown != name) ImGui::SetItemTooltip("%s", name.c_str());
    };
    for (const CompareColumn& column : view.columns) {
        if (!has_curve(column)) continue;
        out_of_memory |= column.out_of_memory_batch.has_value();
        has_sweep |= !column.curve.empty();
        has_captured |= column.captured.has_value();
        if (column.captured) all_predicted &= column.memory_is_predicted;
        if (!with_names) continue;
        item(column.recipe, [&](ImVec2 at) { draw_recipe_marker(draw, at, px(4), column.color); });
    }
    if (has_sweep) {
        item("sweep", [&](ImVec2 at) {
            draw->AddLine({at.x - px(6), at.y}, {at.x + px(6), at.y}, palette().dim, px(2));
            draw->AddCircleFilled(at, px(3), palette().dim);
        });
    }
    if (has_captured) {
        item(all_predicted ? "predicted step" : "captured step",
             [&](ImVec2 at) { draw->AddCircle(at, px(5), palette().dim, 0, px(2)); });
    }
    if (out_of_memory) {
        item("out of memory", [&](ImVec2 at) { draw_cross(draw, at, px(4), palette().dim); });
    }
}

/// Ends of the axes, over what was measured and what is predicted.
struct CurveEnds {
    double batch = 0;
    double sequences_per_s = 0;
};

CurveEnds ends_of(const CompareView& view) {
    CurveEnds ends{static_cast<double>(view.has_throughput ? view.max_batch_size : 0),
                   view.max_sequences_per_s};
    for (const CompareColumn& column : view.columns) {
        ends.batch =
            std::max(ends.batch, static_cast<double>(column.out_of_memory_batch.value_or(0)));
        const auto reach = [&](const auto& point) {
            ends.batch = std::max(ends.batch, static_cast<double>(point.batch_size));
            ends.sequences_per_s = std::max(ends.sequences_per_s, point.sequences_per_s);
        };
        if (column.captured) reach(*column.captured);
        if (column.planned) std::ranges::for_each(column.planned->curve, reach);
    }
    return ends;
}

}  // namespace

void draw_throughput_chart(const CompareView& view, ImVec2 size, bool with_names) {
    ImGui::BeginGroup();
    const CurveEnds ends = ends_of(view);
    const bool is_empty = ends.sequences_per_s <= 0;
    chart_title("Throughput",
                is_empty                  ? ""
                : view.planned_on.empty() ? "sequences/s by batch"
                                          : "sequences/s by batch, dashed: predicted",
                size.x);
    const float top = ImGui::GetCursorPosY();
    if (!is_empty) curve_legend(view, size.x, with_names);
    const float legend = ImGui::GetCursorPosY() - top;
    const ImVec2 plot{size.x, std::max(em(5), below_title(size).y - legend)};
    if (is_empty) {
        chart_note("##no_throughput", why_empty(view, view.no_throughput_text), plot);
    } else if (ImPlot::BeginPlot("##throughput", plot, kPlainPlot | ImPlotFlags_NoInputs)) {
        const double x_end = ends.batch * 1.08 + 0.5;
        const double y_end = std::max(1e-9, ends.sequences_per_s * 1.12);
        ImPlot::SetupAxes(nullptr, nullptr, kFixedAxis, kFixedAxis);
        setup_ticks(ImAxis_X1, profiler::AxisUnit::kCount, 0, x_end, size.x * 1.8F);
        setup_ticks(ImAxis_Y1, profiler::AxisUnit::kRate, 0, y_end, plot.y);
        ImPlot::SetupAxisLimits(ImAxis_X1, 0, x_end, ImPlotCond_Always);
        ImPlot::SetupAxisLimits(ImAxis_Y1, 0, y_end, ImPlotCond_Always);
        ImPlot::SetupFinish();
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        for (const CompareColumn& column : view.columns) {
            if (column.planned) draw_planned_curve(draw, column);
            if (!column.curve.empty()) {
                draw_curve(draw, column);
                draw_out_of_memory(draw, column);
            }
            if (column.captured) draw_captured(draw, view, column);
        }
        draw_axis_name(draw, "batch");
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

}  // namespace app
