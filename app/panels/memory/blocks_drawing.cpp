#include "app/panels/memory/blocks_drawing.h"

#include "app/widgets/fonts.h"
#include "app/widgets/plot_marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace app {
namespace {

using profiler::BlockPiece;
using profiler::BlockShape;
using profiler::BlocksView;
using profiler::MergedBlocks;

using Box = ScreenBox;

/// Whole pixels, cut to the plot. A far off edge would overflow the numbers of the graphics card.
Box box_of(const PlotMap& map, double start_ns, double end_ns, double low, double high) {
    const auto x = [&](double ns) {
        return whole_pixel(map.x(std::clamp(ns, map.x_min, map.x_max)));
    };
    const auto y = [&](double bytes) {
        return whole_pixel(map.y(std::clamp(bytes, map.y_min, map.y_max)));
    };
    return {{x(start_ns), y(high)}, {x(end_ns), y(low)}};
}

ImU32 between(ImU32 from, ImU32 to, double share) {
    const ImVec4 a = to_vec4(from), b = to_vec4(to);
    const auto t = static_cast<float>(share);
    return ImGui::ColorConvertFloat4ToU32(
        {a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t, 1});
}

ImU32 ramp_color(double share) {
    const std::array stops{recipe_color(5), recipe_color(1), recipe_color(6),
                           recipe_color(4), recipe_color(2), recipe_color(7)};
    const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
    const auto first = std::min(static_cast<size_t>(at), stops.size() - 2);
    return between(stops[first], stops[first + 1], at - static_cast<double>(first));
}

std::vector<ImU32> colors_of(const BlocksView& view) {
    std::vector<ImU32> colors;
    for (const profiler::BlockGroup& group : view.groups) colors.push_back(group_color(group));
    return colors;
}

/// Leaves a line free between neighbours, if there is room for it.
void fill_block(ImDrawList* draw, Box box, ImU32 color) {
    if (box.height() > px(5)) box.upper.y += 1;
    if (box.width() > px(5)) box.lower.x -= 1;
    draw->AddRectFilled(box.upper, box.lower, color);
}

/// What the other trace does not hold.
void draw_hollow(ImDrawList* draw, Box box, ImU32 color, float strength) {
    if (box.empty()) return;
    draw->AddRectFilled(box.upper, box.lower, with_alpha(color, 0.10F * strength));
    if (box.height() < px(3) || box.width() < px(3)) return;
    box.upper.y += 1;
    box.lower.x -= 1;
    draw->AddRect(box.upper, box.lower, with_alpha(color, 0.85F * strength));
}

/// A piece of a difference: filled as far as B holds it.
void draw_compared(ImDrawList* draw, const PlotMap& map, const BlockShape& shape,
                   const BlockPiece& piece, ImU32 color, float strength) {
    const double low = piece.low_bytes, high = low + static_cast<double>(shape.size_bytes);
    const double start = std::clamp(shape.kept_start_ns, piece.start_ns, piece.end_ns);
    const double end = std::clamp(shape.kept_end_ns, start, piece.end_ns);
    const double kept = low + shape.kept * (high - low);
    const bool nothing = shape.kept <= 0 || end <= start;
    if (nothing) {
        return draw_hollow(draw, box_of(map, piece.start_ns, piece.end_ns, low, high), color,
                           strength);
    }
    draw_hollow(draw, box_of(map, piece.start_ns, start, low, high), color, strength);
    draw_hollow(draw, box_of(map, end, piece.end_ns, low, high), color, strength);
    if (kept < high) draw_hollow(draw, box_of(map, start, end, kept, high), color, strength);
    const Box box = box_of(map, start, end, low, kept);
    if (!box.empty()) fill_block(draw, box, with_alpha(color, 0.92F * strength));
}

void draw_label(ImDrawList* draw, const BlockShape& shape, const Box& box, ImU32 fill,
                bool hollow) {
    const float height = ImGui::GetFontSize();
    if (box.width() < px(40) || box.height() < height) return;
    const ImVec2 at{box.upper.x + px(4), std::round(box.upper.y + (box.height() - height) / 2)};
    const ImVec4 clip(box.upper.x, box.upper.y, box.lower.x - px(3), box.lower.y);
    draw->AddText(ImGui::GetFont(), height, at, hollow ? palette().text : ink_on(fill),
                  shape.label.c_str(), nullptr, 0, &clip);
}

/// Outlines blocks piece by piece, with vertical lines only where they begin and end.
void outline(ImDrawList* draw, const PlotMap& map, const BlocksView& view,
             const std::vector<const BlockPiece*>& pieces, ImU32 color, float width) {
    for (size_t i = 0; i < pieces.size(); ++i) {
        const BlockPiece* piece = pieces[i];
        const auto size = static_cast<double>(view.shapes[piece->shape].size_bytes);
        const Box box =
            box_of(map, piece->start_ns, piece->end_ns, piece->low_bytes, piece->low_bytes + size);
        const BlockShape& shape = view.shapes[piece->shape];
        const bool starts = piece->start_ns <= shape.start_ns;
        const bool ends = piece->end_ns >= shape.end_ns;
        draw->AddRectFilled(box.upper, {box.lower.x, box.upper.y + width}, color);
        draw->AddRectFilled({box.upper.x, box.lower.y - width}, box.lower, color);
        if (starts) draw->AddRectFilled(box.upper, {box.upper.x + width, box.lower.y}, color);
        if (ends) draw->AddRectFilled({box.lower.x - width, box.upper.y}, box.lower, color);
    }
}

/// The rectangles of blocks, without outlines.
class BlockPainter {
public:
    BlockPainter(ImDrawList* draw, const PlotMap& map, const BlocksView& view,
                 const BlockHighlights& highlights, std::optional<ImVec2> mouse)
        : draw_(draw),
          map_(map),
          view_(view),
          highlights_(highlights),
          mouse_(mouse),
          colors_(colors_of(view)) {}

    HoveredBlock paint() {
        for (const MergedBlocks& merged : view_.merged) paint(merged);
        for (size_t i = 0; i < view_.pieces.size(); ++i) paint(view_.pieces[i], i);
        return hovered_;
    }
    const std::vector<const BlockPiece*>& selected() const { return selected_; }
    const std::vector<const BlockPiece*>& siblings() const { return siblings_; }

private:
    /// Merged blocks are paler than single ones, and paler still where they fill little of their
    /// rectangle, down to half the strength. Opaque, because neighbours overlap by a pixel.
    ImU32 color_of(const profiler::MergedPart& part, float density) const {
        const profiler::BlockGroup& group = view_.groups[part.group];
        const bool pale = highlights_.category &&
                          group.color_source == profiler::BlockGroup::ColorSource::kCategory &&
                          group.category != *highlights_.category;
        const double strength = pale ? 0.18 : group.gone ? 0.16 : 0.70;
        const double thinned = 0.5 + 0.5 * std::sqrt(static_cast<double>(density));
        return between(palette().plot, colors_[part.group], strength * thinned);
    }

    void paint(const MergedBlocks& merged) {
        if (merged.end_ns <= map_.x_min || merged.start_ns >= map_.x_max) return;
        Box box = box_of(map_, merged.start_ns, merged.end_ns, merged.low_bytes, merged.high_bytes);
        box.lower.x = std::max(box.lower.x, box.upper.x + 1);
        if (box.height() < 0.5F || merged.parts.empty()) return;
        // One more pixel closes the joint with what lies below, which is rounded by itself.
        if (box.height() <= 1) {
            const auto largest =
                std::ranges::max_element(merged.parts, {}, &profiler::MergedPart::share);
            draw_->AddRectFilled(box.upper, {box.lower.x, box.lower.y + 1},
                                 color_of(*largest, merged.density));
        } else {
            paint_parts(merged, box);
        }
        if (mouse_ && box.contains(*mouse_)) hovered_ = {nullptr, &merged};
    }

    /// The lowest part that has a pixel of the box has the joint too.
    void paint_parts(const MergedBlocks& merged, const Box& box) {
        float low = box.lower.y, joint = 1, share = 0;
        for (const profiler::MergedPart& part : merged.parts) {
            share += part.share;
            const bool is_last = &part == &merged.parts.back();
            const float high =
                is_last ? box.upper.y : std::round(box.lower.y - share * box.height());
            if (high >= low) continue;
            draw_->AddRectFilled({box.upper.x, high}, {box.lower.x, low + joint},
                                 color_of(part, merged.density));
            low = high;
            joint = 0;
        }
    }

    /// The second cue beside the colour of a category, where there is room for it.
    void hatch(const Box& box, const profiler::BlockGroup& group, float alpha) {
        if (group.color_source != profiler::BlockGroup::ColorSource::kCategory) return;
        if (box.width() < px(8) || box.height() < px(10)) return;
        hatch_category(draw_, box.upper, box.lower, group.category, alpha, px(7));
    }

    void paint(const BlockPiece& piece, size_t index) {
        if (piece.end_ns <= map_.x_min || piece.start_ns >= map_.x_max) return;
        const BlockShape& shape = view_.shapes[piece.shape];
        const Box box = box_of(map_, piece.start_ns, piece.end_ns, piece.low_bytes,
                               piece.low_bytes + static_cast<double>(shape.size_bytes));
        if (box.empty()) return;
        const bool pale = highlights_.category && shape.category != *highlights_.category;
        const ImU32 color = colors_[shape.group];
        if (view_.difference) {
            draw_compared(draw_, map_, shape, piece, color, pale ? 0.2F : 1.0F);
        } else {
            fill_block(draw_, box, with_alpha(color, pale ? 0.18F : 0.92F));
            hatch(box, view_.groups[shape.group], pale ? 0.3F : 0.8F);
        }
        if (index == shape.label_piece && !shape.label.empty()) {
            draw_label(draw_, shape, box, color, pale || (view_.difference && shape.kept < 1));
        }
        if (mouse_ && box.contains(*mouse_)) hovered_ = {&shape, nullptr};
        if (shape.allocation == highlights_.selected) {
            selected_.push_back(&piece);
        } else if (highlights_.family != 0 && shape.family == highlights_.family) {
            siblings_.push_back(&piece);
        }
    }

    ImDrawList* draw_;
    const PlotMap& map_;
    const BlocksView& view_;
    const BlockHighlights& highlights_;
    std::optional<ImVec2> mouse_;
    std::vector<ImU32> colors_;
    HoveredBlock hovered_;
    std::vector<const BlockPiece*> selected_, siblings_;
};

}  // namespace

ImU32 group_color(const profiler::BlockGroup& group) {
    using ColorSource = profiler::BlockGroup::ColorSource;
    switch (group.color_source) {
        case ColorSource::kCategory:
            return category_color(group.category);
        case ColorSource::kNamed:
            return recipe_color(1 + group.number);
        case ColorSource::kRamp:
            return ramp_color(group.share);
        case ColorSource::kOther:
            break;
    }
    return category_color(profiler::Category::kUnknown);
}

void draw_group_legend(const BlocksView& view, float width) {
    const float end = ImGui::GetCursorPosX() + width;
    size_t shown = 0;
    for (const uint8_t index : view.used_groups) {
        const profiler::BlockGroup& group = view.groups[index];
        const std::string label = fit_to(group.label, em(14));
        const float needed = em(1.4F) + text_width(label);
        if (shown > 0 && ImGui::GetCursorPosX() + needed + em(4) > end) break;
        swatch(group_color(group));
        text(label);
        ImGui::SameLine(0, px(12));
        ++shown;
    }
    if (shown < view.used_groups.size()) {
        dim_text("+" + std::to_string(view.used_groups.size() - shown));
        ImGui::SameLine(0, px(12));
    }
}

HoveredBlock draw_blocks(ImDrawList* draw, const PlotMap& map, const BlocksView& view,
                         const BlockHighlights& highlights, std::optional<ImVec2> mouse) {
    const ScopedFont font(fonts().text, kSmallSize);
    BlockPainter painter(draw, map, view, highlights, mouse);
    const HoveredBlock hovered = painter.paint();
    outline(draw, map, view, painter.siblings(), palette().accent, px(1.5F));
    outline(draw, map, view, painter.selected(), palette().text, px(2));
    return hovered;
}

std::optional<double> draw_minimap(const BlocksView& view, const profiler::TimeRange& limits,
                                   const TimeWindow& window, double moment_ns, ImVec2 size) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton("###minimap", size);
    const bool dragged = ImGui::IsItemActive();
    ImGui::SetItemTooltip("The whole capture. Click or drag to move there.");
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(corner, corner + size, palette().plot);
    const auto columns = static_cast<float>(std::max<size_t>(1, view.minimap.size()));
    const auto height = [&](size_t i) {
        return std::round(size.y * static_cast<float>(view.minimap[i] / view.minimap_max_bytes));
    };
    const ImU32 fill = with_alpha(palette().dim, 0.55F);
    for (size_t i = 0; i < view.minimap.size();) {
        size_t end = i + 1;
        while (end < view.minimap.size() && height(end) == height(i)) ++end;
        const float left = corner.x + std::round(size.x * static_cast<float>(i) / columns);
        const float right = corner.x + std::round(size.x * static_cast<float>(end) / columns);
        draw->AddRectFilled({left, corner.y + size.y - height(i)}, {right, corner.y + size.y},
                            fill);
        i = end;
    }
    const double length = std::max(1.0, limits.end_ns - limits.start_ns);
    const auto x = [&](double ns) {
        const double share = std::clamp((ns - limits.start_ns) / length, 0.0, 1.0);
        return corner.x + std::round(static_cast<float>(share) * size.x);
    };
    const float left = x(window.start_ns), right = std::max(x(window.end_ns), left + px(3));
    const ImU32 shade = with_alpha(palette().panel, 0.62F);
    draw->AddRectFilled(corner, {left, corner.y + size.y}, shade);
    draw->AddRectFilled({right, corner.y}, corner + size, shade);
    draw->AddRect({left, corner.y}, {right, corner.y + size.y}, palette().accent, px(2));
    const float at = x(moment_ns);
    draw->AddRectFilled({at, corner.y}, {at + px(1), corner.y + size.y}, palette().text);
    if (!dragged) return std::nullopt;
    const double share =
        std::clamp((ImGui::GetMousePos().x - corner.x) / std::max(1.0F, size.x), 0.0F, 1.0F);
    return limits.start_ns + share * length;
}

}  // namespace app
