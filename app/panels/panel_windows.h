#pragma once

#include "app/panels/panels.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The windows of panels. A panel has one; of some the user may open further ones.
namespace app {

struct PanelWindow {
    const PanelRow* panel = nullptr;
    int number = 1;  // of the window that the panel always had; further ones have 2 to kMostWindows
};

/// Every window that may be open, in the order of the table of panels.
std::vector<PanelWindow> all_windows();

/// "ledger", "ledger-2": stable like the id of a panel, and fit for the name of a file.
std::string id_of(const PanelWindow& window);
/// The opposite; nullopt if there can be no such window.
std::optional<PanelWindow> find_window(std::string_view id);

/// "Ledger", "Ledger 2".
std::string title_of(const PanelWindow& window);
/// "<icon> Ledger 2###ledger-2": ImGui identifies a window by the part after ###.
std::string window_name(const PanelWindow& window);

}  // namespace app
