#include "profiler/capture/cuda/predicted_step.h"

#include "models/training/training.h"
#include "profiler/capture/cuda/cuda_allocations.h"
#include "profiler/capture/cuda/launch_recorder.h"
#include "profiler/capture/cuda/published_tempo.h"
#include "profiler/capture/cuda/torch_state.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAGuard.h>

#include <cuda_runtime_api.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace profiler {
namespace {

/// "compute capability 8.0". Throws std::invalid_argument for an index without a GPU.
std::string describe_gpu(int64_t index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, static_cast<int>(index)) != cudaSuccess) {
        throw std::invalid_argument("this process has no virtual GPU " + std::to_string(index));
    }
    return "compute capability " + models::to_text({properties.major, properties.minor});
}

}  // namespace

void record_predicted_step(const models::Workload& workload, const PredictedStepOptions& options,
                           const CaptureCallbacks& callbacks, Trace& trace) {
    describe_run(workload,
                 {.source = Source::kPredicted,
                  .time_basis = TimeBasis::kEventOrder,
                  .device_name = describe_gpu(options.gpu_index)},
                 trace);
    CudaAllocations::require_native();
    at::globalContext().lazyInitDevice(c10::kCUDA);
    const auto index = static_cast<c10::DeviceIndex>(options.gpu_index);
    const c10::cuda::CUDAGuard guard(index);
    set_up_torch(workload, index);
    forget_earlier_training();
    std::optional<PublishedTempo> published;
    if (workload.recipe.implementation == models::Implementation::kPublished) {
        published.emplace();
    }
    StreamRows streams(trace, trace.devices.append({.name = trace.strings.intern("cuda:0")}));
    CudaAllocations allocations(trace, streams, index, AllocatorActions::kRequests);
    std::optional<LaunchRecorder> launches;
    if (options.records_kernels) launches.emplace();
    Recorder recorder(trace, {.allocations = &allocations,
                              .device = streams.device(),
                              .time_basis = TimeBasis::kEventOrder,
                              .ops = OpSet::kCuda,
                              .observer = launches ? &*launches : nullptr});
    recorder.start_allocations();
    report(callbacks, "building the model", 0, 1);
    models::Training training(workload, at::Device(at::kCUDA, index), models::Values::kNone);
    warm_up(training, options.warmup_steps, callbacks, &recorder);
    StepWatch watch(callbacks, &recorder, &training);
    recorder.start_ops();
    if (launches) launches->start();
    describe_memory(recorder, training, index);
    report(callbacks, "step", 0, 1);
    recorder.begin_step();
    training.step(&watch);
    recorder.end_step(0);
    describe_memory(recorder, training, index);
    if (callbacks.step_done) callbacks.step_done();
    report(callbacks, "step", 1, 1);
    recorder.stop();
    if (launches) launches->add_to(trace, streams);
    trace.runs.set<&Run::state>(Id<Run>(0), RunState::kComplete);
}

}  // namespace profiler
