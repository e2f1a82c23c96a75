#include "app/window/windows.h"

#include "app/window/ui.h"

#include <array>
#include <optional>
#include <string>

namespace app {
namespace {

/// The lowest number that no open window of the panel has; nullopt: all are open.
std::optional<int> free_number(const Ui& ui, const PanelRow& row) {
    for (int number = 1; number <= (row.can_repeat ? kMostWindows : 1); ++number) {
        if (!is_open(ui, {&row, number})) return number;
    }
    return std::nullopt;
}

/// Makes the window show what another one of the same panel shows.
void copy_content(Ui& ui, const PanelWindow& from, int to) {
    const WindowQueries& queries = ui.workspace.views(from.number).queries;
    const PanelStates& old = states_of(ui, from.number);
    PanelStates& own = states_of(ui, to);
    PanelEvents events{.window = to};
    const std::string_view panel = from.panel->id;
    if (panel == "ledger") {
        events.ledger_query = queries.ledger;
        own.ledger = old.ledger;
    } else if (panel == "flame") {
        own.flame = old.flame;
        events.flame_query = queries.flame;
    } else if (panel == "blocks") {
        own.blocks = old.blocks;
        own.blocks.is_playing = false;
        events.blocks_query = queries.blocks;
    } else if (panel == "inspector") {
        // Two that follow the selection would show the same, so the new one is pinned.
        const Selection& shown = inspected(queries.inspector, ui.workspace.selection());
        events.inspector_query.emplace();
        if (selects_something(shown)) events.inspector_query->pinned = shown;
    }
    ui.workspace.apply(events);
}

}  // namespace

bool is_open(const Ui& ui, const PanelWindow& window) {
    const auto found = ui.settings.shown_panels.find(id_of(window));
    return found == ui.settings.shown_panels.end() ? window.number == 1 : found->second;
}

void set_open(Ui& ui, const PanelWindow& window, bool open) {
    if (open || window.number == 1) {
        ui.settings.shown_panels[id_of(window)] = open;
    } else {
        ui.settings.shown_panels.erase(id_of(window));
    }
}

void show_panel(Ui& ui, std::string_view id) {
    const auto window = find_window(id);
    if (!window) return;
    set_open(ui, *window, true);
    ui.focus_queue.emplace_back(id);
}

PanelStates& states_of(Ui& ui, int number) {
    return number == 1 ? ui.panels : ui.further_panels.at(static_cast<size_t>(number) - 2);
}

const PanelStates& states_of(const Ui& ui, int number) {
    return number == 1 ? ui.panels : ui.further_panels.at(static_cast<size_t>(number) - 2);
}

PanelWindow meant_window(const Ui& ui, std::string_view panel_id) {
    PanelWindow meant = find_window(panel_id).value_or(PanelWindow{&kPanels.front()});
    const auto focused = find_window(ui.focused_panel);
    if (focused && focused->panel == meant.panel && is_open(ui, *focused)) return *focused;
    for (const PanelWindow& window : all_windows()) {
        if (window.panel == meant.panel && is_open(ui, window)) return window;
    }
    return meant;
}

bool can_open_another(const Ui& ui, const PanelRow& row) {
    return row.can_repeat && free_number(ui, row).has_value();
}

void open_another(Ui& ui, const PanelWindow& like) {
    const auto number = free_number(ui, *like.panel);
    if (!number) return;
    const PanelWindow window{like.panel, *number};
    if (*number != like.number) copy_content(ui, like, *number);
    if (*number > 1) ui.new_windows[id_of(window)] = window_name(like);
    show_panel(ui, id_of(window));
    ui.focus_queue.push_back(id_of(window));  // once more, when it has a tab to scroll to
}

void show_open_windows(Ui& ui) {
    std::array<OpenPanels, kMostWindows> open;
    for (const PanelWindow& window : all_windows()) {
        OpenPanels& panels = open.at(static_cast<size_t>(window.number) - 1);
        const std::string_view panel = window.panel->id;
        if (panel == "ledger") panels.ledger = is_open(ui, window);
        if (panel == "flame") panels.flame = is_open(ui, window);
        if (panel == "blocks") panels.blocks = is_open(ui, window);
        if (panel == "inspector") panels.inspector = is_open(ui, window);
    }
    ui.workspace.show_windows(open);
}

void remember_windows(const Ui& ui, Settings& settings) {
    settings.further_windows.clear();
    for (const PanelWindow& window : all_windows()) {
        if (window.number == 1 || !is_open(ui, window)) continue;
        const WindowQueries& queries = ui.workspace.views(window.number).queries;
        const std::string_view panel = window.panel->id;
        QueryFields& fields = settings.further_windows[id_of(window)];
        if (panel == "ledger") fields = to_fields(queries.ledger);
        if (panel == "flame") fields = to_fields(queries.flame);
        if (panel == "blocks") fields = to_fields(queries.blocks);
    }
}

void restore_windows(Ui& ui) {
    for (const auto& [id, fields] : ui.settings.further_windows) {
        const auto window = find_window(id);
        if (!window || window->number == 1) continue;
        const std::string_view panel = window->panel->id;
        PanelStates& states = states_of(ui, window->number);
        PanelEvents events{.window = window->number};
        if (panel == "ledger") {
            read_fields(fields, events.ledger_query.emplace());
            states.ledger.filter = events.ledger_query->filter;
        } else if (panel == "flame") {
            read_fields(fields, events.flame_query.emplace());
            states.flame.search = events.flame_query->search;
        } else if (panel == "blocks") {
            read_fields(fields, events.blocks_query.emplace());
        }
        ui.workspace.apply(events);
    }
}

}  // namespace app
