#pragma once

#include "app/panels/capture_panel.h"
#include "app/panels/compare_panel.h"
#include "app/panels/diagnostics_panel.h"
#include "app/panels/kernels_panel.h"
#include "app/panels/ledger_panel.h"
#include "app/panels/timeline_panel.h"
#include "app/panels/traces_panel.h"
#include "app/window/layout.h"

#include <span>
#include <string>

/// The list of panels: menu, layout, shortcuts and command palette come from it. A new panel is a
/// file beside this one and a row in panels.cpp.
namespace app {

struct Ui;

/// What each panel keeps between frames.
struct PanelStates {
    TracesState traces;
    CompareState compare;
    TimelineState timeline;
    KernelsState kernels;
    LedgerState ledger;
    CaptureState capture;
    DiagnosticsState diagnostics;
};

struct PanelRow {
    const char* title;
    const char* id;  // stable: saved layouts and settings name it
    const char* icon;
    DockPlace place;
    ImGuiKeyChord shortcut;
    bool& (*open)(PanelStates&);
    PanelEvents (*draw)(Ui&);
    ImGuiWindowFlags flags = 0;
};

std::span<const PanelRow> panel_rows();

/// "<icon> Compare###compare"
std::string window_name(const PanelRow& row);

}  // namespace app
