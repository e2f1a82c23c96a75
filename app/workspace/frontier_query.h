#pragma once

#include "profiler/view/recipe_frontier_view.h"

#include <string>

namespace app {

/// What the Recipe frontier shows, of the same step as the Planner.
struct FrontierQuery {
    profiler::FrontierAxis axis = profiler::FrontierAxis::kPeakMemory;
    std::string from;  // the dots that the user selected, as canonical recipes; empty: none
    std::string to;
    bool is_drawn = false;  // the panel has been drawn; before that nothing is planned

    friend bool operator==(const FrontierQuery&, const FrontierQuery&) = default;
};

}  // namespace app
