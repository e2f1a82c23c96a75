#include "profiler/capture/cuda/predicted_step.h"

#include "models/training/training.h"
#include "profiler/capture/cuda/activity_join.h"
#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/cuda/cupti_session.h"
#include "profiler/capture/cuda/gpu_notes.h"
#include "profiler/capture/cuda/published_tempo.h"
#include "profiler/capture/cuda/torch_state.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/torch_adapter/cuda_allocations.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAGuard.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace profiler {
namespace {

/// The kernels that ops launch, without their times: for a virtual GPU, which has none.
class LaunchRecorder final : public RunObserver {
public:
    LaunchRecorder() {
        auto session = CuptiSession::open();
        if (session) {
            cupti_ = std::move(*session);
        } else {
            problem_ = session.error().message;
        }
    }

    /// Records launches from here on.
    void start() {
        if (!cupti_) return;
        if (const auto ok = cupti_->record_work(); !ok) {
            problem_ = ok.error().message;
            cupti_.reset();
        }
    }

    /// Adds the launches so far to `trace`, in their order and with the ops of `trace` that made
    /// them; their times stay unknown (-1). All work is taken for the default stream's. Where CUPTI
    /// refused or lost something, a diagnostic says so.
    void add_to(Trace& trace, StreamRows& streams) {
        ActivityRecords records;
        if (cupti_) records = cupti_->finish();
        add_gpu_notes({.cupti_problem = problem_,
                       .dropped_records = records.dropped_records,
                       .unknown_records = records.unknown_records,
                       .broken_buffers = records.broken_buffers},
                      {}, 0, trace);
        ActivityRecords launches;
        launches.kernels = std::move(records.kernels);
        launches.op_correlations = std::move(records.op_correlations);
        const std::size_t first = trace.kernels.size();
        ActivityJoin join(trace, streams,
                          {.stream_handle = [](uint32_t, uint32_t) { return int64_t{0}; },
                           .api_name = [](ApiDomain, uint32_t) { return std::string(); }});
        join.add(std::move(launches));
        for (std::size_t i = first; i < trace.kernels.size(); ++i) {
            trace.kernels.set<&Kernel::start_ns>(Id<Kernel>(i), -1);
            trace.kernels.set<&Kernel::end_ns>(Id<Kernel>(i), -1);
        }
    }

    // RunObserver, on the threads that run ops
    void on_op_begin(Id<Op> op) noexcept override {
        if (cupti_) cupti_->push_op(external_id_of(op));
    }
    void on_op_end() noexcept override {
        if (cupti_) cupti_->pop_op();
    }
    void on_module_begin(std::string_view) noexcept override {}
    void on_module_end() noexcept override {}

private:
    std::unique_ptr<CuptiSession> cupti_;  // null: see problem_
    std::string problem_;
};

/// "compute capability 8.0". Throws std::invalid_argument for an index without a GPU.
std::string describe_gpu(int64_t index) {
    const auto found = find_cuda_device(static_cast<int>(index));
    if (found) return "compute capability " + models::to_text(found->capability);
    throw std::invalid_argument("this process has no virtual GPU " + std::to_string(index));
}

}  // namespace

void record_predicted_step(const models::Workload& workload, const PredictedStepOptions& options,
                           const CaptureCallbacks& callbacks, Trace& trace) {
    describe_run(workload,
                 {.source = Source::kPredicted,
                  .time_basis = TimeBasis::kEventOrder,
                  .device_name = describe_gpu(options.gpu_index)},
                 trace);
    require_native_allocator();
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
