#pragma once

#include "profiler/view/planner_view.h"
#include "profiler/view/quantity_names.h"

#include <array>
#include <utility>

/// The columns that the recipes of the Planner and its pins have in common.
namespace app {

inline constexpr int kNumFigureColumns = 5;
/// Title and share of the width; before them stands the recipe.
inline constexpr std::array<std::pair<const char*, float>, kNumFigureColumns - 1> kFigureColumns{
    {{profiler::kLargestBatch, 1.75F},
     {profiler::kPeakOnGpu, 2.15F},
     {"Step", 1.05F},
     {"Seq/s", 0.85F}}};

/// The table must have ImGuiTableFlags_SizingStretchProp.
void set_up_figure_columns();
/// Fills the cells at the right of the recipe.
void draw_figure_cells(const profiler::PlannerRecipe& recipe,
                       const profiler::PlannerReading& reading);

}  // namespace app
