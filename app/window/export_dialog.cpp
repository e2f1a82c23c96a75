#include "app/window/export_dialog.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/ui.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
using Kind = ExportTarget::Kind;

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

bool has(const std::vector<std::string>& extensions, const std::string& extension) {
    return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

/// The format that the typed name asks for; the first one if it asks for none.
std::string chosen_extension(const std::string& name, const std::vector<std::string>& extensions) {
    const std::string typed = lower(fs::path(name).extension().string());
    return has(extensions, typed) ? typed : extensions.front();
}

/// `name` with another format. An extension that is none of the formats is part of the name.
std::string with_extension(const std::string& name, const std::string& extension,
                           const std::vector<std::string>& extensions) {
    fs::path path(name);
    if (has(extensions, lower(path.extension().string()))) path.replace_extension();
    return path.string() + extension;
}

void draw_label(const char* label) {
    ImGui::AlignTextToFramePadding();
    dim_text(label);
    ImGui::SameLine(em(5));
}

void draw_target_choice(ExportState& state, FileDialogState& dialog) {
    draw_label("Export");
    ImGui::SetNextItemWidth(-1);
    const std::string& shown = state.targets[state.chosen].title;
    if (!ImGui::BeginCombo("##what", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
    for (size_t i = 0; i < state.targets.size(); ++i) {
        const ScopedId id(static_cast<int>(i));
        if (!ImGui::Selectable(state.targets[i].title.c_str(), i == state.chosen)) continue;
        state.chosen = i;
        const ExportTarget& target = state.targets[i];
        dialog.name = target.file_name + extensions_of(target.kind).front();
        dialog.listed.clear();  // other files are listed now
    }
    ImGui::EndCombo();
}

void draw_format_choice(ExportState& state, FileDialogState& dialog) {
    const Kind kind = state.targets[state.chosen].kind;
    const std::vector<std::string> extensions = extensions_of(kind);
    const std::string chosen = chosen_extension(dialog.name, extensions);
    draw_label("Format");
    for (const std::string& extension : extensions) {
        std::string label = extension.substr(1);
        for (char& c : label) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        if (radio_button(label.c_str(), extension == chosen)) {
            dialog.name = with_extension(dialog.name, extension, extensions);
        }
        ImGui::SameLine(0, px(14));
    }
    const bool is_chart = kind == Kind::kComparison || kind == Kind::kTimeline;
    if (is_chart && chosen == ".png") {
        ImGui::SameLine(0, px(28));
        for (const double scale : {1.0, 2.0}) {
            const char* label = scale == 1 ? "1x" : "2x";
            if (radio_button(label, state.png_scale == scale)) state.png_scale = scale;
            ImGui::SetItemTooltip("Pixels per point");
            ImGui::SameLine(0, px(14));
        }
    }
    ImGui::NewLine();
}

void draw_note(const ExportTarget& target) {
    switch (target.kind) {
        case Kind::kComparison:
            return note_text("The recipes as they are compared now, in the theme of the window.");
        case Kind::kTimeline:
            return note_text("The visible part of the time axis, in the theme of the window.");
        case Kind::kTable:
            return note_text(
                "The rows that the panel shows, with raw bytes and nanoseconds under columns that "
                "name their unit.");
        case Kind::kPanel:
        case Kind::kWindow:
            return note_text("The pixels on the screen, at the present scale.");
    }
}

void run_export(Ui& ui, const ExportTarget& target, const fs::path& file) {
    const ChartStyle style{.dark = ui.settings.dark, .png_scale = ui.exporting.png_scale};
    switch (target.kind) {
        case Kind::kComparison:
            return ui.workspace.export_comparison(file, style);
        case Kind::kTimeline:
            return ui.workspace.export_timeline(file, style);
        case Kind::kTable:
            return ui.workspace.exports().table(target.table.make, file);
        case Kind::kPanel:
        case Kind::kWindow:
            ui.picture = file;
            ui.picture_panel = target.window_id;
            return;
    }
}

void copy(Ui& ui, const PanelTable& table, std::string (*to_text)(const profiler::DataTable&)) {
    ui.workspace.exports().copy(table.make, to_text, table.title);
}

void draw_table_items(Ui& ui, const PanelTable& table) {
    if (ImGui::MenuItem(ICON_COPY "  Copy as text")) copy(ui, table, profiler::to_tsv);
    if (ImGui::MenuItem(ICON_COPY "  Copy as CSV")) copy(ui, table, profiler::to_csv);
    if (ImGui::MenuItem(ICON_TABLE "  Save table ...")) {
        ask_for_export(ui, Kind::kTable, table.file_name);
    }
}

void draw_new_window_item(Ui& ui, const PanelWindow& window) {
    ImGui::Separator();
    const std::string label = fmt::format(ICON_PLUS "  New {} window", window.panel->title);
    const bool can_open = can_open_another(ui, *window.panel);
    if (ImGui::MenuItem(label.c_str(), nullptr, false, can_open)) open_another(ui, window);
    if (can_open || !ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
    ImGui::SetTooltip("A panel has at most %d windows: close one of them first.", kMostWindows);
}

}  // namespace

std::vector<std::string> extensions_of(ExportTarget::Kind kind) {
    switch (kind) {
        case Kind::kComparison:
        case Kind::kTimeline:
            return {".svg", ".pdf", ".png", ".html"};
        case Kind::kTable:
            return {".csv", ".json", ".tsv"};
        case Kind::kPanel:
        case Kind::kWindow:
            return {".png"};
    }
    return {};
}

std::vector<ExportTarget> export_targets(const Ui& ui) {
    std::vector<ExportTarget> targets;
    const Slots& slots = ui.workspace.slots();
    if (slots.compare.view()) {
        targets.push_back({.kind = Kind::kComparison,
                           .title = "Chart: the whole comparison",
                           .file_name = "comparison"});
    }
    if (slots.timeline.view()) {
        targets.push_back(
            {.kind = Kind::kTimeline, .title = "Chart: memory timeline", .file_name = "timeline"});
    }
    for (const PanelWindow& window : all_windows()) {
        const PanelStates& states = states_of(ui, window.number);
        for (PanelTable& table : tables_of(window, ui.workspace, states)) {
            targets.push_back({.kind = Kind::kTable,
                               .title = "Table: " + table.title,
                               .file_name = table.file_name,
                               .table = std::move(table),
                               .window_id = id_of(window)});
        }
    }
    for (const PanelWindow& window : all_windows()) {
        const std::string id = id_of(window);
        if (!ui.panel_rects.contains(id)) continue;
        targets.push_back({.kind = Kind::kPanel,
                           .title = "Picture: " + title_of(window),
                           .file_name = id,
                           .window_id = id});
    }
    targets.push_back(
        {.kind = Kind::kWindow, .title = "Picture: the whole window", .file_name = "temposcope"});
    return targets;
}

void ask_for_export(Ui& ui, ExportTarget::Kind kind, const std::string& name) {
    ExportState& state = ui.exporting;
    state.targets = export_targets(ui);
    const auto found =
        std::find_if(state.targets.begin(), state.targets.end(), [&](const ExportTarget& target) {
            return target.kind == kind &&
                   (name.empty() || target.window_id == name || target.file_name == name);
        });
    state.chosen = found == state.targets.end()
                       ? state.targets.size() - 1
                       : static_cast<size_t>(found - state.targets.begin());
    ui.save_dialog.request_open = true;
}

void draw_export_dialog(Ui& ui) {
    ExportState& state = ui.exporting;
    if (state.chosen >= state.targets.size()) return;
    const ExportTarget& target = state.targets[state.chosen];
    FileDialogOptions options{.title = "Export",
                              .button = "Save",
                              .extensions = extensions_of(target.kind),
                              .for_saving = true};
    options.proposed_name = target.file_name + options.extensions.front();
    options.draw_choices = [&state](FileDialogState& dialog) {
        draw_target_choice(state, dialog);
        draw_format_choice(state, dialog);
        draw_note(state.targets[state.chosen]);
        ImGui::Dummy({0, px(2)});
    };
    const auto file = draw_file_dialog(options, ui.save_dialog);
    if (file) run_export(ui, state.targets[state.chosen], file->front());
}

void open_panel_menu(Ui& ui, const std::string& window_id) {
    ui.menu_panel = window_id;
    ui.open_panel_menu = true;
}

void draw_panel_menu(Ui& ui) {
    if (std::exchange(ui.open_panel_menu, false)) ImGui::OpenPopup("##panel_menu");
    if (!ImGui::BeginPopup("##panel_menu")) return;
    const PanelWindow window = find_window(ui.menu_panel).value_or(PanelWindow{&kPanels.front()});
    const std::vector<PanelTable> tables =
        tables_of(window, ui.workspace, states_of(ui, window.number));
    for (const PanelTable& table : tables) {
        if (tables.size() == 1) {
            draw_table_items(ui, table);
        } else if (ImGui::BeginMenu(table.title.c_str())) {
            draw_table_items(ui, table);
            ImGui::EndMenu();
        }
    }
    if (!tables.empty()) ImGui::Separator();
    const bool is_compare = ui.menu_panel == "compare" && ui.workspace.slots().compare.view();
    const bool is_timeline = ui.menu_panel == "timeline" && ui.workspace.slots().timeline.view();
    if ((is_compare || is_timeline) && ImGui::MenuItem(ICON_FILE_EXPORT "  Export chart ...")) {
        ask_for_export(ui, is_compare ? Kind::kComparison : Kind::kTimeline);
    }
    if (ImGui::MenuItem(ICON_IMAGE "  Save picture ...")) {
        ask_for_export(ui, Kind::kPanel, ui.menu_panel);
    }
    if (window.panel->can_repeat) draw_new_window_item(ui, window);
    ImGui::EndPopup();
}

}  // namespace app
