#include "app/panels/panels.h"

#include "app/widgets/icons.h"
#include "app/window/ui.h"

#include <fmt/format.h>

#include <array>

namespace app {
namespace {

PanelEvents draw_traces(Ui& ui) {
    return draw_traces_panel({.documents = &ui.workspace.documents(),
                              .looks = &ui.workspace.looks(),
                              .selection = &ui.workspace.selection(),
                              .loading = ui.workspace.loading()},
                             ui.panels.traces);
}

PanelEvents draw_compare(Ui& ui) {
    CompareInput input{.view = ui.workspace.compare_view(),
                       .selection = &ui.workspace.selection(),
                       .loading = ui.workspace.loading(),
                       .documents_open = !ui.workspace.documents().empty(),
                       .recent_files = &ui.settings.recent_files};
    const size_t columns = input.view ? input.view->columns.size() : 0;
    for (size_t i = 0; i < columns; ++i) {
        input.documents.push_back(ui.workspace.document_of_column(i));
    }
    return draw_compare_panel(input, ui.panels.compare);
}

/// Where the mouse is in another panel on the time axis, if that one is seen.
template <typename State>
std::optional<double> cursor_of(const State& state) {
    return ImGui::GetFrameCount() - state.drawn_frame <= 1 ? state.cursor_ns : std::nullopt;
}

PanelEvents draw_timeline(Ui& ui) {
    const Workspace& workspace = ui.workspace;
    return draw_timeline_panel(
        {.view = workspace.timeline_view(),
         .error = workspace.timeline_error(),
         .selection = &workspace.selection(),
         .limits = workspace.time_limits(),
         .window = workspace.time_window(),
         .cursor_ns = cursor_of(ui.panels.kernels),
         .read = [&](size_t source,
                     double time_ns) { return workspace.read_timeline(source, time_ns); }},
        ui.panels.timeline);
}

PanelEvents draw_kernels(Ui& ui) {
    const Workspace& workspace = ui.workspace;
    return draw_kernels_panel({.view = workspace.activity_view(),
                               .error = workspace.activity_error(),
                               .selection = &workspace.selection(),
                               .limits = workspace.time_limits(),
                               .window = workspace.time_window(),
                               .cursor_ns = cursor_of(ui.panels.timeline)},
                              ui.panels.kernels);
}

PanelEvents draw_ledger(Ui& ui) {
    return draw_ledger_panel({.view = ui.workspace.ledger_view(),
                              .error = ui.workspace.ledger_error(),
                              .selection = &ui.workspace.selection(),
                              .query = ui.workspace.ledger_query()},
                             ui.panels.ledger);
}

PanelEvents draw_capture(Ui& ui) {
    return draw_capture_panel(*ui.workspace.capture().status(), ui.panels.capture);
}

PanelEvents draw_diagnostics(Ui& ui) {
    return draw_diagnostics_panel(ui.workspace.selection(), ui.panels.diagnostics);
}

constexpr ImGuiWindowFlags kNoScroll =
    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;

const std::array kPanels{
    PanelRow{"Traces", "traces", ICON_LAYERS, DockPlace::kLeftTop, ImGuiMod_Ctrl | ImGuiKey_1,
             [](PanelStates& p) -> bool& { return p.traces.open; }, draw_traces},
    PanelRow{"Compare", "compare", ICON_CHART_COLUMN, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_2,
             [](PanelStates& p) -> bool& { return p.compare.open; }, draw_compare},
    PanelRow{"Kernels", "kernels", ICON_CHART_GANTT, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_7,
             [](PanelStates& p) -> bool& { return p.kernels.open; }, draw_kernels, kNoScroll},
    PanelRow{"Memory timeline", "timeline", ICON_CHART_AREA, DockPlace::kBottomLeft,
             ImGuiMod_Ctrl | ImGuiKey_3, [](PanelStates& p) -> bool& { return p.timeline.open; },
             draw_timeline, kNoScroll},
    PanelRow{"Ledger", "ledger", ICON_TABLE, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_4,
             [](PanelStates& p) -> bool& { return p.ledger.open; }, draw_ledger, kNoScroll},
    PanelRow{"Capture", "capture", ICON_RECORD, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_5,
             [](PanelStates& p) -> bool& { return p.capture.open; }, draw_capture},
    PanelRow{"Health", "health", ICON_HEART_PULSE, DockPlace::kLeftBottom,
             ImGuiMod_Ctrl | ImGuiKey_6, [](PanelStates& p) -> bool& { return p.diagnostics.open; },
             draw_diagnostics},
};

}  // namespace

std::span<const PanelRow> panel_rows() { return kPanels; }

std::string window_name(const PanelRow& row) {
    return fmt::format("{} {}###{}", row.icon, row.title, row.id);
}

}  // namespace app
