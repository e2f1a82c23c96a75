#pragma once

#include "profiler/planner/plan.h"

#include <cstddef>
#include <string>
#include <vector>

/// Every recipe that a whole step may have on a GPU. The recipe search mixes them layer by layer
/// (auto_plan.h); here each recipe holds for all layers.
namespace profiler {

struct RefusedRecipe {
    std::string name;
    std::string why;
};

struct StepRecipes {
    /// The presets first, then each combination of the values that the search always tries. Each
    /// recipe stands once.
    std::vector<models::Recipe> recipes;
    std::size_t num_presets = 0;         // the first of `recipes`
    std::vector<RefusedRecipe> refused;  // presets that the GPU or the workload does not allow
};

/// All recipes have the optimizer of the workload; its other switches do not matter.
StepRecipes recipes_of_a_step(const models::Workload& workload, const Gpu& gpu,
                              const Calibration& calibration);

/// What the search tries on top of `best`, recipes of a step, where the GPU runs it.
std::vector<models::Recipe> recipes_on_top_of(const std::vector<models::Recipe>& best,
                                              const models::Workload& workload, const Gpu& gpu);

inline constexpr int kMostSwitches = 6;
/// The recipes between two: each switch in which they differ has the value of one or of the other,
/// whether or not the values go together. Without the two. Empty if they differ in more than
/// kMostSwitches.
std::vector<models::Recipe> recipes_between(const models::Recipe& from, const models::Recipe& to);

/// The recipe that most layers have, of equals the first: that of everything outside the layers.
models::Recipe most_frequent(const std::vector<models::Recipe>& layers);

}  // namespace profiler
