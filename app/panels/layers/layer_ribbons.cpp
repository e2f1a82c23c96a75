#include "app/panels/layers/layer_ribbons.h"

#include "app/widgets/theme.h"

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::Hatch;
using profiler::LayerRibbon;
using profiler::LayerView;
using profiler::Presence;
using Span = RibbonSpan;

/// From 0 to 1 with level ends, so that ribbons leave and reach the boxes upright.
float ease(float t) { return t * t * (3 - 2 * t); }

/// Edges of a part of a ribbon, from top to bottom.
struct Outline {
    std::vector<ImVec2> left;
    std::vector<ImVec2> right;
};

Outline trace_outline(const LayerPicture& picture, const LayerRibbon& ribbon, float from,
                      float to) {
    const float shift = std::abs(picture.x(ribbon.top_left) - picture.x(ribbon.bottom_left));
    const int steps = shift < 0.5F ? 1 : std::clamp(static_cast<int>(shift / 3), 12, 48);
    Outline outline;
    for (int i = 0; i <= steps; ++i) {
        const float y = picture.top + (picture.bottom - picture.top) * static_cast<float>(i) /
                                          static_cast<float>(steps);
        Span span = span_at(picture, ribbon, y).part(from, to);
        if (span.width() < px(1)) span.right = span.left + px(1);
        outline.left.push_back({span.left, y});
        outline.right.push_back({span.right, y});
    }
    return outline;
}

/// Neighbouring pieces share an edge, which smoothing would draw twice.
void fill(ImDrawList* draw, const Outline& outline, ImU32 color) {
    const ImDrawFlags flags = draw->Flags;
    draw->Flags &= ~ImDrawFlags_AAFill;
    for (size_t i = 0; i + 1 < outline.left.size(); ++i) {
        draw->AddQuadFilled(outline.left[i], outline.right[i], outline.right[i + 1],
                            outline.left[i + 1], color);
    }
    draw->Flags = flags;
}

void stroke(ImDrawList* draw, const Outline& outline, ImU32 color, float width) {
    for (const auto* edge : {&outline.left, &outline.right}) {
        draw->AddPolyline(edge->data(), static_cast<int>(edge->size()), color, width);
    }
}

/// Dashes of equal length along both edges.
void dash(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon, float from,
          float to, ImU32 color, float width) {
    const float length = px(6), gap = px(4);
    for (float y = picture.top; y < picture.bottom; y += length + gap) {
        const float end = std::min(y + length, picture.bottom);
        const Span above = span_at(picture, ribbon, y).part(from, to);
        const Span below = span_at(picture, ribbon, end).part(from, to);
        draw->AddLine({above.left, y}, {below.left, end}, color, width);
        if (above.width() < px(3)) continue;
        draw->AddLine({above.right, y}, {below.right, end}, color, width);
    }
}

/// The category's pattern, bent along the ribbon.
void draw_hatch(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon,
                float from, float to, ImU32 ink) {
    const Hatch hatch = profiler::hatch_of(ribbon.category);
    const float spacing = px(9);
    const float width = span_at(picture, ribbon, picture.top).part(from, to).width();
    if (hatch == Hatch::kNone || width < px(5)) return;
    const auto line = [&](float y_left, float y_right) {
        const float low = std::min(y_left, y_right), high = std::max(y_left, y_right);
        if (high < picture.top || low > picture.bottom) return;
        // Cut at the ends of the ribbon.
        const auto at = [&](float y) {
            return high > low ? (y - y_left) / (y_right - y_left) : 0.0F;
        };
        float first = 0, last = 1;
        if (high > low) {
            const float a = at(picture.top), b = at(picture.bottom);
            first = std::clamp(std::min(a, b), 0.0F, 1.0F);
            last = std::clamp(std::max(a, b), 0.0F, 1.0F);
        }
        const auto point = [&](float share) {
            const float y = y_left + (y_right - y_left) * share;
            const Span span = span_at(picture, ribbon, y).part(from, to);
            return ImVec2{span.left + span.width() * share, y};
        };
        draw->AddLine(point(first), point(last), ink, px(1));
    };
    const bool is_level =
        hatch == Hatch::kHorizontal || hatch == Hatch::kGrid || hatch == Hatch::kBricks;
    const float rise = is_level ? 0 : width;
    for (float y = picture.top - rise; y <= picture.bottom + rise; y += spacing) {
        if (hatch != Hatch::kBackDiagonal) line(y, y - rise);
        if (hatch == Hatch::kBackDiagonal || hatch == Hatch::kCross) line(y - rise, y);
    }
}

// ---- parts ----------------------------------------------------------------------------------

struct Ink {
    ImU32 color = 0;
    float strength = 1;

    ImU32 at(float alpha) const { return with_alpha(color, alpha * strength); }
};

void draw_solid(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon,
                float from, float to, const Ink& ink, float alpha) {
    const Outline outline = trace_outline(picture, ribbon, from, to);
    fill(draw, outline, ink.at(alpha));
    draw_hatch(draw, picture, ribbon, from, to, with_alpha(palette().plot, 0.22F * ink.strength));
    stroke(draw, outline, ink.at(std::min(1.0F, alpha + 0.25F)), px(1));
}

void draw_ghost(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon,
                float from, float to, const Ink& ink, const RibbonStyle& style) {
    // What was there fades to its outline.
    const float rest = style.is_hovered || style.is_picked ? 0.22F : 0.07F;
    const float left_over = 0.62F * (1 - style.arrived) + rest;
    fill(draw, trace_outline(picture, ribbon, from, to), ink.at(left_over));
    dash(draw, picture, ribbon, from, to, ink.at(0.85F), px(1.25F));
}

void draw_new(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon, float from,
              float to, const Ink& ink, float arrived) {
    const float middle = (from + to) / 2, half = (to - from) / 2 * std::max(arrived, 0.05F);
    const Outline outline = trace_outline(picture, ribbon, middle - half, middle + half);
    fill(draw, outline, ink.at(1));
    draw_hatch(draw, picture, ribbon, middle - half, middle + half,
               with_alpha(palette().plot, 0.16F * ink.strength));
    stroke(draw, outline, with_alpha(palette().text, 0.9F * ink.strength), px(1.5F));
}

/// How much of the width both traces save.
float common_share(const LayerRibbon& ribbon) {
    const auto [first, second] = ribbon.bytes;
    const int64_t most = std::max(first, second);
    if (ribbon.presence != Presence::kChanged || most <= 0) return 1;
    return static_cast<float>(std::min(first, second)) / static_cast<float>(most);
}

}  // namespace

RibbonSpan span_at(const LayerPicture& picture, const LayerRibbon& ribbon, float y) {
    const float t =
        ease(std::clamp((y - picture.top) / (picture.bottom - picture.top), 0.0F, 1.0F));
    const auto mix = [&](double from, double to) {
        return picture.x(from + (to - from) * static_cast<double>(t));
    };
    return {mix(ribbon.top_left, ribbon.bottom_left), mix(ribbon.top_right, ribbon.bottom_right)};
}

void draw_ribbon(ImDrawList* draw, const LayerPicture& picture, const LayerRibbon& ribbon,
                 const RibbonStyle& style) {
    const Ink ink{category_color(ribbon.category), style.strength};
    const float alpha = style.is_hovered || style.is_picked ? 0.90F : 0.62F;
    const float common = common_share(ribbon);
    switch (ribbon.presence) {
        case Presence::kDisappeared:
            draw_ghost(draw, picture, ribbon, 0, 1, ink, style);
            break;
        case Presence::kAdded:
            draw_new(draw, picture, ribbon, 0, 1, ink, style.arrived);
            break;
        case Presence::kSame:
        case Presence::kChanged:
            draw_solid(draw, picture, ribbon, 0, common, ink, alpha);
            if (common >= 1) break;
            if (ribbon.bytes[0] > ribbon.bytes[1]) {
                draw_ghost(draw, picture, ribbon, common, 1, ink, style);
            } else {
                draw_new(draw, picture, ribbon, common, 1, ink, style.arrived);
            }
            break;
    }
    if (style.is_hovered || style.is_picked) {
        stroke(draw, trace_outline(picture, ribbon, 0, 1), palette().accent,
               px(style.is_picked ? 2.0F : 1.5F));
    }
}

ImVec2 middle_of(const LayerPicture& picture, const LayerRibbon& ribbon) {
    const float y = (picture.top + picture.bottom) / 2;
    return {span_at(picture, ribbon, y).middle(), y};
}

std::optional<size_t> ribbon_at(const LayerPicture& picture, const LayerView& view, ImVec2 point) {
    if (point.y < picture.top || point.y > picture.bottom) return std::nullopt;
    for (size_t i = view.ribbons.size(); i-- > 0;) {
        const Span span = span_at(picture, view.ribbons[i], point.y);
        // A hairline can be pointed at too.
        const float more = std::max(0.0F, (px(6) - span.width()) / 2);
        if (point.x >= span.left - more && point.x <= span.right + more) return i;
    }
    return std::nullopt;
}

}  // namespace app
