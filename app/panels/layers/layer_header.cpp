#include "app/panels/layers/layer_header.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::PairFigure;

/// Green where B needs less, or does more.
ImU32 difference_color(const PairFigure& figure) {
    if (figure.sign == 0) return palette().dim;
    return (figure.sign > 0) == figure.more_is_good ? palette().good : palette().bad;
}

/// A waterfall: the preceding figure is pale, and what this figure adds is in full color. Of two
/// traces the bar shows B, and a mark shows where A ends.
void draw_bar(ImDrawList* draw, const PairFigure& figure, const Selection& selection, ImVec2 corner,
              float width) {
    const float height = px(5);
    const bool two = !figure.value[1].empty();
    const auto length = [&](double share) {
        return std::max(px(2), std::round(width * static_cast<float>(share)));
    };
    if (figure.share[0] <= 0 && figure.share[1] <= 0) return;  // no bytes
    draw->AddRectFilled(corner, {corner.x + width, corner.y + height}, palette().raised, px(2));
    const ImU32 color_a = recipe_color(selection.look_a.color);
    const ImU32 filled = two ? recipe_color(selection.look_b.color) : color_a;
    const double share = figure.share[two], start = figure.start[two];
    draw->AddRectFilled(corner, {corner.x + length(share), corner.y + height},
                        with_alpha(filled, 0.4F), px(2));
    const float left = start > 0 ? corner.x + length(start) : corner.x;
    draw->AddRectFilled({left, corner.y}, {corner.x + length(share), corner.y + height}, filled,
                        px(2));
    if (!two) return;
    const float mark = corner.x + length(figure.share[0]);
    draw->AddRectFilled({mark - px(2), corner.y - px(1)}, {mark, corner.y + height + px(1)},
                        color_a);
}

/// "55  →", in front of the value of B; empty if A has the same value.
std::string value_before(const PairFigure& figure) {
    const bool differs = !figure.value[1].empty() && figure.value[0] != figure.value[1];
    return differs ? figure.value[0] + "  \xe2\x86\x92" : "";
}

/// A's value counts only where no difference says what changes.
float wanted_width(const PairFigure& figure) {
    const ScopedFont small(fonts().text, kSmallSize);
    const float label = text_width(figure.label);
    const ScopedFont bold(fonts().bold, kTextSize);
    const std::string before = figure.difference.empty() ? value_before(figure) : "";
    const std::string& last = figure.value[figure.value[1].empty() ? 0 : 1];
    const float values = text_width(before) + text_width(last) + text_width(figure.difference);
    return std::max(label, values + px(21)) + px(2);
}

/// Each figure gets the width that it wants, and an equal share of what is left over. If they want
/// too much, the narrow figures keep their width and the wide ones share the rest.
std::vector<float> cell_widths(const std::vector<PairFigure>& figures, float width) {
    std::vector<float> widths;
    for (const PairFigure& figure : figures) widths.push_back(wanted_width(figure));
    std::vector<float> sorted = widths;
    std::sort(sorted.begin(), sorted.end());
    float left = width, most = 0;
    auto open = static_cast<float>(sorted.size());
    for (const float wanted : sorted) {
        most = std::max(px(40), left / open);
        left -= std::min(wanted, most);
        --open;
    }
    const float spare = std::max(0.0F, left) / static_cast<float>(widths.size());
    for (float& one : widths) one = std::min(one, most) + spare;
    return widths;
}

void draw_figure(ImDrawList* draw, const PairFigure& figure, const Selection& selection,
                 ImVec2 corner, float width, float bar_width) {
    {
        const ScopedFont small(fonts().text, kSmallSize);
        draw->AddText(corner, palette().dim, fit_to(figure.label, width).c_str());
    }
    const float y = corner.y + px(kSmallSize) + px(4);
    float x = corner.x;
    const bool two = !figure.value[1].empty();
    const std::string& last = two ? figure.value[1] : figure.value[0];
    const auto add = [&](ImFont* face, float size, ImU32 color, const std::string& content) {
        const ScopedFont font(face, size);
        if (x + text_width(content) > corner.x + width) return;
        draw->AddText({std::round(x), y}, color, content.c_str());
        x += text_width(content) + px(7);
    };
    float needed = 0;
    {
        const ScopedFont bold(fonts().bold, kTextSize);
        needed = text_width(last) + text_width(figure.difference) + px(14);
    }
    // A's value only where there is room for everything.
    const std::string before = value_before(figure);
    if (!before.empty() && needed + text_width(before) + px(7) <= width) {
        add(fonts().text, kTextSize, palette().dim, before);
    }
    add(fonts().bold, kTextSize, palette().text, last);
    add(fonts().text, kTextSize, difference_color(figure), figure.difference);
    draw_bar(draw, figure, selection, {corner.x, y + px(kTextSize) + px(7)}, bar_width);
}

/// Says that one figure leads to the next.
void draw_chevron(ImDrawList* draw, ImVec2 middle) {
    const ImU32 ink = with_alpha(palette().dim, 0.7F);
    const float size = px(4);
    draw->AddLine({middle.x - size / 2, middle.y - size}, {middle.x + size / 2, middle.y}, ink,
                  px(1.5F));
    draw->AddLine({middle.x + size / 2, middle.y}, {middle.x - size / 2, middle.y + size}, ink,
                  px(1.5F));
}

}  // namespace

void draw_layer_figures(const std::vector<PairFigure>& figures, const Selection& selection,
                        float width) {
    if (figures.empty()) return;
    const float gap = px(26), height = px(kSmallSize + kTextSize + 20);
    const std::vector<float> widths =
        cell_widths(figures, width - gap * static_cast<float>(figures.size() - 1));
    const float bar = *std::min_element(widths.begin(), widths.end());  // all have one scale
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    float x = corner.x;
    for (size_t i = 0; i < figures.size(); ++i) {
        if (x + widths[i] > corner.x + width + px(1)) break;
        draw_figure(draw, figures[i], selection, {std::round(x), corner.y}, widths[i], bar);
        if (i > 0) draw_chevron(draw, {std::round(x) - gap / 2, corner.y + height / 2});
        x += widths[i] + gap;
    }
    ImGui::Dummy({width, height});
}

}  // namespace app
