#pragma once

#include "app/panels/panel_tables.h"

#include <cstdint>
#include <string>
#include <vector>

/// The export dialog: what leaves the window, in which format, and where to.
///
/// Charts follow filters, zoom and theme of the window; tables hold the rows that a panel shows;
/// pictures are the pixels on the screen. The format is the extension of the name.
namespace app {

struct Ui;

struct ExportTarget {
    enum class Kind : uint8_t { kComparison, kTimeline, kTable, kPanel, kWindow };

    Kind kind = Kind::kWindow;
    std::string title;      // "Chart: comparison"
    std::string file_name;  // "comparison", without extension
    PanelTable table;       // of kTable
    std::string window_id;  // of kTable and kPanel
};

struct ExportState {
    std::vector<ExportTarget>
        targets;           // all that can be exported, as it was when the dialog opened
    size_t chosen = 0;     // in `targets`
    double png_scale = 2;  // of charts: pixels per point
};

/// All that can be exported now.
std::vector<ExportTarget> export_targets(const Ui& ui);

/// ".svg", ".pdf", ... The first one is proposed.
std::vector<std::string> extensions_of(ExportTarget::Kind kind);

/// Opens the dialog with the first target of this kind, and of this window or table if `name` is
/// not empty.
void ask_for_export(Ui& ui, ExportTarget::Kind kind, const std::string& name = {});

/// Draws the dialog while it is open, and exports what the user confirms.
void draw_export_dialog(Ui& ui);

/// Opens the menu of a window: copy and save its tables, save its picture, open another one.
void open_panel_menu(Ui& ui, const std::string& window_id);
void draw_panel_menu(Ui& ui);

}  // namespace app
