#include "app/panels/programs/compare_charts.h"

#include "app/panels/programs/compare_chart_parts.h"
#include "app/widgets/fonts.h"
#include "app/widgets/hatch.h"
#include "app/widgets/marks.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/text_plate.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::CompareColumn;
using profiler::CompareView;

constexpr double kBarWidth = 0.56;  // of a column's share of the axis

/// A plot with recipe names on the horizontal axis and a value axis that starts at 0. Below the
/// names stand the batches, where they differ and `with_batch` is set.
bool begin_bar_plot(const char* id, const CompareView& view, ImVec2 size, profiler::AxisUnit unit,
                    double max_value, bool with_batch) {
    if (!ImPlot::BeginPlot(id, size, kPlainPlot | ImPlotFlags_NoInputs)) return false;
    const auto count = static_cast<double>(view.columns.size());
    ImPlot::SetupAxes(nullptr, nullptr,
                      kFixedAxis | ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks,
                      kFixedAxis);
    const float axis = em(unit == profiler::AxisUnit::kBytes ? 4.0F : 2.5F);
    const float column_px = (size.x - axis) / static_cast<float>(count) - px(4);
    std::vector<double> positions;
    std::vector<std::string> names;
    std::vector<const char*> labels;
    for (const CompareColumn& column : view.columns) {
        positions.push_back(static_cast<double>(column.index));
        names.push_back(fit_to(column.recipe, column_px));
        if (with_batch && !column.batch_text.empty()) names.back() += "\n" + column.batch_text;
    }
    for (const std::string& name : names) labels.push_back(name.c_str());
    ImPlot::SetupAxisTicks(ImAxis_X1, positions.data(), static_cast<int>(positions.size()),
                           labels.data());
    // Room above the highest bar for its value and its change.
    const double inside = std::max(em(6), size.y - em(2.4F));
    const double text_room = 2 * ImGui::GetTextLineHeight() + px(8);
    const double end = std::max(max_value / (1 - std::min(0.6, text_room / inside)), 1e-9);
    setup_ticks(ImAxis_Y1, unit, 0, end, size.y);
    ImPlot::SetupAxisLimits(ImAxis_X1, -0.6, count - 0.4, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, end, ImPlotCond_Always);
    ImPlot::SetupFinish();
    return true;
}

PlotBar bar_of(const CompareColumn& column) {
    return plot_bar(static_cast<double>(column.index), kBarWidth);
}

/// The distance between two bars, without a gap.
float label_room() { return ImPlot::PlotToPixels(1, 0).x - ImPlot::PlotToPixels(0, 0).x - px(4); }

void line_across(ImDrawList* draw, double value, ImU32 color) {
    const float left = ImPlot::GetPlotPos().x, y = plot_y(value) + 0.5F;
    draw_dashed_line(draw, {left, y}, {left + ImPlot::GetPlotSize().x, y}, color, px(1));
}

/// The baseline's value as a line across all bars, to compare with.
void baseline_mark(ImDrawList* draw, double value) {
    line_across(draw, value, with_alpha(palette().dim, 0.55F));
}

/// Whether a line stands for the peak of the first column: all steps compare with it, at one batch.
bool has_baseline_mark(const CompareView& view) {
    return view.has_one_baseline && view.columns.size() > 1 && view.columns[0].peak_bytes > 0 &&
           view.columns[0].batch_text.empty();
}

/// The memory that the steps had. It stands before the bars.
void limit_mark(ImDrawList* draw, int64_t limit_bytes) {
    const auto value = static_cast<double>(limit_bytes);
    line_across(draw, value, palette().bad);
    const std::string label = "limit " + profiler::format_bytes(limit_bytes);
    const float right = ImPlot::GetPlotPos().x + ImPlot::GetPlotSize().x;
    text_on_plate(draw, {right - text_width(label) - px(5), plot_y(value) + px(2)}, label,
                  palette().bad, with_alpha(palette().plot, 0.85F), {3, 0});
}

/// In place of a change: why there is none.
profiler::Change change_of_peak(const CompareColumn& column) {
    if (column.why_no_peak.empty()) return column.peak_change;
    return {.text = column.why_no_peak, .tone = profiler::Tone::kBad};
}

void draw_memory_bar(ImDrawList* draw, const CompareColumn& column, const Selection& selection,
                     PanelEvents& events) {
    const PlotBar bar = bar_of(column);
    draw_stacked_bar(draw, bar, owner_of(column), column.stack, selection, events);
    const auto peak = static_cast<double>(column.peak_bytes);
    if (column.is_cut_off) {
        draw_torn_edge(draw, {bar.left, plot_y(peak)}, {bar.right, plot_y(peak)}, {0, px(6)},
                       palette().plot);
    }
    bar_label(draw, bar, peak, label_room(), column.short_peak_text, change_of_peak(column));
}

}  // namespace

void draw_memory_chart(const CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events) {
    ImGui::BeginGroup();
    std::string subtitle = memory_subtitle(view);
    if (has_baseline_mark(view)) subtitle += ", grey dashes: " + view.columns[0].recipe;
    chart_title(profiler::kPeakAllocated, subtitle, size.x);
    if (!view.has_peak) {
        chart_note(
            "##no_memory",
            why_empty(view, "These files hold sweeps only; capture a step to see its memory."),
            below_title(size));
    } else if (begin_bar_plot("##memory", view, below_title(size), profiler::AxisUnit::kBytes,
                              static_cast<double>(view.max_peak_bytes), true)) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        if (has_baseline_mark(view)) {
            baseline_mark(draw, static_cast<double>(view.columns[0].peak_bytes));
        }
        for (const CompareColumn& column : view.columns) {
            if (column.peak_bytes <= 0 && !column.out_of_memory) continue;
            draw_memory_bar(draw, column, selection, events);
        }
        if (view.step_limit_bytes > 0) limit_mark(draw, view.step_limit_bytes);
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

namespace {

/// The prediction as a pale bar; what a sweep measured as a solid, narrower one in front.
void draw_batch_bars(ImDrawList* draw, const CompareColumn& column, PanelEvents& events) {
    PlotBar bar = bar_of(column);
    const bool swept = is_swept(column);
    double highest = 0;
    if (column.planned) {
        highest = static_cast<double>(column.planned->max_batch_size.value_or(0));
        fill_predicted(draw, {bar.left, plot_y(highest)}, {bar.right, plot_y(0)},
                       recipe_color(column.color));
        if (swept) {
            const float cut = std::round((bar.right - bar.left) * 0.2F);
            bar = {bar.left + cut, bar.right - cut};
        }
    }
    if (swept) {
        const auto value = static_cast<double>(column.largest_batch);
        const ImVec2 upper{bar.left, plot_y(value)};
        fill_recipe(draw, upper, {bar.right, plot_y(0)}, column.color);
        if (!column.max_batch_size) {  // the sweep ended before it reached the maximum
            draw_torn_edge(draw, upper, {bar.right, upper.y}, {0, px(6)}, palette().plot);
        }
        highest = std::max(highest, value);
    }
    if (swept) {
        bar_label(draw, bar, highest, label_room(), column.max_batch_text, column.max_batch_change);
    } else if (column.planned) {
        bar_label(draw, bar, highest, label_room(), profiler::max_batch_text(*column.planned),
                  column.planned_max_batch_change);
    }
    if (!mouse_in({bar.left, plot_y(std::max(highest, 0.0)) - px(20)}, {bar.right, plot_y(0)}))
        return;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.traces.column = column.index;
    max_batch_tooltip(column);
}

}  // namespace

void draw_max_batch_chart(const CompareView& view, ImVec2 size, PanelEvents& events) {
    ImGui::BeginGroup();
    const auto most = static_cast<double>(largest_batch(view));
    chart_title(profiler::kLargestBatch, most > 0 ? max_batch_subtitle(view) : "", size.x);
    if (most == 0) {
        chart_note("##no_batch", why_empty(view, view.no_max_batch_text), below_title(size));
    } else if (begin_bar_plot("##batch", view, below_title(size), profiler::AxisUnit::kCount, most,
                              false)) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        if (view.has_one_baseline && view.columns.size() > 1 && view.columns[0].max_batch_size) {
            baseline_mark(draw, static_cast<double>(*view.columns[0].max_batch_size));
        }
        for (const CompareColumn& column : view.columns) draw_batch_bars(draw, column, events);
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

}  // namespace app
