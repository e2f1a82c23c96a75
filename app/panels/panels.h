#pragma once

#include "app/panels/kernels/kernels_panel.h"
#include "app/panels/kernels/movement_panel.h"
#include "app/panels/layers/layer_panel.h"
#include "app/panels/memory/blocks_panel.h"
#include "app/panels/memory/timeline_panel.h"
#include "app/panels/peak/flame_panel.h"
#include "app/panels/peak/ledger_panel.h"
#include "app/panels/plan/frontier_panel.h"
#include "app/panels/plan/planner_panel.h"
#include "app/panels/programs/compare_panel.h"
#include "app/panels/programs/traces_panel.h"
#include "app/panels/ranks/ranks_panel.h"
#include "app/panels/run/capture_panel.h"
#include "app/panels/run/log_panel.h"
#include "app/panels/selected/inspector_panel.h"
#include "app/widgets/icons.h"

#include <imgui.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The table of panels. Menu, layout, shortcuts and command palette are made from it.
/// docs/dev/adding_a_panel.md walks through adding one.
namespace app {

/// Where a panel lies in the default layout. Panels that share a place are tabs.
enum class DockPlace {
    kLeftTop,      // narrow column at the left
    kLeftBottom,   // below it
    kTop,          // wide, above the two places at the bottom
    kBottomLeft,   // left of the two
    kBottomRight,  // right of the two
};

/// What panels keep between frames: those of window 1, and once more for each further number.
struct PanelStates {
    CompareState compare;
    TimelineState timeline;
    KernelsState kernels;
    LayerState layer;
    FlameState flame;
    LedgerState ledger;
    BlocksState blocks;
    CaptureState capture;
    PlannerState planner;
    FrontierState frontier;
    MovementState movement;
    RanksState ranks;
    LogState log;
};

struct PanelRow {
    const char* title;
    const char* id;  // stable: saved layouts and settings refer to it
    const char* icon;
    DockPlace place;
    ImGuiKeyChord shortcut;
    const char* mouse;  // for the status bar: what click, drag and wheel do in it; empty: nothing
    PanelEvents (*draw)(const PanelContext&, PanelStates&);
    ImGuiWindowFlags flags = 0;
    bool can_repeat = false;  // the user may open further windows, each with its own WindowViews
};

/// A panel that draws from what all panels draw from and its own state.
template <auto Draw, auto State>
PanelEvents draw_with(const PanelContext& context, PanelStates& states) {
    return Draw(context, states.*State);
}

/// For panels that fill their window and scroll inside it.
inline constexpr ImGuiWindowFlags kNoScroll =
    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
/// PanelRow::can_repeat.
inline constexpr bool kCanRepeat = true;

inline constexpr std::array kPanels{
    PanelRow{"Traces", "traces", ICON_LAYERS, DockPlace::kLeftTop, ImGuiMod_Ctrl | ImGuiKey_1,
             "click the letters to choose A and B  ·  right click for more",
             [](const PanelContext& c, PanelStates&) {
                 const Workspace& w = c.workspace;
                 return PanelEvents{
                     .traces = draw_traces_panel({w.documents(), w.labels(), w.selection().a,
                                                  w.selection().b, w.prediction(), w.loading()})};
             }},
    PanelRow{"Compare", "compare", ICON_CHART_COLUMN, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_2,
             "click a recipe to make it B  ·  click a category to pick it out  ·  right click the "
             "table's titles to choose columns",
             draw_with<draw_compare_panel, &PanelStates::compare>},
    PanelRow{"Kernels", "kernels", ICON_CHART_GANTT, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_7,
             "click selects a call or a module  ·  wheel zooms time  ·  drag moves  ·  Shift + "
             "drag selects a range  ·  double click zooms to what is under it",
             draw_with<draw_kernels_panel, &PanelStates::kernels>, kNoScroll},
    PanelRow{
        "Layer explorer", "layer", ICON_LAYERS, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_L,
        "click selects a tensor or a call  ·  the switches predict another recipe and show it as B",
        draw_with<draw_layer_panel, &PanelStates::layer>, kNoScroll},
    PanelRow{"Flame graph", "flame", ICON_FIRE, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_9,
             "click zooms to a module or selects a tensor  ·  Backspace zooms out  ·  right click "
             "for more",
             draw_with<draw_flame_panel, &PanelStates::flame>, kNoScroll, kCanRepeat},
    PanelRow{"Blocks", "blocks", ICON_MEMORY, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_8,
             "click selects a block and its moment  ·  wheel zooms time, Ctrl + wheel bytes  ·  "
             "drag moves  ·  double click shows all",
             draw_with<draw_blocks_panel, &PanelStates::blocks>, kNoScroll, kCanRepeat},
    PanelRow{"Movement", "movement", ICON_BOLT, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_M,
             "click selects the longest call of an op  ·  drag a rectangle to mark its ops",
             draw_with<draw_movement_panel, &PanelStates::movement>, kNoScroll},
    PanelRow{"Ranks", "ranks", ICON_SERVER, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_G,
             "click sets the moment  ·  wheel zooms time  ·  drag moves  ·  Shift + drag selects a "
             "range  ·  double click shows all",
             draw_with<draw_ranks_panel, &PanelStates::ranks>, kNoScroll},
    PanelRow{"Planner", "planner", ICON_SLIDERS, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_P,
             "drag in a plot to another batch  ·  click a recipe for its figures",
             draw_with<draw_planner_panel, &PanelStates::planner>, kNoScroll},
    PanelRow{
        "Recipe frontier", "frontier", ICON_CHART_LINE, DockPlace::kTop,
        ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P,
        "click a dot, and another one for the way between  ·  double click shows it as B  ·  drag "
        "the green limit",
        draw_with<draw_frontier_panel, &PanelStates::frontier>, kNoScroll},
    PanelRow{"Memory timeline", "timeline", ICON_CHART_AREA, DockPlace::kBottomLeft,
             ImGuiMod_Ctrl | ImGuiKey_3,
             "click sets the moment  ·  wheel zooms time  ·  drag moves  ·  Shift + drag selects a "
             "range  ·  right drag zooms  ·  double click shows all",
             draw_with<draw_timeline_panel, &PanelStates::timeline>, kNoScroll},
    PanelRow{"Ledger", "ledger", ICON_TABLE, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_4,
             "click selects a tensor  ·  click a title to sort  ·  right click for more",
             draw_with<draw_ledger_panel, &PanelStates::ledger>, kNoScroll, kCanRepeat},
    PanelRow{"Capture", "capture", ICON_RECORD, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_5,
             "", draw_with<draw_capture_panel, &PanelStates::capture>},
    PanelRow{"Log", "log", ICON_TERMINAL, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_J, "",
             [](const PanelContext& c, PanelStates& s) {
                 const CaptureSession& capture = c.workspace.capture();
                 draw_log_panel(
                     {capture.status()->log, c.workspace.prediction_log(), capture.running()},
                     s.log);
                 return PanelEvents();
             },
             kNoScroll},
    PanelRow{"Inspector", "inspector", ICON_CIRCLE_INFO, DockPlace::kLeftBottom,
             ImGuiMod_Ctrl | ImGuiKey_I,
             "x takes from the selection  ·  Alt + arrows go back and forth  ·  the pin keeps what "
             "is described",
             [](const PanelContext& c, PanelStates&) { return draw_inspector_panel(c); }, 0,
             kCanRepeat},
    PanelRow{"Diagnostics", "diagnostics", ICON_HEART_PULSE, DockPlace::kLeftBottom,
             ImGuiMod_Ctrl | ImGuiKey_6, "",
             [](const PanelContext& c, PanelStates&) {
                 draw_diagnostics_panel(c.workspace.selection());
                 return PanelEvents();
             }},
};

// ---- windows --------------------------------------------------------------------------------

/// A panel has one window; of some panels the user may open more.
struct PanelWindow {
    const PanelRow* panel = nullptr;
    int number = 1;  // the panel's own window is 1; the user opens 2 to kMostWindows
};

/// Every window that may be open, in the order of the table of panels.
std::vector<PanelWindow> all_windows();

/// "ledger", "ledger-2": as stable as the id of a panel, and usable as the name of a file.
std::string id_of(const PanelWindow& window);
/// The window with this id; nullopt if there can be none.
std::optional<PanelWindow> find_window(std::string_view id);

/// "Ledger", "Ledger 2".
std::string title_of(const PanelWindow& window);
/// "<icon> Ledger 2###ledger-2": ImGui identifies a window by the part after ###.
std::string window_name(const PanelWindow& window);

}  // namespace app
