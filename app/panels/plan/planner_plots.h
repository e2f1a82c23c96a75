#pragma once

#include "profiler/view/plan/planner_view.h"

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace app {

struct PlannerOverlay {
    int64_t batch_size = 1;                      // the cursor
    std::string focus;                           // the recipe that is drawn bold
    std::span<const profiler::PlannerPin> pins;  // their curves are drawn dim
    std::span<const std::size_t> colors;         // of the recipes, for recipe_color
};

/// Memory against the batch, and below it throughput on the same axis. Returns the batch to which
/// the user dragged the cursor.
std::optional<int64_t> draw_planner_plots(const profiler::PlannerView& view,
                                          const PlannerOverlay& overlay, ImVec2 size);

}  // namespace app
