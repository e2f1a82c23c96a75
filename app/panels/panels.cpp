#include "app/panels/panels.h"

#include <fmt/format.h>

namespace app {

std::vector<PanelWindow> all_windows() {
    std::vector<PanelWindow> windows;
    for (const PanelRow& row : kPanels) {
        const int most = row.can_repeat ? kMostWindows : 1;
        for (int number = 1; number <= most; ++number) windows.push_back({&row, number});
    }
    return windows;
}

std::string id_of(const PanelWindow& window) {
    if (window.number == 1) return window.panel->id;
    return fmt::format("{}-{}", window.panel->id, window.number);
}

std::optional<PanelWindow> find_window(std::string_view id) {
    for (const PanelWindow& window : all_windows()) {
        if (id_of(window) == id) return window;
    }
    return std::nullopt;
}

std::string title_of(const PanelWindow& window) {
    if (window.number == 1) return window.panel->title;
    return fmt::format("{} {}", window.panel->title, window.number);
}

std::string window_name(const PanelWindow& window) {
    return fmt::format("{} {}###{}", window.panel->icon, title_of(window), id_of(window));
}

}  // namespace app
