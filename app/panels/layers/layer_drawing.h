#pragma once

#include "app/panels/layers/layer_ribbons.h"
#include "profiler/view/layers/layer_view.h"

#include <imgui.h>

#include <optional>
#include <vector>

/// The picture of the Layer explorer: two lanes of boxes with ribbons between them.
namespace app {

/// What is under the mouse.
struct LayerHit {
    std::optional<size_t> ribbon;
    std::optional<size_t> column;  // a box
    bool in_backward = false;

    explicit operator bool() const { return ribbon || column; }
};

/// What stands out in this frame.
struct LayerHighlights {
    LayerHit hovered;
    std::optional<size_t> picked_ribbon;
    profiler::FlowPlace picked_call;
    std::optional<profiler::Category> category;
    std::vector<float> arrived;  // of each ribbon (RibbonStyle)
};

LayerPicture lay_out_picture(ImVec2 corner, ImVec2 size);
LayerHit hit_at(const profiler::LayerView& view, const LayerPicture& picture, ImVec2 point);
void draw_layer_picture(ImDrawList* draw, const profiler::LayerView& view,
                        const LayerPicture& picture, const LayerHighlights& highlights);

}  // namespace app
