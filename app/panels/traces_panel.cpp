#include "app/panels/traces_panel.h"

#include "app/widgets/loading.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/window/fonts.h"
#include "app/window/icons.h"
#include "app/window/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/axis.h"

#include <fmt/format.h>

namespace app {
namespace {

double measure(std::string_view content) { return static_cast<double>(text_width(content)); }

/// A small button with a letter, filled when it is on.
bool letter_button(const char* letter, bool on, ImU32 color) {
    const ScopedId id(letter);
    const ScopedFont bold(fonts().bold, kSmallSize);
    const ScopedColor fill(ImGuiCol_Button, on ? color : 0);
    const ScopedColor label(ImGuiCol_Text, on ? palette().plot : palette().dim);
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(6), px(1)});
    return ImGui::Button(letter);
}

std::string second_line(const Document& document) {
    if (!document.has_step) return document.state;
    return fmt::format("{}  ·  {}", profiler::format_bytes(document.peak.allocated_bytes),
                       document.state);
}

void draw_tooltip(const Document& document) {
    if (!ImGui::BeginItemTooltip()) return;
    bold_text(document.recipe);
    text(document.workload);
    dim_text(fmt::format(
        "{}  ·  {} allocations", document.source,
        profiler::format_count(static_cast<int64_t>(document.trace->allocations.size()))));
    dim_text(document.file.string());
    ImGui::EndTooltip();
}

void draw_menu(const DocumentPtr& document, PanelEvents& events) {
    if (!ImGui::BeginPopupContextItem("##trace_menu")) return;
    if (ImGui::MenuItem("Show as A", nullptr, false, document->has_step)) events.set_a = document;
    if (ImGui::MenuItem("Show as B", nullptr, false, document->has_step)) events.set_b = document;
    if (ImGui::MenuItem(ICON_ROTATE "  Read again")) events.open.push_back(document->file);
    if (ImGui::MenuItem(ICON_COPY "  Copy path")) ImGui::SetClipboardText(document->file.c_str());
    ImGui::Separator();
    if (ImGui::MenuItem(ICON_XMARK "  Close")) events.close = document;
    ImGui::EndPopup();
}

/// Two lines: recipe with its A and B buttons, then peak and steps.
void draw_trace(const TracesInput& input, size_t index, PanelEvents& events) {
    const DocumentPtr& document = (*input.documents)[index];
    const ScopedId id(static_cast<int>(index));
    const bool is_a = document == input.selection->a, is_b = document == input.selection->b;
    const float height = 2 * ImGui::GetTextLineHeight() + px(12);
    const ImVec2 start = ImGui::GetCursorPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const ScopedColor shown(ImGuiCol_Header, palette().raised);
    if (ImGui::Selectable("##trace", is_a || is_b, ImGuiSelectableFlags_AllowOverlap,
                          {width, height}) &&
        document->has_step && !is_a) {
        events.set_b = is_b ? nullptr : document;
    }
    draw_tooltip(*document);
    draw_menu(document, events);
    const float buttons = em(3.7F);
    ImGui::SetCursorPos({start.x + px(6), start.y + px(5)});
    {
        const ScopedFont bold(fonts().bold);
        text(profiler::fit_label(document->recipe, width - buttons - px(14), measure));
    }
    const bool warns =
        !document->health.empty() && document->health.front().severity != profiler::Severity::kInfo;
    if (warns) {
        ImGui::SameLine(0, px(6));
        colored_text(palette().warn, ICON_TRIANGLE_EXCLAMATION);
        ImGui::SetItemTooltip("%s", document->health.front().explanation.c_str());
    }
    ImGui::SetCursorPos({start.x + px(6), start.y + px(7) + ImGui::GetTextLineHeight()});
    dim_text(profiler::fit_label(second_line(*document), width - px(12), measure));
    if (document->has_step) {
        ImGui::SetCursorPos({start.x + width - buttons, start.y + px(5)});
        if (letter_button("A", is_a, recipe_color(0))) events.set_a = document;
        ImGui::SameLine(0, px(3));
        if (letter_button("B", is_b, recipe_color(1))) {
            events.set_b = is_b ? nullptr : document;
        }
    }
    ImGui::SetCursorPos({start.x, start.y + height + px(3)});
    ImGui::Dummy({});
}

}  // namespace

PanelEvents draw_traces_panel(const TracesInput& input, TracesState&) {
    PanelEvents events;
    for (size_t i = 0; i < input.documents->size(); ++i) draw_trace(input, i, events);
    if (input.loading) {
        events.cancel_loading = draw_loading(*input.loading);
    } else if (input.documents->empty()) {
        empty_state(ICON_LAYERS, "No traces", "Open files, or drop them on the window.");
    }
    return events;
}

}  // namespace app
