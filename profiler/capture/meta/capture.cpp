#include "profiler/capture/meta/capture.h"

#include "models/training/training.h"
#include "profiler/capture/meta/allocator.h"
#include "profiler/capture/meta/kernels.h"
#include "profiler/capture/published_tempo.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"

#include <optional>

namespace profiler {
namespace {

void describe_workspaces(Recorder& recorder, const MetaKernels& kernels) {
    for (const auto& [name, tensor] : kernels.workspaces().named()) {
        recorder.describe(tensor, name, Category::kWorkspace);
    }
}

}  // namespace

void capture_on_meta(const models::Workload& workload, const MetaTarget& target,
                     const CaptureCallbacks& callbacks, Trace& trace) {
    describe_run(workload,
                 {.source = Source::kPredicted,
                  .time_basis = TimeBasis::kEventOrder,
                  .device_name = "compute capability " + models::to_text(target.capability)},
                 trace);
    // Before the kernels: workspaces, too, are dropped when nobody listens any more.
    MetaAllocator& allocator = MetaAllocator::instance();
    MetaKernels kernels(target.capability);
    std::optional<PublishedTempo> published;
    if (workload.recipe.implementation == models::Implementation::kPublished) {
        published.emplace(c10::DispatchKey::Meta);
    }
    Recorder recorder(trace, {.allocations = &allocator,
                              .device_name = "cuda:0",
                              .time_basis = TimeBasis::kEventOrder,
                              .ops = OpSet::kCuda});
    // Allocations from the first parameter on: what a warm-up leaves behind shapes the memory that
    // the recorded steps find.
    recorder.start_allocations();
    report(callbacks, "building the model", 0, 1);
    models::Training training(workload, at::kMeta, models::Values::kNone);
    warm_up(training, target.warmup_steps, callbacks, &recorder);
    StepWatch watch(callbacks, &recorder, &training);
    recorder.start_ops();
    describe_storages(recorder, training);
    describe_workspaces(recorder, kernels);
    for (int64_t i = 0; i < target.steps; ++i) {
        report(callbacks, "step", i, target.steps);
        recorder.begin_step();
        recorder.end_step(training.step(&watch));
        describe_storages(recorder, training);
        describe_workspaces(recorder, kernels);
        if (callbacks.step_done) callbacks.step_done();
    }
    report(callbacks, "step", target.steps, target.steps);
    recorder.add_note("temporaries_from_sources", Severity::kInfo,
                      "What CUDA's kernels allocate inside an op is taken from PyTorch's sources; "
                      "docs/prediction.md lists what no recording has confirmed.");
    recorder.stop();
    trace.runs.set<&Run::state>(Id<Run>(0), RunState::kComplete);
}

}  // namespace profiler
