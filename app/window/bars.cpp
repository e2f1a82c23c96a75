#include "app/window/bars.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/window/layout.h"
#include "app/window/ui.h"
#include "app/window/windows.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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

/// Right end of the last item, measured from the window's left edge. (The cursor is already on the
/// next line.)
float line_end() { return ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x; }

/// The title of a command with its key: "Open traces (Ctrl+O)".
void command_tooltip(const Ui& ui, const char* title) {
    const std::string keys = shortcut_of(ui, title);
    ImGui::SetItemTooltip("%s%s", title, keys.empty() ? "" : (" (" + keys + ")").c_str());
}

constexpr float kSideGap = 14;

std::string bytes_text(const DocumentPtr& document) {
    return document ? document->peak_text() : std::string();
}

/// What fits into the tool bar. If there is too little room, the search becomes an icon, figures
/// are left out, and then the names are shortened.
struct BarPlan {
    bool with_search = true;  // the whole search field, not only its icon
    bool with_bytes = true;
    float name_width = 0;  // limit for each of the two names
};

float search_width(bool with_search) { return with_search ? em(15) : em(2.2F); }

/// Width of the search field and the theme button.
float right_end_width(bool with_search) { return search_width(with_search) + em(2.2F) + px(26); }

BarPlan plan_bar(const Selection& selection, float left) {
    const ScopedFont bold(fonts().bold);  // the wider one
    const float badge = ImGui::GetTextLineHeight() + px(9);
    const auto width_of = [&](const BarPlan& plan) {
        float width = px(18) + 2 * badge + 2 * px(kSideGap) + em(2.6F);
        width += std::min(plan.name_width, text_width(selection.label_a.name)) +
                 std::min(plan.name_width, text_width(selection.label_b.name));
        if (plan.with_bytes) {
            width += text_width(bytes_text(selection.a)) + text_width(bytes_text(selection.b)) +
                     2 * px(8);
        }
        return left + width + right_end_width(plan.with_search);
    };
    BarPlan plan{.name_width = em(14)};
    const float room = ImGui::GetWindowWidth();
    if (width_of(plan) > room) plan.with_search = false;
    if (width_of(plan) > room) plan.with_bytes = false;
    while (width_of(plan) > room && plan.name_width > em(3)) plan.name_width -= em(1);
    return plan;
}

void draw_side(const char* letter, const DocumentLabel& label, const DocumentPtr& document,
               const BarPlan& plan) {
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetStyle().FramePadding.y);
    letter_badge(letter, side_color(*letter == 'A' ? 0 : 1));
    ImGui::SameLine(0, px(7));
    ImGui::AlignTextToFramePadding();
    if (!document) return dim_text("none");
    {
        const ScopedFont bold(fonts().bold);
        text(fit_to(label.name, plan.name_width));
    }
    ImGui::SetItemTooltip("%s\n%s", label.name.c_str(), document->file.c_str());
    const std::string bytes = bytes_text(document);
    if (!plan.with_bytes || bytes.empty()) return;
    ImGui::SameLine(0, px(8));
    dim_text(bytes);
}

void draw_a_and_b(Ui& ui, const BarPlan& plan) {
    const Selection& selection = ui.workspace.selection();
    ImGui::SameLine(0, px(18));
    draw_side("A", selection.label_a, selection.a, plan);
    ImGui::SameLine(0, px(kSideGap));
    {
        const ScopedDisabled alone(!selection.b);
        if (ImGui::Button(ICON_SWAP "##swap")) ui.workspace.swap_a_and_b();
        command_tooltip(ui, "Swap A and B");
    }
    ImGui::SameLine(0, px(kSideGap));
    draw_side("B", selection.label_b, selection.b, plan);
}

void draw_layouts(Ui& ui) {
    for (size_t i = 0; i < kLayoutNames.size(); ++i) {
        if (i > 0) ImGui::SameLine(0, px(2));
        const auto layout = static_cast<Layout>(i);
        const std::string label = fmt::format("{}###layout_{}", kLayoutNames[i], i);
        if (toggle_button(label.c_str(), layout_of(ui) == layout)) switch_layout(ui, layout);
        command_tooltip(ui, (std::string("Layout: ") + kLayoutNames[i]).c_str());
    }
}

void draw_search(Ui& ui, bool with_field) {
    const ScopedStyle align(ImGuiStyleVar_ButtonTextAlign, {with_field ? 0.0F : 0.5F, 0.5F});
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    const char* label =
        with_field ? ICON_MAGNIFIER "  Search###search" : ICON_MAGNIFIER "###search";
    if (ImGui::Button(label, {search_width(with_field), 0})) ui.palette.request_open = true;
    if (!with_field) return command_tooltip(ui, "Search everything");
    const std::string keys = shortcut_of(ui, "Search everything");
    ImGui::GetWindowDrawList()->AddText(
        {ImGui::GetItemRectMax().x - text_width(keys) - px(8), ImGui::GetItemRectMin().y + px(4)},
        palette().dim, keys.c_str());
}

void draw_right_end(Ui& ui, bool with_field) {
    const float left = ImGui::GetWindowWidth() - right_end_width(with_field) + px(8);
    if (left < line_end() + px(8)) return;
    ImGui::SameLine(left);
    draw_search(ui, with_field);
    ImGui::SameLine();
    if (ImGui::Button(ui.settings.dark ? ICON_SUN "###theme" : ICON_MOON "###theme",
                      {em(2.2F), 0})) {
        ui.settings.dark = !ui.settings.dark;
    }
    ImGui::SetItemTooltip(ui.settings.dark ? "Light theme" : "Dark theme");
}

}  // namespace

std::string describe_selection(const Selection& selection) {
    std::string text;
    if (const auto& range = selection.range) {
        text = profiler::format_duration(static_cast<int64_t>(range->end_ns - range->start_ns)) +
               " selected  ·  Z zooms to it, Esc clears it";
    }
    if (const auto& tensor = selection.tensor) {
        if (!text.empty()) text += "  ·  ";
        text += fmt::format("{}  {}  ·  {}", tensor->name,
                            profiler::format_exact_bytes(tensor->size_bytes), tensor->module_path);
    }
    return text;
}

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
        if (left > line_end() + px(14)) {
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
        command_tooltip(ui, "Open traces");
        ImGui::SameLine();
        if (ImGui::Button(ICON_PLAY "  Run ...###run")) ui.run_dialog.request_open = true;
        command_tooltip(ui, "Run a program");
        ImGui::SameLine(0, px(14));
        draw_layouts(ui);
        const Selection& selection = ui.workspace.selection();
        BarPlan plan{.with_search = line_end() + right_end_width(true) < ImGui::GetWindowWidth()};
        if (selection.a) {
            plan = plan_bar(selection, line_end());
            draw_a_and_b(ui, plan);
        }
        draw_right_end(ui, plan.with_search);
    }
    ImGui::End();
}

/// What the user waits for, how far it is, and a button that ends it. Returns its width.
float draw_work(Ui& ui) {
    const auto work = ui.workspace.work();
    if (!work) return 0;
    const float cross = ImGui::GetTextLineHeight(), bar = em(6), gap = px(6);
    const std::string what = fit_to(work->text + " ...", em(24));
    const float width = text_width(what) + bar + cross + 3 * gap;
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width + gap);
    dim_text(what);
    ImGui::SameLine(0, gap);
    const float share = work->share ? static_cast<float>(*work->share)
                                    : -static_cast<float>(ImGui::GetTime());  // it moves
    ImGui::ProgressBar(share, {bar, ImGui::GetTextLineHeight()}, "");
    ImGui::SameLine(0, gap);
    const ScopedColor quiet(ImGuiCol_Button, 0);
    const ScopedStyle no_padding(ImGuiStyleVar_FramePadding, {0, 0});
    if (ImGui::Button(ICON_XMARK "###cancel_work", {cross, cross})) {
        ui.workspace.apply({.recipes = {.cancel_work = true}});
    }
    ImGui::SetItemTooltip("Stop");
    return width;
}

std::string hints_of(const Ui& ui) {
    const auto window = find_window(ui.hovered_panel);
    const std::string_view mouse = window ? window->panel->mouse : "";
    return fmt::format("F1 lists the keys{}{}", mouse.empty() ? "" : "  ·  ", mouse);
}

void draw_status_bar(Ui& ui) {
    const ScopedStyle padding(ImGuiStyleVar_WindowPadding, {px(10), px(3)});
    const ScopedStyle border(ImGuiStyleVar_WindowBorderSize, 0.0F);
    const ScopedStyle rounding(ImGuiStyleVar_WindowRounding, 0.0F);
    const ScopedColor ground(ImGuiCol_WindowBg, palette().background);
    const ScopedFont small(fonts().text, kSmallSize);
    if (begin_bar("##status", ImGuiDir_Down, ImGui::GetTextLineHeight() + px(8))) {
        const float x = ImGui::GetCursorPosX(), y = ImGui::GetCursorPosY();
        const float room = ImGui::GetContentRegionAvail().x - draw_work(ui);
        ImGui::SetCursorPos({x, y});
        std::string selected = describe_selection(ui.workspace.selection());
        if (const std::string found = describe_found(ui); !found.empty()) {
            selected =
                found + "  ·  F3 shows the next one" + (selected.empty() ? "" : "  ·  " + selected);
        }
        if (!selected.empty()) {
            text(fit_to(selected, room));
            ImGui::SameLine(0, px(24));
        }
        const float left = room - (ImGui::GetCursorPosX() - x);
        if (left > em(8)) dim_text(fit_to(hints_of(ui), left));
    }
    ImGui::End();
}

}  // namespace app
