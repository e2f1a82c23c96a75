#include "app/panels/compare_charts.h"

#include "app/panels/compare_chart_parts.h"
#include "app/widgets/fonts.h"
#include "app/widgets/hatch.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

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
    const float column_px = (size.x - em(4)) / static_cast<float>(count) - px(6);
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

struct Bar {
    float left = 0;
    float right = 0;
    float center() const { return std::round((left + right) / 2); }
};

Bar bar_of(size_t index) {
    const auto x = static_cast<double>(index);
    const float left = ImPlot::PlotToPixels(x - kBarWidth / 2, 0).x;
    const float right = ImPlot::PlotToPixels(x + kBarWidth / 2, 0).x;
    const float most = px(92), width = right - left;
    const float cut = std::max(0.0F, (width - most) / 2);
    return {std::round(left + cut), std::round(right - cut)};
}

float y_of(double value) { return std::round(ImPlot::PlotToPixels(0, value).y); }

/// The value above a bar, and below it the change from the baseline. Labels that would overlap
/// those of the next bar are left out.
void bar_label(ImDrawList* draw, const Bar& bar, double value, std::string_view text,
               const profiler::Change& change) {
    const ScopedFont bold(fonts().bold);
    const float line = ImGui::GetTextLineHeight();
    const float room = ImPlot::PlotToPixels(1, 0).x - ImPlot::PlotToPixels(0, 0).x - px(4);
    const auto draw_line = [&](float y, ImU32 color, std::string_view content) {
        const float width = text_width(content);
        const float x = bar.center() - std::round(width / 2);
        // Covers the baseline's line behind the text.
        draw->AddRectFilled({x - px(2), y}, {x + width + px(2), y + line},
                            with_alpha(palette().plot, 0.85F));
        draw->AddText({x, y}, color, content.data(), content.data() + content.size());
    };
    float y = y_of(value) - line - px(3);
    if (!change.empty() && text_width(change.text) <= room) {
        draw_line(y, tone_color(change.tone), change.text);
        y -= line;
    }
    if (text_width(text) <= room) draw_line(y, palette().text, text);
}

void dashed_line(ImDrawList* draw, float left, float right, float y, ImU32 color) {
    for (float x = left; x < right; x += px(9)) {
        draw->AddRectFilled({x, y}, {std::min(right, x + px(5)), y + px(1)}, color);
    }
}

/// The baseline's value as a line across all bars, to compare with.
void baseline_mark(ImDrawList* draw, double value) {
    const ImVec2 corner = ImPlot::GetPlotPos();
    dashed_line(draw, corner.x, corner.x + ImPlot::GetPlotSize().x, y_of(value),
                with_alpha(palette().dim, 0.55F));
}

void draw_stacked_bar(ImDrawList* draw, const CompareColumn& column, const Selection& selection,
                      PanelEvents& events) {
    const Bar bar = bar_of(column.index);
    for (const profiler::StackSegment& segment : column.stack) {
        const ImVec2 upper{bar.left,
                           y_of(static_cast<double>(segment.start_bytes + segment.size_bytes))};
        const ImVec2 lower{bar.right, y_of(static_cast<double>(segment.start_bytes))};
        if (!draw_stack_segment(draw, upper, lower, column, segment, selection, events)) {
            draw_segment_text(draw, upper, lower, segment);
        }
        // A thin gap between segments.
        if (lower.y - upper.y > 3) {
            draw->AddRectFilled(upper, {lower.x, upper.y + 1}, with_alpha(palette().plot, 0.5F));
        }
    }
}

}  // namespace

void draw_memory_chart(const CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events) {
    ImGui::BeginGroup();
    chart_title("Memory at the peak", "allocated, by category", size.x);
    if (!view.has_peak) {
        chart_note("##no_memory",
                   "These files hold sweeps only; record a step with `temposcope capture`.",
                   below_title(size));
    } else if (begin_bar_plot("##memory", view, below_title(size), profiler::AxisUnit::kBytes,
                              static_cast<double>(view.max_peak_bytes), true)) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        if (view.has_one_baseline && view.columns.size() > 1 && view.columns[0].peak_bytes > 0 &&
            view.columns[0].batch_text.empty()) {
            baseline_mark(draw, static_cast<double>(view.columns[0].peak_bytes));
        }
        for (const CompareColumn& column : view.columns) {
            if (column.peak_bytes <= 0) continue;
            draw_stacked_bar(draw, column, selection, events);
            bar_label(draw, bar_of(column.index), static_cast<double>(column.peak_bytes),
                      column.peak_text, column.peak_change);
        }
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

namespace {

/// The prediction as a hatched bar; what a sweep measured as a solid, narrower one in front.
void draw_batch_bars(ImDrawList* draw, const CompareColumn& column, PanelEvents& events) {
    Bar bar = bar_of(column.index);
    const bool swept = is_swept(column);
    double highest = 0;
    if (column.planned) {
        highest = static_cast<double>(column.planned->max_batch_size.value_or(0));
        fill_predicted(draw, {bar.left, y_of(highest)}, {bar.right, y_of(0)},
                       recipe_color(column.color));
        if (swept) {
            const float cut = std::round((bar.right - bar.left) * 0.2F);
            bar = {bar.left + cut, bar.right - cut};
        }
    }
    if (swept) {
        const auto value = static_cast<double>(column.largest_batch);
        // Pale when the sweep ended before it reached the maximum.
        fill_recipe(draw, {bar.left, y_of(value)}, {bar.right, y_of(0)}, column.color,
                    column.max_batch_size ? 1.0F : 0.35F);
        highest = std::max(highest, value);
    }
    if (swept) {
        bar_label(draw, bar, highest, column.max_batch_text, column.max_batch_change);
    } else if (column.planned) {
        bar_label(draw, bar, highest, column.planned->max_batch_text,
                  column.planned->max_batch_change);
    }
    if (!mouse_in({bar.left, y_of(std::max(highest, 0.0)) - px(20)}, {bar.right, y_of(0)})) return;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.column = column.index;
    max_batch_tooltip(column);
}

}  // namespace

void draw_max_batch_chart(const CompareView& view, ImVec2 size, PanelEvents& events) {
    ImGui::BeginGroup();
    const auto most = static_cast<double>(largest_batch(view));
    chart_title("Maximum batch", most > 0 ? max_batch_subtitle(view) : "", size.x);
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
