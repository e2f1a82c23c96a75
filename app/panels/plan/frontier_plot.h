#pragma once

#include "profiler/view/plan/recipe_frontier_view.h"

#include <imgui.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace app {

/// What the picture shows besides the view.
struct FrontierOverlay {
    double limit = 0;        // bytes, or the batch that is wanted
    std::string limit_text;  // "16.0 GiB"
    std::optional<size_t> best;
    std::vector<size_t> path;  // dots from one end to the other
    ImU32 color_a = 0;
    ImU32 color_b = 0;
};

/// Where the picture lies on the screen, kept between frames.
struct FrontierPicture {
    ImVec2 corner;
    ImVec2 size;
    double first_y = 0;  // of the axis: the view's, or beyond where texts need the room
    double last_y = 0;
    float limit_x = 0;         // of the line that is dragged
    bool is_dragging = false;  // that line

    /// The middle of a dot.
    ImVec2 at(const profiler::RecipeFrontierView& view, size_t dot) const;
};

/// What the mouse did.
struct FrontierInput {
    std::optional<size_t> hovered;
    std::optional<size_t> clicked;
    std::optional<size_t> double_clicked;
    bool clicked_nothing = false;
    std::optional<double> limit;  // where the user dragged it
};

/// Draws dots, frontier, ceilings and the limit.
FrontierInput draw_frontier_plot(const profiler::RecipeFrontierView& view,
                                 const FrontierOverlay& overlay, ImVec2 size,
                                 FrontierPicture& picture);

}  // namespace app
