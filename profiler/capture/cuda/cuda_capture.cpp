#include "models/config/validity.h"
#include "models/config/workload.h"
#include "models/training/training.h"
#include "profiler/capture/batch_sweep.h"
#include "profiler/capture/capture_options.h"
#include "profiler/capture/cuda/activity_join.h"
#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/cuda/cupti_session.h"
#include "profiler/capture/cuda/gpu_recorder.h"
#include "profiler/capture/cuda_source.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/measure_layouts.h"
#include "profiler/capture/program_device.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/recorder.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/torch_adapter/cuda_allocations.h"
#include "profiler/capture/torch_adapter/flash_refusal.h"
#include "profiler/capture/torch_adapter/torch_hooks.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/units.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/Device.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

// ---- torch's state ----------------------------------------------------------------------------
//
// The process-wide state on CUDA: switches, generators, and the workspaces of cuBLAS.

/// After a backward that failed, autograd's thread still frees what it held, while the caller goes
/// on. That thread runs the node with the highest number first, and the nodes of a new thread count
/// from 0: once it has run such a node, it has nothing else left. The node has no elements, so
/// nothing is allocated or launched.
void wait_for_autograd() {
    const c10::DeviceIndex device = c10::cuda::current_device();
    std::async(std::launch::async, [device] {
        const at::Tensor nothing = at::empty({0}, at::device(at::Device(at::kCUDA, device)));
        const at::Tensor leaf = nothing.detach().requires_grad_();
        torch::autograd::backward({leaf.view_as(leaf)}, {nothing});
    }).get();
}

/// Throws c10::Error if the allocator's actions cannot be recorded. Call it before anything else of
/// CudaAllocations. Needs no driver.
void require_native_allocator() {
    const bool uncached = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    const auto ok = check_allocator(CudaAllocations::backend(), uncached);
    TORCH_CHECK(ok.has_value(), ok.error().message);
}

/// Names the workspaces of cuBLAS and cuBLASLt.
void describe_workspaces(Recorder& recorder, c10::DeviceIndex device) {
    for (const auto& [name, bytes] : CudaAllocations::workspaces(device)) {
        recorder.describe(bytes, name, Category::kWorkspace);
    }
}

/// Sets the switches for a workload and seeds the generator of `device`.
void set_up_torch(const models::Workload& workload, c10::DeviceIndex device) {
    at::globalContext().setAllowTF32CuBLAS(workload.precision == models::Precision::kTf32);
    at::Generator generator = at::globalContext().defaultGenerator(at::Device(at::kCUDA, device));
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(workload.seed));
}

/// Gives back what earlier training left: workspaces and cached segments. The next step finds the
/// allocator as a fresh process does. Call it while no training lives.
void forget_earlier_training() {
    wait_for_autograd();
    (void)cudaGetLastError();  // clears a library's error before the next launch
    CudaAllocations::release_cache();
}

/// Tells the recorder which storages the training holds, and names torch's workspaces.
void describe_memory(Recorder& recorder, const models::Training& training,
                     c10::DeviceIndex device) {
    describe_storages(recorder, training);
    describe_workspaces(recorder, device);
}

// ---- a step on a virtual GPU ------------------------------------------------------------------
//
// As the planner needs it: what the step asks of the caching allocator, in order, and which op
// asks. No addresses, no times: the simulator and the kernel model give these for any GPU of the
// capability. docs/dev/virtual_gpu.md says what is real in it.

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor gradient_of(const MaybeTensor& parameter, const Tensor& like) {
    return parameter && parameter->defined() ? at::empty_like(*parameter)
                                             : at::empty({0}, like.options());
}

std::tuple<Tensor, Tensor, Tensor> published_layer_norm_backward(
    const Tensor& dy, const Tensor& saved, const MaybeTensor& gamma, const MaybeTensor& beta,
    const Tensor& rstd, std::string_view, std::optional<at::ScalarType> dtype) {
    const Tensor dx = at::empty_like(dy, dy.options().dtype(dtype.value_or(dy.scalar_type())));
    const Tensor dgamma = gradient_of(gamma, saved);
    const Tensor dbeta = gradient_of(beta, saved);
    const at::TensorOptions fp32 = saved.options().dtype(at::kFloat);
    const Tensor normalized = at::empty(saved.sizes(), fp32);
    const Tensor sums[] = {at::empty({rstd.numel()}, fp32), at::empty({rstd.numel()}, fp32)};
    return {dx, dgamma, dbeta};
}

/// `ddropped` is the result's storage; the release's has one of its own.
void softmax_dropout_backward(Tensor& ddropped, const Tensor&, const Tensor&, double, double,
                              std::string_view, at::IntArrayRef) {
    const Tensor dropped = at::empty_like(ddropped);
    const Tensor dprobs = at::empty_like(ddropped);
    const Tensor dscores = at::empty_like(ddropped);
    const Tensor product = at::empty_like(ddropped);
}

/// While it lives, Tempo's ops on CUDA allocate what those of its 2022 release allocated, and
/// compute nothing: for a virtual GPU.
///
///     LayerNorm backward    x̂ in fp32, two sums a row
///     attention's backward  to its end: the dropped probabilities, three gradients (of the
///                           probabilities before and after dropout, of the scores), and
///                           softmax's product
///
/// Source   UofT-EcoSystem/Tempo at 17e1a0b: src/inplace_layernorm, src/combined/combined.cpp (its
///          variables live to the end of the function); softmax's product as torch's own softmax.
/// The profiler's planner gives their passes (profiler/planner/step/published_tempo.h).
class PublishedTempo {
public:
    PublishedTempo()
        : tempo_(torch::Library::IMPL, "tempo", c10::DispatchKey::CUDA, __FILE__, __LINE__) {
        tempo_.impl("layer_norm_backward", published_layer_norm_backward);
        tempo_.impl("softmax_dropout_backward_", softmax_dropout_backward);
    }

private:
    torch::Library tempo_;
};

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
    throw std::invalid_argument("this process has no simulated GPU " + std::to_string(index));
}

/// Records one step into `trace`, which must be empty. Allocations are recorded from the first
/// parameter on: what the warm-up leaves behind shapes the memory that the recorded step finds.
/// Throws std::invalid_argument without that virtual GPU, Cancelled, c10::Error.
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

// ---- a capture on the GPU ---------------------------------------------------------------------

const at::Device kDevice(at::kCUDA, kCudaDevice);

/// Emulates a GPU with `limit_bytes` of memory. CUDA's own memory, such as the context, counts too.
class MemoryLimit {
public:
    MemoryLimit(int64_t limit_bytes, int64_t outside_bytes, int64_t total_bytes) {
        if (limit_bytes < 0) return;
        if (limit_bytes > total_bytes) {
            throw std::invalid_argument(fmt::format(
                "a memory limit of {} is more than the {} of this GPU; leave the limit out",
                format_bytes(limit_bytes), format_bytes(total_bytes)));
        }
        TORCH_CHECK_WITH(OutOfMemoryError, limit_bytes > outside_bytes, "the limit of ",
                         format_bytes(limit_bytes), " is less than the ",
                         format_bytes(outside_bytes), " that CUDA itself takes");
        CudaAllocations::set_limit(kCudaDevice, limit_bytes - outside_bytes, total_bytes);
    }
    ~MemoryLimit() {
        try {
            CudaAllocations::set_limit(kCudaDevice, -1, 1);
        } catch (const c10::Error&) {  // the device is gone, so there is nothing to limit
        }
    }
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;
};

RunEnvironment environment_of(const CudaDevice& device, int64_t memory_limit_bytes) {
    return {.source = on_virtual_gpu() ? Source::kPredicted : Source::kMeasuredCuda,
            .time_basis = on_virtual_gpu() ? TimeBasis::kEventOrder : TimeBasis::kMeasured,
            .device_name = device.name,
            .memory_limit_bytes = memory_limit_bytes};
}

void add_cuda_software(const CudaDevice& device, const std::string& cupti, Trace& trace) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    add_software({{"cuda_runtime", CUDART_VERSION},
                  {"cuda_driver", driver},
                  {"cudnn", at::detail::getCUDAHooks().versionCuDNN()},
                  {"cupti", cupti},
                  {"compute_capability", models::to_text(device.capability)}},
                 trace);
    trace.runs.set<&Run::allocator_settings>(
        Id<Run>(0), trace.strings.intern(CudaAllocations::settings_text()));
}

void describe_cuda_run(const models::Workload& workload, const CaptureOptions& options,
                       const CudaDevice& device, const std::string& cupti, Trace& trace) {
    describe_run(workload, environment_of(device, options.memory_limit_bytes), trace);
    add_cuda_software(device, cupti, trace);
}

/// What the recording missed, and what came of the recording besides rows of steps.
void add_end_notes(GpuRecorder& gpu, const CudaAllocations& allocations, Recorder& recorder,
                   Trace& trace) {
    if (on_virtual_gpu()) {
        recorder.add_note("virtual_gpu", Severity::kInfo,
                          "The step ran on a simulated GPU: torch's own CUDA code made the "
                          "allocations and launches, and no kernel ran.");
    }
    if (const auto refusals = gpu.cupti_refusals(); !refusals.empty()) {
        add_software({{"cupti_refused", refusals}}, trace);
    }
    if (auto modules = gpu.modules(); !modules.empty()) {
        add_software({{"modules", std::move(modules)}}, trace);
    }
    add_gpu_notes(gpu.faults(), allocations.counts(), allocations.differing_totals(), trace);
}

void record_steps(models::Training& training, const CaptureOptions& options,
                  const CaptureCallbacks& callbacks, Trace& trace, GpuRecorder& gpu) {
    CudaAllocations allocations(trace, gpu.streams(), kCudaDevice);
    Recorder recorder(trace, {.allocations = &allocations,
                              .device = gpu.device_row(),
                              .ops = OpSet::kCuda,
                              .observer = &gpu});
    gpu.start(recorder);
    // The last step of the warm-up runs under CUPTI: the first one that it records takes longer.
    if (options.warmup_steps > 0) warm_up(training, 1, callbacks);
    gpu.drop_work();
    recorder.start();
    describe_memory(recorder, training, kCudaDevice);
    StepWatch watch(callbacks, &recorder, &training);
    for (int64_t i = 0; i < options.steps; ++i) {
        report(callbacks, "step", i, options.steps);
        const double loss = train_recorded(training, watch, recorder);
        recorder.end_step(on_virtual_gpu() ? 0 : loss);
        describe_memory(recorder, training, kCudaDevice);
        note_step(recorder, training, i, loss);
        gpu.add_reading();
        if (callbacks.step_done) callbacks.step_done();
    }
    report(callbacks, "step", options.steps, options.steps);
    recorder.stop();
    gpu.stop();
    add_end_notes(gpu, allocations, recorder, trace);
}

/// A program of the user's on the GPU.
class ProgramOnCuda final : public ProgramDevice {
public:
    ProgramOnCuda(c10::DeviceIndex index, const CudaDevice& device, Trace& trace)
        : index_(index),
          device_(device),
          trace_(trace),
          gpu_(trace, index),
          allocations_(trace, gpu_.streams(), index) {}

    RunEnvironment environment() const override { return environment_of(device_, -1); }
    RecorderOptions recorder_options() override {
        return {.allocations = &allocations_,
                .device = gpu_.device_row(),
                .ops = OpSet::kCuda,
                .observer = &gpu_,
                .flash_refusal = &flash_refusal};
    }
    void start() override { add_cuda_software(device_, gpu_.cupti_text(), trace_); }
    void start_work(Recorder& recorder) override {
        gpu_.start(recorder);
        gpu_.drop_work();
    }
    void stop_work() override {
        gpu_.add_reading();
        gpu_.stop();
    }
    void describe_workspaces(Recorder& recorder) override {
        profiler::describe_workspaces(recorder, index_);
    }
    void read_step() override { gpu_.add_reading(); }
    void set_profiled(bool is_profiled) override { allocations_.set_reported(!is_profiled); }
    void stop(Recorder& recorder) override {
        gpu_.stop();
        add_end_notes(gpu_, allocations_, recorder, trace_);
    }

private:
    const c10::DeviceIndex index_;
    const CudaDevice device_;
    Trace& trace_;
    GpuRecorder gpu_;
    CudaAllocations allocations_;
};

/// Each batch finds the allocator as a fresh process does: where an earlier batch's parameters,
/// optimizer state and workspaces lie decides what a later one can place.
SweptDevice swept_device(const models::Workload& workload,
                         std::optional<models::Training>& training) {
    return {.begin_batch = [&](int64_t batch_size) -> models::Training& {
                training.reset();
                forget_earlier_training();
                CudaAllocations::reset_peak(kCudaDevice);
                CudaAllocations::watch_out_of_memory();
                models::Workload with_batch = workload;
                with_batch.batch_size = batch_size;
                return training.emplace(with_batch, kDevice);
            },
            .read_peaks =
                [](SweepPoint& point) {
                    const CudaMemory memory = CudaAllocations::memory(kCudaDevice);
                    point.peak_allocated_bytes = memory.peak_allocated_bytes;
                    point.peak_reserved_bytes = memory.peak_reserved_bytes;
                },
            .last_out_of_memory = &CudaAllocations::last_out_of_memory};
}

CudaDevice require_device(int index = kCudaDevice) {
    auto device = find_cuda_device(index);
    TORCH_CHECK(device.has_value(), device.error().message);
    return *device;
}

/// Trains on a GPU and records the steps. docs/dev/cuda_capture.md says how.
class CudaCapture final : public CudaSource {
public:
    models::Result<CudaDevice> device() override { return find_cuda_device(); }

    std::vector<CudaCheck> checks() override {
        std::vector<CudaCheck> checks = check_cuda_device();
        checks.push_back(check_cupti());
        return checks;
    }

    models::Result<void> validate(const models::Workload& workload) override {
        const auto found = find_cuda_device();
        if (!found) return tl::unexpected(found.error());
        return models::validate_for_cuda(workload, found->capability);
    }

    std::string name() override { return require_device().name; }

    std::string memory_name() const override {
        const auto found = find_cuda_device();
        return "the memory of the " + (found ? found->name : std::string("GPU"));
    }

    /// A worker that waits would hold memory of the GPU that the others' measurements need.
    bool can_take_turns() const override { return false; }

    void capture(const models::Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override {
        require_native_allocator();
        const CudaDevice device = require_device();
        report(callbacks, "starting CUDA", 0, 1);
        GpuRecorder gpu(trace, kCudaDevice);
        CudaAllocations::watch_out_of_memory();
        has_allocator_ = true;
        cuda_bytes_ = gpu.outside_bytes();
        describe_cuda_run(workload, options, device, gpu.cupti_text(), trace);
        const MemoryLimit limit(options.memory_limit_bytes, *cuda_bytes_,
                                DeviceMonitor::cuda_memory().total_bytes);
        set_up_torch(workload, kCudaDevice);
        report(callbacks, "building the model", 0, 1);
        models::Training training(workload, kDevice);
        gpu.add_reading();  // separates what the model loads from what the warm-up loads
        warm_up(training, options.warmup_steps - 1, callbacks);
        record_steps(training, options, callbacks, trace, gpu);
    }

    void sweep(const models::Workload& workload, const CaptureOptions& options,
               const SweepOptions& sweep, const CaptureCallbacks& callbacks,
               Trace& trace) override {
        require_native_allocator();
        const CudaDevice device = require_device();
        if (!cuda_bytes_) {
            Trace unused;  // a sweep does not record its steps
            cuda_bytes_ = GpuRecorder(unused, kCudaDevice).outside_bytes();
            has_allocator_ = true;
        }
        if (trace.runs.empty()) describe_cuda_run(workload, options, device, "not used", trace);
        const MemoryLimit limit(options.memory_limit_bytes, *cuda_bytes_,
                                DeviceMonitor::cuda_memory().total_bytes);
        set_up_torch(workload, kCudaDevice);
        std::optional<models::Training> training;
        sweep_batches(sweep, swept_device(workload, training), callbacks, trace);
    }

    models::BenchmarkTime time_benchmark(const models::Benchmark& benchmark, double seconds,
                                         const CaptureCallbacks& callbacks) override {
        (void)require_device();
        set_up_torch(benchmark.workload, kCudaDevice);
        forget_earlier_training();
        return profiler::time_benchmark(kDevice, benchmark, seconds, callbacks);
    }

    DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) override {
        constexpr models::ComputeCapability kTf32{8, 0};
        const CudaDevice device = require_device();
        const SpeedSizes sizes = speed_sizes(kDevice, !(device.capability < kTf32));
        DeviceSpeed speed = measure_device(kDevice, sizes, callbacks);
        speed.device_name = device.name;
        speed.compute_capability = models::to_text(device.capability);
        speed.memory_bytes = device.total_bytes;
        speed.sm_count = device.sm_count;
        speed.l2_bytes = device.l2_bytes;
        return speed;
    }

    LayoutGraph measure_layouts(const LayoutMeasurement& measurement,
                                const CaptureCallbacks& callbacks) override {
        const CudaDevice device = require_device();
        LayoutGraph graph = profiler::measure_layouts(kDevice, measurement, callbacks);
        graph.device_name = device.name;
        return graph;
    }

    std::vector<double> time_layout_runs(const LayoutMeasurement& measurement,
                                         const std::vector<LayoutRun>& runs,
                                         const CaptureCallbacks& callbacks) override {
        require_device();
        return profiler::time_layout_runs(kDevice, measurement, runs, callbacks);
    }

    void predict_step(const models::Workload& workload, const PredictedStepOptions& options,
                      const CaptureCallbacks& callbacks, Trace& trace) override {
        record_predicted_step(workload, options, callbacks, trace);
    }

    std::unique_ptr<ProgramDevice> record_program(int device, Trace& trace) override {
        require_native_allocator();
        return std::make_unique<ProgramOnCuda>(static_cast<c10::DeviceIndex>(device),
                                               require_device(device), trace);
    }

    LiveMemory live_memory() const override {
        if (!has_allocator_) return {};
        const CudaMemory memory = CudaAllocations::memory(kCudaDevice);
        return {.allocated_bytes = memory.allocated_bytes,
                .peak_bytes = memory.peak_allocated_bytes};
    }

    OutOfMemoryDetail last_out_of_memory() const override {
        return CudaAllocations::last_out_of_memory();
    }

private:
    /// Memory that CUDA took for itself before the first tensor of this process; none: not yet
    /// known.
    std::optional<int64_t> cuda_bytes_;
    /// Set once CUDA is initialized. Before that, other threads must not ask its allocator.
    std::atomic<bool> has_allocator_ = false;
};

}  // namespace

}  // namespace profiler

/// The worker looks this function up after it has opened the module.
extern "C" __attribute__((visibility("default"))) profiler::CudaSource*
temposcope_make_cuda_source() {
    profiler::install_hook_engine();
    static profiler::CudaCapture source;
    return &source;
}
