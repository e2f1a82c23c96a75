#include "app/panels/panels.h"

#include <fmt/format.h>

namespace app {

std::vector<const PanelRow*> views_beside(const PanelRow& row) {
    std::vector<const PanelRow*> views;
    for (const PanelRow& other : kPanels) {
        if (std::string_view(other.panel) == row.panel) views.push_back(&other);
    }
    return views;
}

bool is_open_at_first(const PanelRow& row, Layout layout) {
    return row.places[static_cast<size_t>(layout)].is_open && views_beside(row).front() == &row;
}

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
    if (window.number == 1) return window.panel->panel;
    return fmt::format("{} {}", window.panel->title, window.number);
}

std::string window_name(const PanelWindow& window) {
    // The icon of a panel is that of its first view.
    const PanelRow& row = window.number == 1 ? *views_beside(*window.panel).front() : *window.panel;
    return fmt::format("{} {}###{}", row.icon, title_of(window), id_of(window));
}

}  // namespace app
