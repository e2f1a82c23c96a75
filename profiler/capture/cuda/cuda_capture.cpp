#include "profiler/capture/cuda/cuda_capture.h"

#include "models/config/validity.h"
#include "models/training/training.h"
#include "profiler/capture/batch_sweep.h"
#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/cuda/gpu_recorder.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/capture/run_description.h"
#include "profiler/trace/units.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>

#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace profiler {
namespace {

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

/// Sets torch's process-wide switches and seeds its process-wide generator.
void set_up_torch(const models::Workload& workload) {
    at::globalContext().setAllowTF32CuBLAS(workload.precision == models::Precision::kTf32);
    at::Generator generator = at::globalContext().defaultGenerator(kDevice);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(workload.seed));
}

void describe_cuda_run(const models::Workload& workload, const CaptureOptions& options,
                       const CudaDevice& device, const std::string& cupti, Trace& trace) {
    describe_run(workload,
                 {.source = Source::kMeasuredCuda,
                  .time_basis = TimeBasis::kMeasured,
                  .device_name = device.name,
                  .memory_limit_bytes = options.memory_limit_bytes},
                 trace);
    const Id<Run> run(0);
    auto software =
        nlohmann::json::parse(trace.text(trace.runs.get<&Run::software>(run)), nullptr, false);
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    software["cuda_runtime"] = CUDART_VERSION;
    software["cuda_driver"] = driver;
    software["cudnn"] = at::detail::getCUDAHooks().versionCuDNN();
    software["cupti"] = cupti;
    software["compute_capability"] = models::to_text(device.capability);
    trace.runs.set<&Run::software>(run, trace.strings.intern(software.dump()));
    trace.runs.set<&Run::allocator_settings>(
        run, trace.strings.intern(CudaAllocations::settings_text()));
}

/// torch allocates workspaces for cuBLAS and cuBLASLt, one per handle and stream. Each thread has
/// its own handle: this thread runs forward, autograd's thread runs backward.
void describe_workspaces(Recorder& recorder) {
    // Asking for a handle would create one, with its workspace.
    if (at::cuda::cublas_handle_stream_to_workspace().map.empty()) return;
    void* const forward_handle = at::cuda::getCurrentCUDABlasHandle();
    const auto describe = [&](at::cuda::WorkspaceMapWithMutex& workspaces, std::string_view name,
                              int64_t size_bytes) {
        const std::shared_lock lock(workspaces.mutex);
        for (const auto& [handle_and_stream, memory] : workspaces.map) {
            const bool forward = std::get<0>(handle_and_stream) == forward_handle;
            const at::Tensor bytes =
                at::from_blob(memory.get(), {size_bytes}, at::device(kDevice).dtype(at::kByte));
            recorder.describe(bytes, fmt::format("{} ({})", name, forward ? "forward" : "backward"),
                              Category::kWorkspace);
        }
    };
    describe(at::cuda::cublas_handle_stream_to_workspace(), "cublas_workspace",
             static_cast<int64_t>(at::cuda::getChosenWorkspaceSize()));
    describe(at::cuda::cublaslt_handle_stream_to_workspace(), "cublaslt_workspace",
             static_cast<int64_t>(at::cuda::getCUDABlasLtWorkspaceSize()));
}

void describe_all(Recorder& recorder, const models::Training& training) {
    describe_storages(recorder, training);
    describe_workspaces(recorder);
}

void record_steps(models::Training& training, const CaptureOptions& options,
                  const CaptureCallbacks& callbacks, Trace& trace, GpuRecorder& gpu) {
    CudaAllocations allocations(trace, gpu.streams(), kCudaDevice);
    Recorder recorder(trace, {.allocations = &allocations,
                              .device = gpu.device_row(),
                              .ops = OpSet::kCuda,
                              .observer = &gpu});
    gpu.start(recorder);
    recorder.start();
    describe_all(recorder, training);
    StepWatch watch(callbacks, &recorder, &training);
    for (int64_t i = 0; i < options.steps; ++i) {
        report(callbacks, "step", i, options.steps);
        recorder.begin_step();
        const double loss = training.step(&watch);
        recorder.end_step(loss);
        describe_all(recorder, training);
        note_step(recorder, training, i, loss);
        gpu.add_reading();
        if (callbacks.step_done) callbacks.step_done();
    }
    report(callbacks, "step", options.steps, options.steps);
    recorder.stop();
    gpu.stop();
    add_gpu_notes(gpu.faults(), allocations.counts(), allocations.differing_totals(), trace);
}

SweptMemory swept_memory() {
    return {.begin_batch =
                [] {
                    (void)cudaGetLastError();  // clears a library's error before the next launch
                    CudaAllocations::release_cache();  // of another batch's sizes
                    CudaAllocations::reset_peak(kCudaDevice);
                    CudaAllocations::watch_out_of_memory();
                },
            .read_peaks =
                [](SweepPoint& point) {
                    const CudaMemory memory = CudaAllocations::memory(kCudaDevice);
                    point.peak_allocated_bytes = memory.peak_allocated_bytes;
                    point.peak_reserved_bytes = memory.peak_reserved_bytes;
                },
            .last_out_of_memory = &CudaAllocations::last_out_of_memory};
}

CudaDevice require_device() {
    auto device = find_cuda_device();
    TORCH_CHECK(device.has_value(), device.error().message);
    return *device;
}

}  // namespace

models::Result<CudaDevice> CudaCapture::device() { return find_cuda_device(); }

models::Result<void> CudaCapture::validate(const models::Workload& workload) {
    const auto found = find_cuda_device();
    if (!found) return tl::unexpected(found.error());
    return models::validate_for_cuda(workload, found->capability);
}

DeviceSpeed CudaCapture::measure_speed(const CaptureCallbacks& callbacks) {
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

std::string CudaCapture::memory_name() const {
    const auto found = find_cuda_device();
    return "the memory of the " + (found ? found->name : std::string("GPU"));
}

std::vector<CudaCheck> CudaCapture::checks() {
    std::vector<CudaCheck> checks = check_cuda_device();
    checks.push_back(check_cupti());
    return checks;
}

void CudaCapture::capture(const models::Workload& workload, const CaptureOptions& options,
                          const CaptureCallbacks& callbacks, Trace& trace) {
    CudaAllocations::require_native();
    const CudaDevice device = require_device();
    report(callbacks, "starting CUDA", 0, 1);
    GpuRecorder gpu(trace);
    CudaAllocations::watch_out_of_memory();
    has_allocator_ = true;
    cuda_bytes_ = gpu.outside_bytes();
    describe_cuda_run(workload, options, device, gpu.cupti_text(), trace);
    const MemoryLimit limit(options.memory_limit_bytes, *cuda_bytes_, device.total_bytes);
    set_up_torch(workload);
    report(callbacks, "building the model", 0, 1);
    models::Training training(workload, kDevice);
    gpu.add_reading();  // separates what the model loads from what the warm-up loads
    warm_up(training, options.warmup_steps, callbacks);
    record_steps(training, options, callbacks, trace, gpu);
}

void CudaCapture::sweep(const models::Workload& workload, const CaptureOptions& options,
                        const SweepOptions& sweep, const CaptureCallbacks& callbacks,
                        Trace& trace) {
    CudaAllocations::require_native();
    const CudaDevice device = require_device();
    if (!cuda_bytes_) {
        Trace unused;  // a sweep does not record its steps
        cuda_bytes_ = GpuRecorder(unused).outside_bytes();
        has_allocator_ = true;
    }
    if (trace.runs.empty()) describe_cuda_run(workload, options, device, "not used", trace);
    const MemoryLimit limit(options.memory_limit_bytes, *cuda_bytes_, device.total_bytes);
    set_up_torch(workload);
    report(callbacks, "building the model", 0, 1);
    models::Workload smallest = workload;
    smallest.batch_size = 1;
    models::Training training(smallest, kDevice);
    sweep_batches(training, sweep, swept_memory(), callbacks, trace);
}

LiveMemory CudaCapture::live_memory() const {
    if (!has_allocator_) return {};
    const CudaMemory memory = CudaAllocations::memory(kCudaDevice);
    return {.allocated_bytes = memory.allocated_bytes, .peak_bytes = memory.peak_allocated_bytes};
}

OutOfMemoryDetail CudaCapture::last_out_of_memory() const {
    return CudaAllocations::last_out_of_memory();
}

}  // namespace profiler

/// The worker looks this function up after it has opened the module.
extern "C" __attribute__((visibility("default"))) profiler::CudaSource*
temposcope_make_cuda_source() {
    static profiler::CudaCapture source;
    return &source;
}
