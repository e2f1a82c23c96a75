#pragma once

#include "app/panels/panels.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The windows of panels. A panel has one window; of some panels the user may open more.
namespace app {

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
