#pragma once

#include "profiler/view/kernels/movement_view.h"

#include <imgui.h>

#include <cstddef>
#include <optional>

namespace app {

/// A dot of trace 0 (A) or 1 (B).
struct MovementDotId {
    std::size_t trace = 0;
    std::size_t dot = 0;

    friend bool operator==(const MovementDotId&, const MovementDotId&) = default;
};

/// A rectangle on the axes of the roofline.
struct MovementBox {
    double low_x = 0, high_x = 0;
    double low_y = 0, high_y = 0;

    bool contains(const profiler::MovementDot& dot) const {
        return dot.x >= low_x && dot.x <= high_x && dot.y >= low_y && dot.y <= high_y;
    }
};

/// What the picture shows besides the view.
struct MovementLook {
    ImU32 color_a = 0;
    ImU32 color_b = 0;
    std::optional<MovementBox> box;          // ops outside of it are pale
    std::optional<std::size_t> selected[2];  // rows of A and B that hold the selected call
};

/// Where the picture lies on the screen, kept between frames.
struct MovementPicture {
    ImVec2 corner;
    ImVec2 size;
    std::optional<ImVec2> drag_start;  // of a rectangle that is being drawn

    ImVec2 at(const profiler::MovementView& view, double x, double y) const;
};

/// What the mouse did.
struct MovementInput {
    std::optional<MovementDotId> hovered;
    std::optional<MovementDotId> clicked;
    bool clicked_nothing = false;
    std::optional<MovementBox> box;  // a finished rectangle
};

/// Draws the roofline: a dot for each op, and arrows from A's ops to B's.
MovementInput draw_movement_plot(const profiler::MovementView& view, const MovementLook& look,
                                 ImVec2 size, MovementPicture& picture);

}  // namespace app
