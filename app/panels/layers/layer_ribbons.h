#pragma once

#include "profiler/view/layers/layer_view.h"

#include <imgui.h>

#include <optional>

/// The ribbons of the Layer explorer: their shapes, and which one is under the mouse.
namespace app {

/// Where the picture lies on the screen. Ribbons run from `top` to `bottom`, between the boxes.
struct LayerPicture {
    ImVec2 corner;
    ImVec2 size;
    float box_height = 0;
    float top = 0;
    float bottom = 0;

    float x(double share) const { return corner.x + static_cast<float>(share) * size.x; }
    bool has_room() const { return bottom - top > 8 && size.x > 40; }
};

/// Left and right edge of a ribbon at a height, in pixels.
struct RibbonSpan {
    float left = 0;
    float right = 0;

    float middle() const { return (left + right) / 2; }
    float width() const { return right - left; }
    /// The part between two shares of the width.
    RibbonSpan part(float from, float to) const {
        return {left + width() * from, left + width() * to};
    }
};
RibbonSpan span_at(const LayerPicture& picture, const profiler::LayerRibbon& ribbon, float y);

/// How one ribbon looks in this frame.
struct RibbonStyle {
    float strength = 1;  // below 1: something else is in focus
    bool is_hovered = false;
    bool is_picked = false;
    float arrived = 1;  // 0 to 1: how far the ribbon has changed into what it is now
};

void draw_ribbon(ImDrawList* draw, const LayerPicture& picture, const profiler::LayerRibbon& ribbon,
                 const RibbonStyle& style);

/// The ribbon at a point, small ones first, because they lie on top.
std::optional<size_t> ribbon_at(const LayerPicture& picture, const profiler::LayerView& view,
                                ImVec2 point);

/// A point on the ribbon, halfway between the lanes.
ImVec2 middle_of(const LayerPicture& picture, const profiler::LayerRibbon& ribbon);

}  // namespace app
