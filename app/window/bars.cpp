#include "app/window/bars.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/window/fonts.h"
#include "app/window/icons.h"
#include "app/window/layout.h"
#include "app/window/theme.h"
#include "app/window/ui.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace app {
namespace {

constexpr std::array<std::pair<Menu, const char*>, 4> kMenus{
    {{Menu::kFile, "File"}, {Menu::kEdit, "Edit"}, {Menu::kView, "View"}, {Menu::kHelp, "Help"}}};

void draw_recent_files(Ui& ui) {
    if (!ImGui::BeginMenu("Open recent", !ui.settings.recent_files.empty())) return;
    for (const auto& file : ui.settings.recent_files) {
        if (ImGui::MenuItem(file.c_str())) ui.workspace.open({file});
    }
    ImGui::EndMenu();
}

void draw_menu(Ui& ui, Menu menu) {
    bool first = true;
    for (const Action& action : ui.actions) {
        if (action.menu != menu) continue;
        if (action.separated && !first) ImGui::Separator();
        const bool checked = action.checked && action.checked(ui);
        if (ImGui::MenuItem(action.title.c_str(), shortcut_text(action).c_str(), checked,
                            is_enabled(ui, action))) {
            action.run(ui);
        }
        if (menu == Menu::kFile && first) draw_recent_files(ui);
        first = false;
    }
}

void draw_side(const char* letter, ImU32 color, const DocumentPtr& document) {
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);
    letter_badge(letter, color);
    ImGui::SameLine(0, px(7));
    ImGui::AlignTextToFramePadding();
    if (!document) return dim_text("none");
    bold_text(document->recipe);
    ImGui::SameLine(0, px(8));
    dim_text(profiler::format_bytes(document->peak.allocated_bytes));
}

std::string change_text(const Document& a, const Document& b) {
    const auto from = static_cast<double>(a.peak.allocated_bytes);
    const auto to = static_cast<double>(b.peak.allocated_bytes);
    return from > 0 ? profiler::format_percent((to - from) / from, true) : "";
}

void draw_a_and_b(Ui& ui) {
    const Selection& selection = ui.workspace.selection();
    if (!selection.a) return;
    ImGui::SameLine(0, px(18));
    draw_side("A", recipe_color(0), selection.a);
    ImGui::SameLine(0, px(14));
    {
        const ScopedDisabled alone(!selection.b);
        if (ImGui::Button(ICON_SWAP "##swap")) ui.workspace.swap_a_and_b();
        ImGui::SetItemTooltip("Swap A and B (X)");
    }
    ImGui::SameLine(0, px(14));
    draw_side("B", recipe_color(1), selection.b);
    if (!selection.a || !selection.b) return;
    ImGui::SameLine(0, px(22));
    const bool less = selection.b->peak.allocated_bytes <= selection.a->peak.allocated_bytes;
    labelled_value("Peak", change_text(*selection.a, *selection.b),
                   less ? palette().good : palette().bad);
    ImGui::SameLine(0, px(22));
    const bool keeps_less = selection.b->ledger.total_bytes <= selection.a->ledger.total_bytes;
    const auto kept_a = static_cast<double>(selection.a->ledger.total_bytes);
    const auto kept_b = static_cast<double>(selection.b->ledger.total_bytes);
    if (kept_a > 0) {
        labelled_value("Kept", profiler::format_percent((kept_b - kept_a) / kept_a, true),
                       keeps_less ? palette().good : palette().bad);
    }
}

void draw_right_end(Ui& ui) {
    const float search = em(15), theme = em(2.2F);
    const float left = ImGui::GetWindowWidth() - search - theme - px(26);
    if (left < ImGui::GetCursorPosX()) return;
    ImGui::SameLine(left);
    {
        const ScopedStyle align(ImGuiStyleVar_ButtonTextAlign, {0, 0.5F});
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        if (ImGui::Button(ICON_MAGNIFIER "  Search commands", {search, 0})) {
            ui.palette.request_open = true;
        }
        const ImVec2 end = ImGui::GetItemRectMax();
        const char* keys = "Ctrl+K";
        ImGui::GetWindowDrawList()->AddText(
            {end.x - text_width(keys) - px(8), ImGui::GetItemRectMin().y + px(4)}, palette().dim,
            keys);
    }
    ImGui::SameLine();
    if (ImGui::Button(ui.settings.dark ? ICON_SUN "###theme" : ICON_MOON "###theme", {theme, 0})) {
        ui.settings.dark = !ui.settings.dark;
    }
    ImGui::SetItemTooltip(ui.settings.dark ? "Light theme" : "Dark theme");
}

struct KeyLine {
    const char* keys;
    const char* what;
};
constexpr std::array kMouseKeys{
    KeyLine{"Wheel", "zoom in time"},
    KeyLine{"Drag", "move in time"},
    KeyLine{"Right drag", "zoom to a range"},
    KeyLine{"Shift + drag", "select a range; Z zooms to it, Esc clears it"},
    KeyLine{"Double click", "show the whole capture"},
    KeyLine{"Click a class", "pick it out in every panel"},
    KeyLine{"Click a recipe", "show it as B"},
};

}  // namespace

void draw_menu_bar(Ui& ui) {
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(8), px(6)});
    const ScopedStyle border(ImGuiStyleVar_WindowBorderSize, 0.0F);
    if (!ImGui::BeginMainMenuBar()) return;
    {
        const ScopedFont bold(fonts().bold);
        colored_text(palette().accent, ICON_MEMORY);
        ImGui::SameLine(0, px(6));
        text("temposcope");
    }
    ImGui::SameLine(0, px(14));
    for (const auto& [menu, title] : kMenus) {
        if (!ImGui::BeginMenu(title)) continue;
        draw_menu(ui, menu);
        ImGui::EndMenu();
    }
    if (const DocumentPtr& a = ui.workspace.selection().a) {
        const std::string about =
            fmt::format("{}  ·  {} allocations", a->workload,
                        profiler::format_count(static_cast<int64_t>(a->trace->allocations.size())));
        const float left = ImGui::GetWindowWidth() - text_width(about) - px(14);
        if (left > ImGui::GetCursorPosX()) {
            ImGui::SameLine(left);
            dim_text(about);
        }
    }
    ImGui::EndMainMenuBar();
}

void draw_tool_bar(Ui& ui) {
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {px(10), px(6)});
    const ScopedStyle border(ImGuiStyleVar_WindowBorderSize, 0.0F);
    const ScopedStyle rounding(ImGuiStyleVar_WindowRounding, 0.0F);
    const float height = ImGui::GetFrameHeight() + px(12);
    if (begin_bar("##toolbar", ImGuiDir_Up, height)) {
        if (ImGui::Button(ICON_FOLDER_OPEN "  Open")) ui.open_dialog.request_open = true;
        ImGui::SetItemTooltip("Open traces (Ctrl+O)");
        ImGui::SameLine();
        if (ImGui::Button(ICON_RECORD "  Capture")) show_panel(ui, "capture");
        ImGui::SetItemTooltip("Run a training step and record it");
        draw_a_and_b(ui);
        draw_right_end(ui);
    }
    ImGui::End();
}

void draw_status_bar(const Ui& ui) {
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {px(10), px(3)});
    const ScopedStyle border(ImGuiStyleVar_WindowBorderSize, 0.0F);
    const ScopedStyle rounding(ImGuiStyleVar_WindowRounding, 0.0F);
    const ScopedColor ground(ImGuiCol_WindowBg, palette().background);
    const ScopedFont small(fonts().text, kSmallSize);
    if (begin_bar("##status", ImGuiDir_Down, ImGui::GetTextLineHeight() + px(8))) {
        if (const auto& tensor = ui.workspace.selection().tensor) {
            text(fmt::format("{}  {}  ·  {}", tensor->name,
                             profiler::format_exact_bytes(tensor->size_bytes), tensor->scope));
        } else {
            dim_text(
                "Wheel zooms time  ·  drag moves  ·  right drag zooms to a range  ·  Shift + drag "
                "selects one  ·  double click shows all  ·  F1 lists the keys");
        }
    }
    ImGui::End();
}

void draw_keys_window(Ui& ui) {
    if (!ui.show_keys) return;
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetWorkCenter(), ImGuiCond_Appearing,
                            {0.5F, 0.5F});
    const ScopedWindow window("Keys and mouse", &ui.show_keys,
                              ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoDocking |
                                  ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoCollapse);
    if (!window || !ImGui::BeginTable("##keys", 2, ImGuiTableFlags_SizingFixedFit)) return;
    const auto row = [](const std::string& keys, const std::string& what) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        bold_text(keys);
        ImGui::TableNextColumn();
        text(what);
    };
    for (const KeyLine& line : kMouseKeys) row(line.keys, line.what);
    for (const Action& action : ui.actions) {
        if (action.shortcut) row(shortcut_text(action), action.title);
    }
    ImGui::EndTable();
}

}  // namespace app
