#pragma once

#include "app/panels/blocks_panel.h"
#include "app/panels/capture_panel.h"
#include "app/panels/compare_panel.h"
#include "app/panels/diagnostics_panel.h"
#include "app/panels/dock_place.h"
#include "app/panels/flame_panel.h"
#include "app/panels/frontier_panel.h"
#include "app/panels/inspector_panel.h"
#include "app/panels/kernels_panel.h"
#include "app/panels/layer_panel.h"
#include "app/panels/ledger_panel.h"
#include "app/panels/log_panel.h"
#include "app/panels/movement_panel.h"
#include "app/panels/planner_panel.h"
#include "app/panels/ranks_panel.h"
#include "app/panels/timeline_panel.h"
#include "app/panels/traces_panel.h"
#include "app/widgets/icons.h"

#include <imgui.h>

#include <array>

/// The table of panels. Menu, layout, shortcuts and command palette are made from it.
/// docs/adding_a_panel.md walks through adding one.
namespace app {

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
    PanelEvents (*draw)(const PanelContext&, PanelStates&);
    ImGuiWindowFlags flags = 0;
    bool can_repeat = false;  // the user may open further windows, each with its own WindowViews
};

/// For panels that fill their window and scroll inside it.
inline constexpr ImGuiWindowFlags kNoScroll =
    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
/// PanelRow::can_repeat.
inline constexpr bool kCanRepeat = true;

inline constexpr std::array kPanels{
    PanelRow{"Traces", "traces", ICON_LAYERS, DockPlace::kLeftTop, ImGuiMod_Ctrl | ImGuiKey_1,
             [](const PanelContext& c, PanelStates&) { return draw_traces_panel(c); }},
    PanelRow{
        "Compare", "compare", ICON_CHART_COLUMN, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_2,
        [](const PanelContext& c, PanelStates& s) { return draw_compare_panel(c, s.compare); }},
    PanelRow{"Kernels", "kernels", ICON_CHART_GANTT, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_7,
             [](const PanelContext& c, PanelStates& s) { return draw_kernels_panel(c, s.kernels); },
             kNoScroll},
    PanelRow{"Layer explorer", "layer", ICON_LAYERS, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_L,
             [](const PanelContext& c, PanelStates& s) { return draw_layer_panel(c, s.layer); },
             kNoScroll},
    PanelRow{"Flame graph", "flame", ICON_FIRE, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_9,
             [](const PanelContext& c, PanelStates& s) { return draw_flame_panel(c, s.flame); },
             kNoScroll, kCanRepeat},
    PanelRow{"Blocks", "blocks", ICON_MEMORY, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_8,
             [](const PanelContext& c, PanelStates& s) { return draw_blocks_panel(c, s.blocks); },
             kNoScroll, kCanRepeat},
    PanelRow{
        "Movement", "movement", ICON_BOLT, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_M,
        [](const PanelContext& c, PanelStates& s) { return draw_movement_panel(c, s.movement); },
        kNoScroll},
    PanelRow{"Ranks", "ranks", ICON_SERVER, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_G,
             [](const PanelContext& c, PanelStates& s) { return draw_ranks_panel(c, s.ranks); },
             kNoScroll},
    PanelRow{"Planner", "planner", ICON_SLIDERS, DockPlace::kTop, ImGuiMod_Ctrl | ImGuiKey_P,
             [](const PanelContext& c, PanelStates& s) { return draw_planner_panel(c, s.planner); },
             kNoScroll},
    PanelRow{
        "Recipe frontier", "frontier", ICON_CHART_LINE, DockPlace::kTop,
        ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P,
        [](const PanelContext& c, PanelStates& s) { return draw_frontier_panel(c, s.frontier); },
        kNoScroll},
    PanelRow{
        "Memory timeline", "timeline", ICON_CHART_AREA, DockPlace::kBottomLeft,
        ImGuiMod_Ctrl | ImGuiKey_3,
        [](const PanelContext& c, PanelStates& s) { return draw_timeline_panel(c, s.timeline); },
        kNoScroll},
    PanelRow{"Ledger", "ledger", ICON_TABLE, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_4,
             [](const PanelContext& c, PanelStates& s) { return draw_ledger_panel(c, s.ledger); },
             kNoScroll, kCanRepeat},
    PanelRow{
        "Capture", "capture", ICON_RECORD, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_5,
        [](const PanelContext& c, PanelStates& s) { return draw_capture_panel(c, s.capture); }},
    PanelRow{"Log", "log", ICON_TERMINAL, DockPlace::kBottomRight, ImGuiMod_Ctrl | ImGuiKey_J,
             [](const PanelContext& c, PanelStates& s) { return draw_log_panel(c, s.log); },
             kNoScroll},
    PanelRow{"Inspector", "inspector", ICON_CIRCLE_INFO, DockPlace::kLeftBottom,
             ImGuiMod_Ctrl | ImGuiKey_I,
             [](const PanelContext& c, PanelStates&) { return draw_inspector_panel(c); }, 0,
             kCanRepeat},
    // Its id is from when the panel was called Health; saved layouts still use it.
    PanelRow{"Diagnostics", "health", ICON_HEART_PULSE, DockPlace::kLeftBottom,
             ImGuiMod_Ctrl | ImGuiKey_6,
             [](const PanelContext& c, PanelStates&) { return draw_diagnostics_panel(c); }},
};

}  // namespace app
