#include "profiler/view/planner_pins.h"

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

/// A pin of a much larger step must not press the plan into a corner.
constexpr double kMostGrowth = 2;

double grown(double own, double of_pin, bool has_own) {
    if (!has_own) return of_pin;
    return std::max(own, std::min(of_pin, own * kMostGrowth));
}

double last_of(const std::vector<double>& values) { return values.empty() ? 0 : values.back(); }

}  // namespace

PlannerPin pin_of(const PlannerView& view, std::size_t recipe, int64_t batch_size,
                  std::string detail) {
    return {.recipe = recipe < view.recipes.size() ? view.recipes[recipe] : PlannerRecipe(),
            .detail = std::move(detail),
            .batch_size = batch_size,
            .reading = read_planner(view, recipe, batch_size)};
}

PlannerAxes axes_of(const PlannerView& view, std::span<const PlannerPin> pins) {
    PlannerAxes axes{view.last_batch, view.last_bytes, view.last_rate};
    double batch = static_cast<double>(view.last_batch);
    const bool has_own = std::any_of(view.recipes.begin(), view.recipes.end(),
                                     [](const auto& recipe) { return !recipe.speed_x.empty(); });
    for (const PlannerPin& pin : pins) {
        const PlannerRecipe& recipe = pin.recipe;
        const double fastest = recipe.speed_y.empty() ? 0
                                                      : *std::max_element(recipe.speed_y.begin(),
                                                                          recipe.speed_y.end());
        batch = std::max(batch, grown(static_cast<double>(view.last_batch),
                                      1.05 * last_of(recipe.speed_x), has_own));
        axes.last_rate = std::max(axes.last_rate, grown(view.last_rate, 1.1 * fastest, has_own));
    }
    axes.last_batch = static_cast<int64_t>(batch);
    return axes;
}

}  // namespace profiler
