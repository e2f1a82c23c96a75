#pragma once

#include "profiler/view/recipe_frontier_view.h"

#include <cstddef>
#include <optional>
#include <string>

namespace app {

/// What the column beside the picture describes.
struct FrontierSide {
    std::string limit_text;  // "within 16.0 GiB"
    std::optional<size_t> best;
    std::optional<size_t> from;  // ends of the path
    std::optional<size_t> to;
    bool can_show_as_b = false;
};

struct FrontierSideInput {
    std::optional<size_t> show_as_b;
    std::optional<size_t> capture;
    bool forget_selection = false;
};

/// The fastest recipe within the limit, the path between two dots, and what was measured.
FrontierSideInput draw_frontier_side(const profiler::RecipeFrontierView& view,
                                     const profiler::RecipePath& path, const FrontierSide& side,
                                     bool has_selection);

/// What a dot is and needs, in a tooltip.
void draw_dot_tooltip(const profiler::RecipeFrontierView& view, size_t dot);

}  // namespace app
