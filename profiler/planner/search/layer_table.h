#pragma once

#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/planner/search/layer_recipes.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/layer_profile.h"
#include "profiler/planner/step/step_time.h"

#include <cstdint>
#include <vector>

/// What a layer of a model costs with each of several recipes, at any batch.
namespace profiler {

/// Every choice of gelu, layer_norm, attention and masks that the GPU runs and that leaves the
/// function of the model as it is, the other switches being the workload's. The simplest first.
/// Flash and efficient attention are among them: where attention has dropout they draw other masks
/// from the same distribution. An attention other than the workload's whose times do not compare
/// (`why_not_comparable`) is not.
std::vector<models::Recipe> recipes_of_a_layer(const models::Workload& workload, const Gpu& gpu,
                                               const Calibration& calibration);

/// Which phases wait for the host, so that launches take their time and not kernels.
struct HostBound {
    bool forward = false;
    bool backward = false;
};

class LayerTable {
public:
    /// Two traces, at `batch_size` and twice that, of a step with one layer for each recipe and one
    /// of the workload's own at each end:
    ///
    ///     own | recipes[0] | recipes[1] | ... | own
    ///
    /// Errors: what the source says; batches that ask for different work.
    static models::Result<LayerTable> trace(models::Workload workload,
                                            const std::vector<models::Recipe>& recipes,
                                            int64_t batch_size, const MetaTraceSource& source);

    const std::vector<models::Recipe>& recipes() const { return recipes_; }
    void append(const LayerTable& other);

    /// Bytes and times at a batch; base, least peak and number of layers are the caller's to set.
    LayerProblem problem_at(int64_t batch_size, const TimeModel& model,
                            const HostBound& waits) const;
    /// The places of recipes that no other one beats at this batch.
    std::vector<std::size_t> best_at(int64_t batch_size, const TimeModel& model,
                                     const HostBound& waits) const;

private:
    LayerBytes bytes_at(std::size_t option, int64_t batch_size) const;
    int64_t line(int64_t small, int64_t large, int64_t batch_size) const;

    std::vector<models::Recipe> recipes_;
    int64_t small_batch_ = 0;  // the larger is twice this
    std::vector<LayerBytes> small_, large_;
    std::vector<AffineStep> work_;
    int64_t small_head_bytes_ = 0;
    int64_t large_head_bytes_ = 0;
};

}  // namespace profiler
