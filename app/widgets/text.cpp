#include "app/widgets/text.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/theme.h"
#include "profiler/view/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace app {

void text(std::string_view content) {
    ImGui::TextUnformatted(content.data(), content.data() + content.size());
}

void dim_text(std::string_view content) { colored_text(palette().dim, content); }

void bold_text(std::string_view content) {
    const ScopedFont bold(fonts().bold);
    text(content);
}

void colored_text(ImU32 color, std::string_view content) {
    const ScopedColor scoped(ImGuiCol_Text, color);
    text(content);
}

void right_text(std::string_view content) {
    const float space = ImGui::GetContentRegionAvail().x - text_width(content);
    if (space > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + space);
    text(content);
}

void wrapped_text(std::string_view content, float width) {
    ImGui::PushTextWrapPos(width);
    text(content);
    ImGui::PopTextWrapPos();
}

void wrapped_bold_text(std::string_view content, float width) {
    const ScopedFont bold(fonts().bold);
    wrapped_text(content, width);
}

void note_text(std::string_view content) {
    const ScopedColor color(ImGuiCol_Text, palette().dim);
    wrapped_text(content);
}

void warning_note(ImU32 color, std::string_view note) {
    colored_text(color, ICON_TRIANGLE_EXCLAMATION);
    ImGui::SameLine(0, px(6));
    note_text(note);
}

float text_width(std::string_view content) {
    return ImGui::CalcTextSize(content.data(), content.data() + content.size()).x;
}

namespace {
double width_in_pixels(std::string_view content) { return text_width(content); }
}  // namespace

std::string fit_to(std::string_view content, float width) {
    return profiler::fit_label(content, width, width_in_pixels);
}

std::string fit_path_to(std::string_view path, float width) {
    return profiler::fit_path(path, width, width_in_pixels);
}

namespace {
struct SwatchBox {
    ImVec2 upper;
    ImVec2 lower;
};

/// Reserves the room of a swatch in the line.
SwatchBox place_swatch() {
    const float height = ImGui::GetTextLineHeight();
    const float size = std::floor(height * 0.62F);
    ImVec2 corner = ImGui::GetCursorScreenPos();
    corner.y += std::floor((height - size) / 2) + 1;
    ImGui::Dummy({size, height});
    ImGui::SameLine(0, px(6));
    return {corner, {corner.x + size, corner.y + size}};
}

enum class LegendStyle : uint8_t { kPlain, kPicked, kFaded };

float legend_gap() { return px(18); }  // between items, with room for a cross

float legend_item_width(std::string_view name) {
    return std::floor(ImGui::GetTextLineHeight() * 0.62F) + px(6) + text_width(name);
}

/// Behind the last item, in the gap before the next one, so that a click moves none of them.
void draw_legend_cross() {
    const ScopedFont small(fonts().text, kSmallSize * 0.7F);
    const ImVec2 after{ImGui::GetItemRectMax().x, ImGui::GetItemRectMin().y};
    const float middle = (ImGui::GetItemRectSize().y - ImGui::GetFontSize()) / 2;
    ImGui::GetWindowDrawList()->AddText({after.x + px(2), std::round(after.y + middle)},
                                        palette().text, ICON_XMARK);
}

/// Swatch and name of a category, with a cross behind it if it is picked: another click ends that.
/// Returns true when it was clicked.
bool legend_item(profiler::Category category, LegendStyle style) {
    const std::string_view label = profiler::label_of(category);
    const bool is_picked = style == LegendStyle::kPicked;
    const bool is_faded = style == LegendStyle::kFaded;
    const float cross = is_picked ? legend_gap() : 0;
    const ImVec2 start = ImGui::GetCursorPos();
    const ScopedId id(static_cast<int>(category));
    const bool clicked = ImGui::InvisibleButton(
        "##category", {legend_item_width(label) + cross, ImGui::GetTextLineHeight()});
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::SetItemTooltip("Click to %s %.*s", is_picked ? "stop highlighting" : "highlight",
                          static_cast<int>(label.size()), label.data());
    ImGui::SetCursorPos(start);
    ImGui::BeginGroup();
    category_swatch(category, is_faded);
    colored_text(hovered || !is_faded ? palette().text : palette().dim, label);
    ImGui::EndGroup();
    if (is_picked) draw_legend_cross();
    return clicked;
}

}  // namespace

void swatch(ImU32 color) {
    const SwatchBox box = place_swatch();
    ImGui::GetWindowDrawList()->AddRectFilled(box.upper, box.lower, color, px(2));
}

void color_legend(std::span<const NamedColor> colors) {
    const float y = ImGui::GetCursorPosY();  // SameLine forgets an offset within the line
    for (std::size_t i = 0; i < colors.size(); ++i) {
        if (i > 0) ImGui::SameLine(0, px(12));
        ImGui::SetCursorPosY(y);
        swatch(colors[i].color);
        ImGui::SetCursorPosY(y);
        text(colors[i].name);
    }
}

float color_legend_width(std::span<const NamedColor> colors) {
    float width = 0;
    for (const NamedColor& one : colors) width += legend_item_width(one.name) + px(12);
    return width - px(12);
}

void recipe_swatch(size_t index) {
    const SwatchBox box = place_swatch();
    fill_recipe(ImGui::GetWindowDrawList(), box.upper, box.lower, index);
}

void category_swatch(profiler::Category category, bool faded) {
    const SwatchBox box = place_swatch();
    fill_category(ImGui::GetWindowDrawList(), box.upper, box.lower, category, faded ? 0.5F : 1.0F,
                  px(4));
}

float letter_badge_size() { return ImGui::GetTextLineHeight() + px(2); }

void draw_letter_badge(ImDrawList* draw, ImVec2 corner, const char* letter, ImU32 color) {
    const ImVec2 size{letter_badge_size(), letter_badge_size()};
    draw->AddRectFilled(corner, corner + size, color, px(3));
    const ImVec2 glyph = ImGui::CalcTextSize(letter);
    draw->AddText({std::round(corner.x + (size.x - glyph.x) / 2),
                   std::round(corner.y + (size.y - glyph.y) / 2)},
                  ink_on(color), letter);
}

void letter_badge(const char* letter, ImU32 color) {
    const ScopedFont bold(fonts().bold, kSmallSize);
    draw_letter_badge(ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), letter, color);
    ImGui::Dummy({letter_badge_size(), letter_badge_size()});
}

bool letter_button(const char* letter, bool on, ImU32 color) {
    const ScopedId id(letter);
    const ScopedFont bold(fonts().bold, kSmallSize);
    const ScopedColor fill(ImGuiCol_Button, on ? color : 0);
    const ScopedColor label(ImGuiCol_Text, on ? ink_on(color) : palette().dim);
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(6), px(1)});
    return ImGui::Button(letter);
}

void readout_table(std::span<const std::pair<std::string, std::string>> rows) {
    if (!ImGui::BeginTable("##readout", 2, ImGuiTableFlags_SizingFixedFit)) return;
    for (const auto& [label, value] : rows) {
        if (value.empty()) continue;
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(label);
        ImGui::TableNextColumn();
        text(value);
    }
    ImGui::EndTable();
}

void labelled_value(std::string_view label, std::string_view value, ImU32 color) {
    ImGui::AlignTextToFramePadding();
    dim_text(label);
    ImGui::SameLine(0, px(6));
    const ScopedFont bold(fonts().bold);
    colored_text(color ? color : palette().text, value);
}

void help_marker(std::string_view explanation) {
    dim_text(ICON_CIRCLE_QUESTION);
    if (!ImGui::BeginItemTooltip()) return;
    wrapped_text(explanation, em(24));
    ImGui::EndTooltip();
}

bool toggle_button(const char* label, bool on) {
    const ScopedColor fill(ImGuiCol_Button,
                           on ? with_alpha(palette().accent, 0.30F) : palette().raised);
    const ScopedColor color(ImGuiCol_Text, on ? palette().text : palette().dim);
    return ImGui::Button(label);
}

void switch_button(const PanelPart& part, bool& on) {
    if (toggle_button(part.label, on && part.has_room)) on = !on;
    if (on && !part.has_room) {
        ImGui::GetWindowDrawList()->AddRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                                            with_alpha(palette().accent, 0.6F),
                                            ImGui::GetStyle().FrameRounding, px(1));
    }
    ImGui::SetItemTooltip("%s%s", part.tooltip,
                          part.has_room ? "" : ".\nThere is no room now: make the panel higher");
}

std::optional<profiler::Category> category_legend(std::span<const profiler::Category> categories,
                                                  std::optional<profiler::Category> picked,
                                                  float width) {
    std::optional<profiler::Category> clicked;
    const float start = ImGui::GetCursorPosX();
    for (std::size_t i = 0; i < categories.size(); ++i) {
        const LegendStyle style = !picked                    ? LegendStyle::kPlain
                                  : *picked == categories[i] ? LegendStyle::kPicked
                                                             : LegendStyle::kFaded;
        if (i > 0) {
            ImGui::SameLine(0, legend_gap());
            const float needed =
                legend_item_width(profiler::label_of(categories[i])) + legend_gap();
            if (ImGui::GetCursorPosX() + needed > start + width) {
                ImGui::NewLine();
                ImGui::SetCursorPosX(start);
            }
        }
        if (legend_item(categories[i], style)) clicked = categories[i];
    }
    return clicked;
}

namespace {
void centered(std::string_view content) {
    const float space = ImGui::GetContentRegionAvail().x - text_width(content);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, space / 2));
    text(content);
}
}  // namespace

void empty_state(const char* icon, std::string_view title, std::string_view advice) {
    const float height = ImGui::GetContentRegionAvail().y;
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::max(0.0F, height * 0.5F - em(4)));
    {
        const ScopedFont large(fonts().text, 30);
        const ScopedColor color(ImGuiCol_Text, with_alpha(palette().dim, 0.55F));
        centered(icon);
    }
    ImGui::Spacing();
    {
        const ScopedFont bold(fonts().bold);
        centered(title);
    }
    const ScopedColor color(ImGuiCol_Text, palette().dim);
    const float width = std::min(ImGui::GetContentRegionAvail().x - em(1), em(30));
    const ImVec2 size =
        ImGui::CalcTextSize(advice.data(), advice.data() + advice.size(), false, width);
    const float left =
        ImGui::GetCursorPosX() + std::max(0.0F, (ImGui::GetContentRegionAvail().x - size.x) / 2);
    ImGui::SetCursorPosX(left);
    wrapped_text(advice, left + width);
}

void working_line(std::string_view what) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(corner, {corner.x + width, corner.y + px(2)}, palette().raised);
    draw->AddRectFilled(corner, {corner.x + width * 0.4F, corner.y + px(2)}, palette().accent);
    ImGui::Dummy({width, px(4)});
    dim_text(what);
}

namespace {
/// Without an edge an empty box cannot be seen.
struct Edge {
    ScopedStyle width{ImGuiStyleVar_FrameBorderSize, px(1)};
    ScopedColor color{ImGuiCol_Border, with_alpha(palette().dim, 0.7F)};
};
}  // namespace

bool check_box(const char* label, bool* value) {
    const Edge edge;
    return ImGui::Checkbox(label, value);
}

bool radio_button(const char* label, bool is_chosen) {
    const Edge edge;
    return ImGui::RadioButton(label, is_chosen);
}

}  // namespace app
