#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/search/layer_recipes.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/layer_profile.h"
#include "profiler/planner/step/step_time.h"

#include <cstdint>
#include <vector>

/// The cost of one layer with each of several recipes, at any batch size.
namespace profiler {

/// Every recipe that a layer may have on this GPU: each switch has the values that the search tries
/// in each combination (models::Search::kAlways) and the workload's own. All recipes compute the
/// same function. Fused attention draws other dropout masks from the same distribution. Leaves out
/// an attention whose times cannot be compared with those of the workload's (`why_not_comparable`).
std::vector<models::Recipe> recipes_of_a_layer(const models::Workload& workload, const Gpu& gpu,
                                               const Calibration& calibration);

/// A recipe with the values that the search tries on top of the best ones
/// (models::Search::kOnBest): each alone, and together. Without the recipe itself.
std::vector<models::Recipe> recipes_on_top_of(const models::Recipe& recipe);

/// The phases in which the GPU waits for the host: their time is the time of the launches.
struct HostBound {
    bool forward = false;
    bool backward = false;
};

class LayerTable {
public:
    /// Traces a step at `batch_size` and at twice that. The step has one layer for each recipe, and
    /// one with the workload's own recipe at each end:
    ///
    ///     own | recipes[0] | recipes[1] | ... | own
    ///
    /// Errors: as the source; or the two batch sizes run different ops.
    static models::Result<LayerTable> trace(StepToTrace step,
                                            const std::vector<models::Recipe>& recipes,
                                            int64_t batch_size, const StepSource& source);

    const std::vector<models::Recipe>& recipes() const { return recipes_; }
    void append(const LayerTable& other);

    /// Bytes and times at a batch size. The caller sets base, least peak and number of layers.
    LayerProblem problem_at(int64_t batch_size, const TimeModel& model,
                            const HostBound& waits) const;
    /// Indices of the recipes that no other recipe beats at this batch size.
    std::vector<std::size_t> best_at(int64_t batch_size, const TimeModel& model,
                                     const HostBound& waits) const;

private:
    LayerBytes bytes_at(std::size_t option, int64_t batch_size) const;
    int64_t line(int64_t small, int64_t large, int64_t batch_size) const;

    std::vector<models::Recipe> recipes_;
    int64_t small_batch_ = 0;  // the larger batch is twice this
    std::vector<LayerBytes> small_, large_;
    std::vector<AffineOps> work_;
    int64_t small_head_bytes_ = 0;
    int64_t large_head_bytes_ = 0;
};

}  // namespace profiler
