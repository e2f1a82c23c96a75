#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/progress.h"
#include "models/config/workload.h"
#include "profiler/planner/search/measured_search.h"
#include "profiler/protocol/tried_batches.h"
#include "profiler/protocol/worker_client.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Steps of a workload with many recipes, for the searches of `sweep --auto`.
namespace app {

struct TrialOptions {
    std::string device = "cpu";  // or "cuda", or "auto"
    int64_t memory_limit_bytes = -1;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
};

/// Trains steps in one worker. `cancel` may be called from a signal handler.
class MeasuredTrials {
public:
    static models::Result<MeasuredTrials> start(models::Workload workload, TrialOptions options);

    /// The largest batch of a recipe, and the median step time at each batch that was tried.
    models::Result<profiler::RecipeTrial> try_recipe(const models::LayerRecipes& recipe,
                                                     int64_t likely);
    void cancel() { worker_.cancel(); }

    int64_t num_batches() const { return num_batches_; }  // that were tried so far
    const std::string& device_name() const { return device_name_; }
    int64_t device_memory_bytes() const { return device_memory_bytes_; }  // 0: not known

private:
    MeasuredTrials(profiler::WorkerClient worker, models::Workload workload, TrialOptions options);
    models::Result<profiler::BatchTrial> try_batch(const models::Workload& workload);

    profiler::WorkerClient worker_;
    models::Workload workload_;
    TrialOptions options_;
    int64_t num_batches_ = 0;
    std::string device_name_;
    int64_t device_memory_bytes_ = 0;
};

/// The request for steps of a workload at its batch size.
profiler::Request trial_request(const models::Workload& workload, const TrialOptions& options);

/// Median step times of several workloads at their batch sizes, in the same order, from steps that
/// take turns: if the machine's speed drifts, it slows all of them alike. Empty: out of memory.
tl::expected<std::vector<std::optional<int64_t>>, Failure> time_in_turn(
    const std::vector<models::Workload>& workloads, const TrialOptions& options);

}  // namespace app
