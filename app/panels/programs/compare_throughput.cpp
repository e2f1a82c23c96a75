#include "app/panels/programs/compare_charts.h"

#include "app/widgets/imgui_canvas.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/charts/throughput_chart.h"

#include <algorithm>
#include <vector>

namespace app {
namespace {

using profiler::CompareView;
using profiler::ThroughputMark;

constexpr profiler::ThroughputParts kParts{.plans = true, .captured = true};

/// Of the mark under the mouse; of several the one that was drawn last.
void draw_mark_tooltip(const CompareView& view, const std::vector<ThroughputMark>& marks,
                       profiler::Point mouse) {
    const auto mark = std::find_if(marks.rbegin(), marks.rend(),
                                   [&](const ThroughputMark& one) { return one.covers(mouse); });
    if (mark == marks.rend() || !ImGui::BeginTooltip()) return;
    const profiler::CompareColumn& column = view.columns[mark->column];
    swatch(recipe_color(column.color));
    bold_text(column.recipe);
    text(mark->text);
    ImGui::EndTooltip();
}

void draw_curves(const CompareView& view, ImVec2 size, bool with_names) {
    constexpr double kMostName = 180;  // longer names are shortened; tooltips have them whole
    constexpr double kEdge = 6;        // around the plot, where labels of its axes stand half
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::Dummy(size);
    const bool is_over = ImGui::IsItemHovered();
    ImGuiCanvas canvas(ImGui::GetWindowDrawList());
    const profiler::Theme& theme = current_theme();
    const profiler::Rect area = canvas.to_canvas(corner, size);
    const double top = kEdge + profiler::draw_legend(canvas, theme,
                                                     profiler::throughput_legend(
                                                         canvas, theme, view, kParts, with_names),
                                                     {area.x, area.y, area.width}, kMostName);
    const profiler::Rect plot{area.x + profiler::kRateLabels, top,
                              std::max(40.0, area.width - profiler::kRateLabels - kEdge),
                              std::max(40.0, area.bottom() - profiler::kBatchLabels - top)};
    canvas.fill(plot, theme.plot);
    profiler::draw_outline(canvas, plot, {.color = theme.border});
    const auto marks = profiler::draw_throughput(canvas, theme, view, kParts, plot);
    if (is_over) draw_mark_tooltip(view, marks, canvas.to_canvas(ImGui::GetMousePos()));
}

}  // namespace

void draw_throughput_chart(const CompareView& view, ImVec2 size, bool with_names) {
    ImGui::BeginGroup();
    const bool is_empty = !profiler::has_throughput(view, kParts);
    chart_title("Throughput",
                is_empty                  ? ""
                : view.planned_on.empty() ? "sequences/s by batch"
                                          : "sequences/s by batch, dashed: predicted",
                size.x);
    const ImVec2 below{size.x, std::max(em(7), below_title(size).y)};
    if (is_empty) {
        chart_note("##no_throughput", why_empty(view, view.no_throughput_text), below);
    } else {
        draw_curves(view, below, with_names);
    }
    ImGui::EndGroup();
}

}  // namespace app
