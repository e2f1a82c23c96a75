#pragma once

#include "models/config/layer_recipes.h"
#include "profiler/planner/plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// AutoTempo's searches: which layers get which technique, found by running steps instead of by a
/// model of their memory and time. Source: `autotempo/` of Tempo's repository, whose two modes are
/// called fast and smart there. What is done otherwise here, and why, is in docs/dev/planner.md.
///
/// A search moves layers from one recipe to another. The switches in which the two differ are the
/// techniques. The first k layers get a technique and the others do not, with a k of its own for
/// each technique, as in AutoTempo.
namespace profiler {

struct ConversionSpace {
    models::Recipe from;  // AutoTempo: original
    models::Recipe to;    // AutoTempo: tempo
    int64_t num_layers = 0;
};

/// The techniques, each as the text of a switch: "gelu=in_place". Errors: the recipes are equal, or
/// differ in a switch of the whole step.
models::Result<std::vector<std::string>> techniques_of(const ConversionSpace& space);

/// For each technique, how many layers have it, counted from the first layer.
using LayerCounts = std::vector<int64_t>;
models::LayerRecipes recipe_of(const ConversionSpace& space,
                               const std::vector<std::string>& techniques,
                               const LayerCounts& counts);

/// What steps with one recipe gave.
struct MeasuredRecipe {
    LayerCounts counts;
    models::LayerRecipes recipe;
    int64_t max_batch_size = 0;    // that fits; 0: none does
    std::vector<PlanPoint> curve;  // by rising batch, only batches that fit

    /// The batch with the highest throughput; null if no batch fits.
    const PlanPoint* best() const;
    double sequences_per_s() const;  // at the best batch; 0 if none fits
};

/// Null: the batch does not fit.
using MeasureBatch = std::function<models::Result<std::optional<PlanPoint>>(int64_t batch_size)>;

/// The largest batch that fits, and the time at each batch that was tried on the way. `likely` is
/// the largest batch of a similar recipe, where the search begins; 0: not known, then it tries 1,
/// 2, 4, ... and bisects. The recipe and its counts stay empty. Errors: those of `measure_batch`; a
/// batch that does not fit is no error.
models::Result<MeasuredRecipe> measure_batches(const MeasureBatch& measure_batch, int64_t likely,
                                               int64_t most);

using MeasureRecipe =
    std::function<models::Result<MeasuredRecipe>(const models::LayerRecipes&, int64_t likely)>;

struct MeasuredSearch {
    std::vector<MeasuredRecipe> tried;  // in order; the first is `from` in all layers
    std::size_t chosen = 0;             // of `tried`
    std::string why;                    // one sentence
};

/// A recipe replaces another one only if it trains this much faster: less is noise.
inline constexpr double kLeastGain = 0.01;
/// Throughput still rises with the batch if a step takes less than this share of the time that a
/// proportional step would take, over each of the last two doublings. AutoTempo's constant.
inline constexpr double kUnsaturatedTimeShare = 0.85;

/// All layers or none. Tries `from`. If its throughput still rises with the batch, tries `to` and
/// keeps the faster one.
models::Result<MeasuredSearch> search_fast(const ConversionSpace& space,
                                           const MeasureRecipe& measure_recipe);

/// A number of layers for each technique: the faster of `from` and `to` first, then for one
/// technique after the other a bisection over its number of layers.
models::Result<MeasuredSearch> search_smart(const ConversionSpace& space,
                                            const MeasureRecipe& measure_recipe);

}  // namespace profiler
