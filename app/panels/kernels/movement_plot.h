#pragma once

#include "profiler/charts/roofline_chart.h"
#include "profiler/view/kernels/movement_view.h"

#include <imgui.h>

#include <optional>

namespace app {

/// Where the picture lies on the screen, kept between frames.
struct MovementPicture {
    ImVec2 corner;
    ImVec2 size;
    std::optional<ImVec2> drag_start;  // of a rectangle that is being drawn

    ImVec2 at(const profiler::MovementView& view, double x, double y) const;
};

/// What the mouse did.
struct MovementInput {
    std::optional<profiler::RooflineDotId> hovered;
    std::optional<profiler::RooflineDotId> clicked;
    bool clicked_nothing = false;
    std::optional<profiler::RooflineBox> box;  // a finished rectangle
};

/// Draws the roofline with its legend. `overlay` gets the dot under the mouse.
MovementInput draw_movement_plot(const profiler::MovementView& view,
                                 profiler::RooflineOverlay overlay, ImVec2 size,
                                 MovementPicture& picture);

}  // namespace app
