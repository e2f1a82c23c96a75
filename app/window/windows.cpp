#include "app/window/windows.h"

#include "app/user/fields.h"
#include "app/window/layout.h"
#include "app/window/ui.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace app {
namespace {

constexpr Names<3> kGroupings{"tensors", "layers", "kinds"};
constexpr Names<3> kTraces{"a", "b", "difference"};
constexpr Names<2> kOrders{"stack", "addresses"};
constexpr Names<4> kColorings{"category", "layer", "op", "size"};

/// Without the order of rows, which ImGui saves with the columns of a table.
void visit_fields(LedgerQuery& query, const auto& visit) {
    visit("filter", query.filter);
    visit("grouping", query.grouping, kGroupings);
    visit("beside_b", query.compare, kNoYes);
    visit("changes", query.only_differences, kNoYes);
}

void visit_fields(FlameQuery& query, const auto& visit) {
    visit("search", query.search);
    visit("show", query.mode, kTraces);
    visit("combine_layers", query.combine_layers, kNoYes);
    visit("by_stack", query.by_stack, kNoYes);
}

void visit_fields(BlocksQuery& query, const auto& visit) {
    visit("show", query.show, kTraces);
    visit("order", query.order, kOrders);
    visit("coloring", query.coloring, kColorings);
}

/// The lowest number that no open window of the panel has; nullopt: all are open.
std::optional<int> free_number(const Ui& ui, const PanelRow& row) {
    for (int number = 1; number <= (row.can_repeat ? kMostWindows : 1); ++number) {
        if (!is_open(ui, {&row, number})) return number;
    }
    return std::nullopt;
}

/// Whether the panel of the view is open. A view that is not shown is made, too, so that it appears
/// at once.
bool is_panel_open(const Ui& ui, const PanelWindow& window) {
    if (window.number > 1) return is_open(ui, window);
    const auto views = views_beside(*window.panel);
    return std::any_of(views.begin(), views.end(),
                       [&](const PanelRow* view) { return is_open(ui, {view}); });
}

/// Makes the window show what another one of the same panel shows.
void copy_content(Ui& ui, const PanelWindow& from, int to) {
    const WindowQueries& queries = ui.workspace.views(from.number).queries;
    const PanelStates& old = states_of(ui, from.number);
    PanelStates& own = states_of(ui, to);
    PanelEvents events;
    const std::string_view panel = from.panel->id;
    if (panel == "ledger") {
        events.window.ledger = queries.ledger;
        own.ledger = old.ledger;
    } else if (panel == "flame") {
        own.flame = old.flame;
        events.window.flame = queries.flame;
    } else if (panel == "blocks") {
        own.blocks = old.blocks;
        own.blocks.is_playing = false;
        events.window.blocks = queries.blocks;
    } else if (panel == "inspector") {
        // Two that follow the selection would show the same, so the new one is pinned.
        const Selection& shown = inspected(queries.inspector, ui.workspace.selection());
        events.window.inspector.emplace();
        if (selects_something(shown)) events.window.inspector->pinned = shown;
    }
    ui.workspace.apply(events, to);
}

}  // namespace

bool is_open(const Ui& ui, const PanelWindow& window) {
    const auto found = ui.settings.shown_panels.find(id_of(window));
    if (found != ui.settings.shown_panels.end()) return found->second;
    return window.number == 1 && is_open_at_first(*window.panel, layout_of(ui));
}

void set_open(Ui& ui, const PanelWindow& window, bool open) {
    if (open && window.number == 1) {  // one view of a panel is open
        for (const PanelRow* other : views_beside(*window.panel)) {
            ui.settings.shown_panels[id_of({other})] = false;
        }
    }
    if (open || window.number == 1) {
        ui.settings.shown_panels[id_of(window)] = open;
    } else {
        ui.settings.shown_panels.erase(id_of(window));
    }
}

Layout layout_of(const Ui& ui) { return static_cast<Layout>(ui.settings.layout); }

void switch_layout(Ui& ui, Layout to) {
    Settings& settings = ui.settings;
    const Layout from = layout_of(ui);
    if (from == to) return;
    const auto name_of = [](Layout layout) { return kLayoutNames[static_cast<size_t>(layout)]; };
    settings.kept_layouts[name_of(from)] = {save_layout(), settings.shown_panels};
    settings.layout = static_cast<int>(to);
    ui.layout_history = {};
    if (const auto kept = settings.kept_layouts.extract(name_of(to))) {
        ui.layout_to_restore = LayoutSnapshot{kept.mapped().places, kept.mapped().shown_panels};
        settings.shown_panels = kept.mapped().shown_panels;
        ui.focus_queue = front_panels(ui);
    } else {
        ui.reset_layout = true;
    }
}

std::vector<std::string> front_panels(const Ui& ui) {
    std::map<DockPlace, std::string, std::greater<>> front;
    for (const PanelRow& row : kPanels) {
        const DockPlace place = row.places[static_cast<size_t>(layout_of(ui))].place;
        if (is_open(ui, {&row})) front.emplace(place, row.id);
    }
    std::vector<std::string> ids{""};
    for (const auto& [place, id] : front) ids.push_back(id);
    return ids;
}

void show_panel(Ui& ui, std::string_view id) {
    const auto window = find_window(id);
    if (!window) return;
    for (const PanelRow* other : views_beside(*window->panel)) {
        if (window->number != 1 || other == window->panel || !is_open(ui, {other})) continue;
        ui.new_windows[id_of(*window)] = window_name({other});  // it takes its place
    }
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
        if (panel == "ledger") panels.ledger = is_panel_open(ui, window);
        if (panel == "flame") panels.flame = is_panel_open(ui, window);
        if (panel == "blocks") panels.blocks = is_panel_open(ui, window);
        if (panel == "inspector") panels.inspector = is_panel_open(ui, window);
    }
    ui.workspace.show_windows(open);
}

void remember_windows(const Ui& ui, Settings& settings) {
    settings.further_windows.clear();
    for (const PanelWindow& window : all_windows()) {
        if (window.number == 1 || !is_open(ui, window)) continue;
        WindowQueries queries = ui.workspace.views(window.number).queries;
        const std::string_view panel = window.panel->id;
        const FieldWriter write(settings.further_windows[id_of(window)]);
        if (panel == "ledger") visit_fields(queries.ledger, write);
        if (panel == "flame") visit_fields(queries.flame, write);
        if (panel == "blocks") visit_fields(queries.blocks, write);
    }
}

void restore_windows(Ui& ui) {
    for (const auto& [id, fields] : ui.settings.further_windows) {
        const auto window = find_window(id);
        if (!window || window->number == 1) continue;
        const std::string_view panel = window->panel->id;
        PanelStates& states = states_of(ui, window->number);
        PanelEvents events;
        const FieldReader read(fields);
        if (panel == "ledger") {
            visit_fields(events.window.ledger.emplace(), read);
            states.ledger.filter = events.window.ledger->filter;
        } else if (panel == "flame") {
            visit_fields(events.window.flame.emplace(), read);
            states.flame.search = events.window.flame->search;
        } else if (panel == "blocks") {
            visit_fields(events.window.blocks.emplace(), read);
        }
        ui.workspace.apply(events, window->number);
    }
}

}  // namespace app
