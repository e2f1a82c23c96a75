#pragma once

#include "profiler/view/planner_view.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// Plans that the user keeps in sight while others are made.
namespace profiler {

inline constexpr std::size_t kMostPins = 4;

/// One recipe of a plan, with its figures at the batch where it was pinned.
struct PlannerPin {
    PlannerRecipe recipe;    // its curves go on in the plots
    std::string detail;      // "bert-large, 24 layers, S 512, fp32, NVIDIA T4"
    int64_t batch_size = 1;  // of the figures
    PlannerReading reading;  // at that batch
};

/// `detail` says what the recipe was planned for. `recipe` is an index into view.recipes.
PlannerPin pin_of(const PlannerView& view, std::size_t recipe, int64_t batch_size,
                  std::string detail);

/// Ends of the axes, so that a plan and its pins can be seen.
struct PlannerAxes {
    int64_t last_batch = 8;
    double last_bytes = 1;
    double last_rate = 1;
};
PlannerAxes axes_of(const PlannerView& view, std::span<const PlannerPin> pins);

}  // namespace profiler
