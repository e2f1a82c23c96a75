#include "app/panels/layer_header.h"

#include "app/widgets/fonts.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::LayerFigure;

/// Green where B needs less, or does more.
ImU32 difference_color(const LayerFigure& figure) {
    if (figure.sign == 0) return palette().dim;
    return (figure.sign > 0) == figure.more_is_good ? palette().good : palette().bad;
}

/// A waterfall: what the figure before holds is pale, and what this one adds to it full. Of two
/// traces the bar shows B, and a mark shows where A ends.
void draw_bar(ImDrawList* draw, const LayerFigure& figure, const Selection& selection,
              ImVec2 corner, float width) {
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

void draw_figure(ImDrawList* draw, const LayerFigure& figure, const Selection& selection,
                 ImVec2 corner, float width) {
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
    const std::string before = figure.value[0] + "  \xe2\x86\x92";
    // A's value only where there is room for everything.
    if (two && figure.value[0] != last && needed + text_width(before) + px(7) <= width) {
        add(fonts().text, kTextSize, palette().dim, before);
    }
    add(fonts().bold, kTextSize, palette().text, last);
    add(fonts().text, kTextSize, difference_color(figure), figure.difference);
    draw_bar(draw, figure, selection, {corner.x, y + px(kTextSize) + px(7)}, width);
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

void draw_layer_figures(const std::vector<LayerFigure>& figures, const Selection& selection,
                        float width) {
    const auto count = static_cast<float>(figures.size());
    if (count == 0) return;
    const float gap = px(26), height = px(kSmallSize + kTextSize + 20);
    const float cell = std::max(px(40), (width - gap * (count - 1)) / count);
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    for (size_t i = 0; i < figures.size(); ++i) {
        const float x = std::round(corner.x + (cell + gap) * static_cast<float>(i));
        if (x + cell > corner.x + width + px(1)) break;
        draw_figure(draw, figures[i], selection, {x, corner.y}, cell);
        if (i > 0) draw_chevron(draw, {x - gap / 2, corner.y + height / 2});
    }
    ImGui::Dummy({width, height});
}

}  // namespace app
