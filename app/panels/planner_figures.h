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
    {{profiler::kLargestBatch, 1.65F},
     {profiler::kPeakOnGpu, 1.95F},
     {"Step", 1.05F},
     {"Seq/s", 0.85F}}};

/// Of a table with ImGuiTableFlags_SizingStretchProp.
void set_up_figure_columns();
/// The cells behind the recipe's.
void draw_figure_cells(const profiler::PlannerRecipe& recipe,
                       const profiler::PlannerReading& reading);

}  // namespace app
