#include "app/widgets/icons.h"
#include "app/window/ui.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace app {
namespace {

using profiler::SearchKind;

const char* icon_of(SearchKind kind) {
    switch (kind) {
        case SearchKind::kTensor:
        case SearchKind::kSite:
            return ICON_MEMORY;
        case SearchKind::kOp:
            return ICON_BOLT;
        case SearchKind::kKernel:
            return ICON_CHART_GANTT;
        case SearchKind::kModule:
        case SearchKind::kLayer:
            return ICON_LAYERS;
    }
    return "";
}

constexpr const char* kCommands = "Commands";

PaletteGroup commands(Ui& ui, const std::string& query) {
    std::vector<PaletteEntry> entries;
    for (const Action& action : ui.actions) {
        if (!is_enabled(ui, action)) continue;
        PaletteEntry entry{action.title, action.icon, shortcut_text(action),
                           [&ui, &action] { action.run(ui); }};
        entry.also = action.also;
        entries.push_back(std::move(entry));
    }
    return matching(kCommands, std::move(entries), query);
}

PaletteGroup open_traces(Ui& ui, const std::string& query) {
    std::vector<PaletteEntry> entries;
    const auto& documents = ui.workspace.documents();
    for (size_t i = 0; i < documents.size(); ++i) {
        const DocumentPtr& document = documents[i];
        const auto show = [&ui, document] {
            if (document != ui.workspace.selection().a)
                ui.workspace.apply({.traces = {.set_b = document}});
            show_panel(ui, "compare");
        };
        PaletteEntry entry{ui.workspace.labels()[i].name, ICON_LAYERS, "", show};
        entry.detail = document->file.filename().string();
        entry.kind = "trace";
        entry.value = document->peak_text();
        entries.push_back(std::move(entry));
    }
    return matching("Open traces", std::move(entries), query);
}

PaletteGroup recent_files(Ui& ui, const std::string& query) {
    std::vector<PaletteEntry> entries;
    for (const auto& file : ui.settings.recent_files) {
        const std::filesystem::path name = file.parent_path().filename() / file.filename();
        PaletteEntry entry{"Open " + name.string(), ICON_FILE, "",
                           [&ui, file] { ui.workspace.open({file}); }};
        entry.kind = "file";
        entries.push_back(std::move(entry));
    }
    return matching("Recent files", std::move(entries), query);
}

void choose(Ui& ui, std::shared_ptr<const profiler::SearchIndex> index, std::size_t name) {
    const Selection& selection = ui.workspace.selection();
    const std::size_t at = index->names[name].shown_place;
    ui.found = {std::move(index), name, at, {selection.a, selection.b}};
    step_found(ui, 0);
}

PaletteGroup found_names(Ui& ui, const profiler::SearchView& view,
                         const profiler::SearchGroup& group) {
    PaletteGroup shown{.title = std::string(heading_of(group.kind)),
                       .best_score = group.best_score};
    for (const profiler::SearchHit& hit : group.hits) {
        PaletteEntry entry{hit.label, icon_of(group.kind), "",
                           [&ui, index = view.index, name = hit.name] { choose(ui, index, name); }};
        entry.detail = hit.count;
        entry.value = hit.amount;
        entry.kind = label_of(group.kind);
        entry.whole = view.index->names[hit.name].name;
        shown.entries.push_back(std::move(entry));
    }
    if (group.left_out > 0) {
        shown.note = fmt::format("{} more; type more letters to see them",
                                 profiler::format_count(group.left_out));
    }
    return shown;
}

/// A tensor that is saved for backward stands in the ledger; every tensor is a block.
const char* panel_of_tensor(const Ui& ui, const Document& document,
                            profiler::Id<profiler::Storage> storage) {
    const auto& rows = document.index->ledger().rows;
    const bool is_saved = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto& row) { return row.storage == storage; });
    const PanelWindow ledger = meant_window(ui, "ledger");
    const bool is_listed = ui.workspace.views(ledger.number).queries.ledger.filter.empty();
    return is_saved && is_listed ? "ledger" : "blocks";
}

void show_tensor(Ui& ui, const DocumentPtr& document, int32_t row) {
    const profiler::Id<profiler::Storage> storage(static_cast<size_t>(row));
    const auto allocation = document->trace->storages.get<&profiler::Storage::allocation>(storage);
    ui.workspace.apply({.selection = {.tensor = PickedTensor{document, storage, allocation}}});
    const PanelWindow window = meant_window(ui, panel_of_tensor(ui, *document, storage));
    states_of(ui, meant_window(ui, "ledger").number).ledger.scroll_to_tensor = true;
    show_panel(ui, id_of(window));
}

void show_call(Ui& ui, bool in_b, profiler::CallKind kind, int32_t row) {
    ui.workspace.find_call({in_b, {kind, row}});
    show_panel(ui, "kernels");
}

void show_layer(Ui& ui, int64_t layer) {
    ui.workspace.apply({.selection = {.layers = profiler::LayerRange{layer, layer}}});
    show_panel(ui, "layer");
}

/// The tensors that a module saves; of a module that saves none its bytes in the flame graph.
void show_module(Ui& ui, const Document& document, int32_t row) {
    const profiler::Trace& trace = *document.trace;
    const profiler::Id<profiler::ModulePath> id(static_cast<size_t>(row));
    const std::string path(trace.text(trace.module_paths.get<&profiler::ModulePath::path>(id)));
    const int64_t layer = trace.module_paths.get<&profiler::ModulePath::layer>(id);
    const auto& rows = document.index->ledger().rows;
    const bool saves = std::any_of(rows.begin(), rows.end(), [&](const auto& saved) {
        return saved.module_path.find(path) != std::string_view::npos;
    });
    const PanelWindow window = meant_window(ui, saves ? "ledger" : "flame");
    const WindowQueries& queries = ui.workspace.views(window.number).queries;
    PanelEvents events;
    if (layer >= 0) events.selection.layers = profiler::LayerRange{layer, layer};
    if (saves) {
        events.window.ledger = queries.ledger;
        events.window.ledger->filter = path;
        states_of(ui, window.number).ledger.filter = path;
    } else {
        events.window.flame = queries.flame;
        events.window.flame->search = path;
    }
    ui.workspace.apply(events, window.number);
    show_panel(ui, id_of(window));
}

void show_place(Ui& ui, SearchKind kind, const profiler::SearchPlace& place) {
    if (place.row < 0) return;
    const DocumentPtr document = ui.found.documents[place.source].lock();
    const Selection& selection = ui.workspace.selection();
    const bool in_b = document == selection.b;
    if (!document || (!in_b && document != selection.a)) {
        return ui.workspace.notify(profiler::Severity::kInfo,
                                   "The trace that was searched is neither A nor B any more. "
                                   "Search again.");
    }
    switch (kind) {
        case SearchKind::kTensor:
        case SearchKind::kSite:
            return show_tensor(ui, document, place.row);
        case SearchKind::kOp:
            return show_call(ui, in_b, profiler::CallKind::kOp, place.row);
        case SearchKind::kKernel:
            return show_call(ui, in_b, profiler::CallKind::kKernel, place.row);
        case SearchKind::kModule:
            return show_module(ui, *document, place.row);
        case SearchKind::kLayer:
            return show_layer(ui, place.row);
    }
}

const profiler::SearchName* found_name(const Found& found) {
    if (!found.index || found.name >= found.index->names.size()) return nullptr;
    return &found.index->names[found.name];
}

}  // namespace

PaletteContent palette_content(Ui& ui, const std::string& query) {
    PaletteContent content;
    const auto add = [&](PaletteGroup group) {
        if (!group.entries.empty()) content.groups.push_back(std::move(group));
    };
    add(commands(ui, query));
    add(open_traces(ui, query));
    add(recent_files(ui, query));
    const bool is_searched = !query.empty() && ui.workspace.selection().a;
    const auto& slot = ui.workspace.slots().search;
    const profiler::SearchView* view = slot.view();
    content.is_complete = !is_searched || !slot.error().empty() || (view && view->query == query);
    if (!is_searched) return content;
    if (view) {
        for (const auto& group : view->groups) add(found_names(ui, *view, group));
    }
    // Commands that match by a word come first: else the layers of a model hide "Layers".
    const bool has_command = !content.groups.empty() && content.groups.front().title == kCommands &&
                             content.groups.front().best_score > PaletteGroup::kLettersOnly;
    std::stable_sort(content.groups.begin() + (has_command ? 1 : 0), content.groups.end(),
                     [](const PaletteGroup& one, const PaletteGroup& other) {
                         return one.best_score > other.best_score;
                     });
    return content;
}

void step_found(Ui& ui, int direction) {
    const profiler::SearchName* name = found_name(ui.found);
    if (!name) return;
    const std::size_t count = name->place_count();
    if (count == 0) return;
    ui.found.at = (ui.found.at + count + static_cast<std::size_t>(direction + 1) - 1) % count;
    show_place(ui, name->kind, ui.found.index->place(*name, ui.found.at));
}

std::string describe_found(const Ui& ui) {
    const profiler::SearchName* name = found_name(ui.found);
    if (!name) return "";
    const auto place = ui.found.index->place(*name, ui.found.at);
    const bool has_b = name->counts[1] > 0;
    const auto first = place.source == 0 ? 0 : name->counts[0];
    return fmt::format("{}, {} of {}{}", name->name,
                       profiler::format_count(static_cast<int64_t>(ui.found.at) - first + 1),
                       profiler::format_count(name->counts[place.source]),
                       !has_b && place.source == 0 ? ""
                       : place.source == 0         ? " in A"
                                                   : " in B");
}

}  // namespace app
