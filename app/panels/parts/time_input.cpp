#include "app/panels/parts/time_input.h"

#include "app/panels/parts/timeline_drawing.h"
#include "app/widgets/plot.h"
#include "app/widgets/theme.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

void move_with_keys(const TimeAxis& time, std::optional<double> center_ns, PanelEvents& events) {
    constexpr double kZoom = 1.4;   // a press
    constexpr double kMove = 0.15;  // of what is shown
    const double shown_ns = time.window.end_ns - time.window.start_ns;
    double start_ns = time.window.start_ns;
    double end_ns = time.window.end_ns;
    const double center = center_ns.value_or((start_ns + end_ns) / 2);
    const auto zoom = [&](double factor) {
        start_ns = center + (start_ns - center) * factor;
        end_ns = center + (end_ns - center) * factor;
    };
    const auto move = [&](double share) {
        start_ns += share * shown_ns;
        end_ns += share * shown_ns;
    };
    if (ImGui::IsKeyPressed(ImGuiKey_W)) zoom(1 / kZoom);
    if (ImGui::IsKeyPressed(ImGuiKey_S)) zoom(kZoom);
    if (ImGui::IsKeyPressed(ImGuiKey_A)) move(-kMove);
    if (ImGui::IsKeyPressed(ImGuiKey_D)) move(kMove);
    if (start_ns == time.window.start_ns && end_ns == time.window.end_ns) return;
    const double most_ns = std::max(time.limits.end_ns - time.limits.start_ns, kMinWindowNs);
    const double length = std::clamp(end_ns - start_ns, kMinWindowNs, most_ns);
    const double last_ns = std::max(time.limits.start_ns, time.limits.end_ns - length);
    start_ns = std::clamp(start_ns, time.limits.start_ns, last_ns);
    set_range(start_ns, start_ns + length, time.window, events);
}

}  // namespace

void drag_range(RangeDrag& drag, PanelEvents& events) {
    if (ImPlot::IsPlotHovered() && ImGui::GetIO().KeyShift &&
        ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        drag.anchor_ns = ImPlot::GetPlotMousePos().x;
    }
    if (!drag.anchor_ns) return;
    const ImPlotRect shown = ImPlot::GetPlotLimits();
    const double time_ns = std::clamp(ImPlot::GetPlotMousePos().x, shown.X.Min, shown.X.Max);
    const profiler::TimeRange range{std::min(*drag.anchor_ns, time_ns),
                                    std::max(*drag.anchor_ns, time_ns)};
    // A click without a drag clears the range.
    const bool dragged =
        ImPlot::PlotToPixels(range.end_ns, 0).x - ImPlot::PlotToPixels(range.start_ns, 0).x > px(3);
    events.selection.range = dragged ? std::optional(range) : std::nullopt;
    if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) drag.anchor_ns.reset();
}

void setup_lane_axes(const profiler::TimeRange& limits, const RangeDrag& drag, double& start_ns,
                     double& end_ns, float width_px) {
    const ImPlotAxisFlags quiet = ImPlotAxisFlags_NoHighlight | ImPlotAxisFlags_NoMenus;
    // Shift + drag selects a range instead of moving.
    const bool is_selecting = ImGui::GetIO().KeyShift || drag.anchor_ns;
    ImPlot::SetupAxes(nullptr, nullptr,
                      quiet | ImPlotAxisFlags_NoTickLabels |
                          (is_selecting ? ImPlotAxisFlags_Lock : ImPlotAxisFlags_None),
                      kFixedAxis | ImPlotAxisFlags_NoDecorations);
    setup_time_axis(limits, start_ns, end_ns, width_px);
    ImPlot::SetupFinish();
}

bool is_plain_click() {
    const ImGuiIO& io = ImGui::GetIO();
    const ImVec2 drag = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
    return ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !io.KeyShift &&
           io.MouseClickedLastCount[ImGuiMouseButton_Left] == 1 &&
           std::abs(drag.x) + std::abs(drag.y) < px(4);
}

void zoom_to_span(double start_ns, double end_ns, const TimeWindow& window, PanelEvents& events) {
    const double middle = (start_ns + end_ns) / 2;
    const double half = std::max(end_ns - start_ns, kMinWindowNs / 2);
    set_range(middle - half, middle + half, window, events);
}

void handle_time_keys(const PanelContext& context, PanelEvents& events) {
    const bool is_meant = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) ||
                          ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows);
    const ImGuiIO& io = ImGui::GetIO();
    if (!is_meant || io.WantTextInput || io.KeyCtrl || io.KeyAlt) return;
    const TimeAxis& time = context.workspace.time();
    move_with_keys(time, context.cursor_ns, events);
    const auto& range = context.workspace.selection().range;
    if (range && ImGui::IsKeyPressed(ImGuiKey_Z)) {
        set_range(range->start_ns, range->end_ns, time.window, events);
    }
    if (range && ImGui::IsKeyPressed(ImGuiKey_Escape)) {
        events.selection.range = std::optional<profiler::TimeRange>();
    }
    if (ImGui::IsKeyPressed(ImGuiKey_Home)) events.selection.moment_ns.emplace(std::nullopt);
}

}  // namespace app
