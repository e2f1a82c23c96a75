#include "app/panels/parts/layer_switches.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <cmath>

namespace app {
namespace {

using profiler::RecipeSwitchRow;
using profiler::SwitchOption;

struct ChipStyle {
    bool in_a = false;
    bool in_b = false;
    bool is_asked = false;
    bool with_letters = true;
    bool with_arrow = false;
};

float letter_width() { return text_width("A") + px(5); }

/// Width of an arrow and the gap before it. It is reserved before the effect is known, so that
/// buttons do not move.
float arrow_width() { return px(12); }

bool is_shown(const ChipStyle& style, const SwitchColors& colors) {
    return colors.b ? style.in_b : style.in_a;
}

float chip_width(const SwitchOption& option, const ChipStyle& style) {
    const auto letters = static_cast<float>(style.with_letters ? style.in_a + style.in_b : 0);
    return text_width(option.name) + px(14) + letters * letter_width() +
           (style.with_arrow ? arrow_width() : 0);
}

/// Down and green: the peak becomes lower. Up and red: higher. `corner` is the upper left one.
void draw_arrow(ImVec2 corner, float height, int64_t change_bytes) {
    if (change_bytes == 0) return;
    const float x = std::round(corner.x + px(3.5F)), y = std::round(corner.y + height / 2);
    const float half = px(3.5F), down = change_bytes < 0 ? 1.0F : -1.0F;
    const ImU32 color = change_bytes < 0 ? palette().good : palette().bad;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    // With a shaft: a triangle alone opens a list elsewhere.
    draw->AddLine({x, y - down * px(5)}, {x, y + down * px(1)}, color, px(1.5F));
    draw->AddTriangleFilled({x - down * half, y}, {x + down * half, y}, {x, y + down * px(5)},
                            color);
}

void draw_tooltip(const SwitchOption& option, bool is_shown, const SwitchEffect& effect) {
    if (!ImGui::BeginItemTooltip()) return;
    bold_text(option.phrase);
    if (is_shown || !effect.rows) return ImGui::EndTooltip();
    const auto rows = effect.rows(option);
    if (!rows) {
        dim_text("A click predicts what it changes.");
    } else if (rows->empty()) {
        dim_text("It does not change the memory of the step.");
    } else {
        dim_text("It alone changes");
        readout_table(*rows);
    }
    ImGui::EndTooltip();
}

/// Returns true when it was clicked.
bool draw_chip(const SwitchOption& option, const ChipStyle& style, const SwitchColors& colors,
               const SwitchEffect& effect) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const bool shown = is_shown(style, colors);
    const ImVec2 size{chip_width(option, style), ImGui::GetTextLineHeight() + px(7)};
    const bool clicked = ImGui::InvisibleButton(option.name.c_str(), size);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw_tooltip(option, shown, effect);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const bool lit = style.in_b || (style.in_a && !colors.b);
    const ImU32 color = style.in_b ? colors.b.value_or(colors.a) : colors.a;
    const ImVec2 lower = corner + size;
    draw->AddRectFilled(corner, lower, lit ? with_alpha(color, 0.30F) : palette().raised, px(4));
    if (hovered) draw->AddRectFilled(corner, lower, with_alpha(palette().text, 0.08F), px(4));
    if (style.is_asked) draw->AddRect(corner, lower, palette().accent, px(4), px(1.5F));
    if (style.in_a || style.in_b) {
        draw->AddRect(corner, lower, with_alpha(color, lit ? 0.9F : 0.5F), px(4), px(1));
    }
    const bool bright = style.in_a || style.in_b || hovered;
    float x = corner.x + px(7);
    const float y = std::round(corner.y + (size.y - ImGui::GetTextLineHeight()) / 2);
    draw->AddText({std::round(x), y}, bright ? palette().text : palette().dim, option.name.c_str());
    x += text_width(option.name) + px(5);
    const auto letter = [&](const char* text, ImU32 ink) {
        const ScopedFont bold(fonts().bold, kSmallSize);
        draw->AddText({std::round(x), y}, ink, text);
        x += letter_width();
    };
    if (style.in_a && style.with_letters) letter("A", colors.a);
    if (style.in_b && style.with_letters) letter("B", color);
    if (style.with_arrow) {
        draw_arrow({x, corner.y}, size.y, effect.peak_change_bytes(option).value_or(0));
    }
    return clicked;
}

/// The values side by side, on several lines where the column is narrow.
const SwitchOption* draw_row(const RecipeSwitchRow& row, const SwitchColors& colors,
                             const std::string& asked, const SwitchEffect& effect) {
    const ScopedId id(row.name.c_str());
    const ScopedFont font(fonts().text, kSmallSize);
    const float start = ImGui::GetCursorPosX();
    const float right = start + ImGui::GetContentRegionAvail().x;
    dim_text(row.name);
    const SwitchOption* clicked = nullptr;
    for (size_t i = 0; i < row.options.size(); ++i) {
        const SwitchOption& option = row.options[i];
        ChipStyle style{row.chosen[0] == i, row.chosen[1] == i,
                        !asked.empty() && option.recipe == asked, colors.with_letters};
        style.with_arrow = effect.peak_change_bytes && !is_shown(style, colors);
        if (i > 0) {
            ImGui::SameLine(0, px(4));
            if (ImGui::GetCursorPosX() + chip_width(option, style) > right) {
                ImGui::NewLine();
                ImGui::SetCursorPosX(start);
            }
        }
        if (draw_chip(option, style, colors, effect)) clicked = &option;
    }
    return clicked;
}

}  // namespace

const SwitchOption* draw_recipe_switches(const std::vector<RecipeSwitchRow>& rows,
                                         const SwitchColors& colors, const std::string& asked,
                                         const SwitchEffect& effect) {
    const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, {px(4), px(3)});
    const SwitchOption* clicked = nullptr;
    for (const RecipeSwitchRow& row : rows) {
        const SwitchOption* const option = draw_row(row, colors, asked, effect);
        if (option != nullptr) clicked = option;
        ImGui::Dummy({0, px(3)});
    }
    return clicked;
}

}  // namespace app
