#include "app/commands/worker/measured_trials.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/terminal.h"
#include "profiler/protocol/turn_taking.h"

#include <utility>

namespace app {
namespace {

using profiler::TriedBatch;
using profiler::TriedBatches;

constexpr int64_t kMostBatch = 4096;  // as a sweep

/// The batch of a request for one batch.
models::Result<TriedBatches> only_batch(const profiler::ResultFrame& result) {
    auto tried = profiler::tried_batches_from_json(result.summary);
    if (tried && tried->batches.size() != 1) {
        return models::fail("The worker answered for {} batches instead of one.",
                            tried->batches.size());
    }
    return tried;
}

}  // namespace

profiler::Request trial_request(const models::Workload& workload, const TrialOptions& options) {
    return {.kind = profiler::RequestKind::kTryBatches,
            .workload = models::to_json(workload),
            .device = options.device,
            .memory_limit_bytes = options.memory_limit_bytes,
            .warmup_steps = options.warmup_steps,
            .steps = options.steps,
            .batch_sizes = {workload.batch_size}};
}

models::Result<MeasuredTrials> MeasuredTrials::start(models::Workload workload,
                                                     TrialOptions options) {
    auto worker = profiler::WorkerClient::start();
    if (!worker) return tl::unexpected(worker.error());
    return MeasuredTrials(std::move(*worker), std::move(workload), std::move(options));
}

MeasuredTrials::MeasuredTrials(profiler::WorkerClient worker, models::Workload workload,
                               TrialOptions options)
    : worker_(std::move(worker)), workload_(std::move(workload)), options_(std::move(options)) {}

models::Result<profiler::RecipeTrial> MeasuredTrials::try_recipe(const models::LayerRecipes& recipe,
                                                                 int64_t likely) {
    models::Workload workload = with_recipe(workload_, recipe);
    const auto try_one = [&](int64_t batch_size) {
        workload.batch_size = batch_size;
        return try_batch(workload);
    };
    return profiler::try_batches(try_one, likely, kMostBatch);
}

models::Result<profiler::BatchTrial> MeasuredTrials::try_batch(const models::Workload& workload) {
    ++num_batches_;
    const auto outcome = worker_.run(trial_request(workload, options_));
    if (!outcome) return tl::unexpected(to_error(outcome.error()));
    const auto tried = only_batch(*outcome);
    if (!tried) return tl::unexpected(tried.error());
    if (!tried->device_name.empty()) {
        device_name_ = tried->device_name;
        device_memory_bytes_ = tried->memory_bytes;
    }
    const TriedBatch& batch = tried->batches.front();
    if (!batch.fits) return profiler::BatchTrial{};
    if (batch.median_ns() <= 0) {
        return models::fail("The worker answered without step times: it is of another build.");
    }
    return profiler::BatchTrial{
        .fits = true,
        .step_time_ns = batch.median_ns(),
        .sequences_per_s = models::sequences_per_s(workload, batch.median_ns())};
}

tl::expected<std::vector<std::optional<int64_t>>, Failure> time_in_turn(
    const std::vector<models::Workload>& workloads, const TrialOptions& options) {
    std::vector<profiler::Request> requests;
    for (const models::Workload& workload : workloads) {
        requests.push_back(trial_request(workload, options));
    }
    profiler::TurnTaking workers(std::move(requests));
    const CancelOnInterrupt cancel(workers);
    Progress progress;
    std::vector<std::optional<int64_t>> times_ns(workloads.size());
    std::optional<models::Error> unclear;
    const auto done =
        workers.run({.started = {},
                     .progress =
                         [&](std::size_t index, const profiler::Progress&) {
                             progress.update(-1, fmt::format("steps in turn: {}",
                                                             workloads[index].recipe_name));
                         },
                     .sample = {},
                     .ended =
                         [&](std::size_t index, const profiler::WorkerOutcome& outcome) {
                             if (!outcome) return;
                             const auto tried = only_batch(*outcome);
                             if (!tried) {
                                 unclear = tried.error();
                             } else if (tried->batches.front().fits) {
                                 times_ns[index] = tried->batches.front().median_ns();
                             }
                         },
                     .split = &print_error});
    if (!done) return failed(to_error(done.error()));
    if (unclear) return failed(*unclear);
    return times_ns;
}

}  // namespace app
