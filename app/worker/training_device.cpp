#include "app/worker/training_device.h"

#include "models/config/validity.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace app {
namespace {

using models::Result;
using models::Workload;
using profiler::CaptureCallbacks;
using profiler::CaptureOptions;
using profiler::LiveMemory;
using profiler::OutOfMemoryDetail;
using profiler::SweepOptions;
using profiler::Trace;
using profiler::TrackingAllocator;

class Processor final : public TrainingDevice {
public:
    Result<void> validate(const Workload& workload) override {
        return models::validate_for_cpu(workload);
    }
    void capture(const Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override {
        profiler::capture_on_cpu(workload, options, callbacks, trace);
    }
    void sweep(const Workload& workload, const CaptureOptions& options, const SweepOptions& sweep,
               const CaptureCallbacks& callbacks, Trace& trace) override {
        profiler::sweep_on_cpu(workload, options, sweep, callbacks, trace);
    }
    LiveMemory live_memory() const override {
        const TrackingAllocator& allocator = TrackingAllocator::instance();
        return {allocator.allocated_bytes(), allocator.peak_bytes()};
    }
    OutOfMemoryDetail last_out_of_memory() const override {
        return TrackingAllocator::instance().last_out_of_memory();
    }
    profiler::DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) override {
        const at::Device device(at::kCPU);
        auto speed = profiler::measure_device(
            device, profiler::speed_sizes(device, /*has_tf32=*/false), callbacks);
        speed.device_name = profiler::processor_name();
        speed.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
        speed.sm_count = at::get_num_threads();
        return speed;
    }
    std::string memory_name() const override { return "the memory of this machine"; }
};

class Gpu final : public TrainingDevice {
public:
    Gpu(profiler::CudaSource& source, profiler::CudaDevice device)
        : source_(source), device_(std::move(device)) {}

    Result<void> validate(const Workload& workload) override {
        return models::validate_for_cuda(workload, device_.capability);
    }
    void capture(const Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override {
        source_.capture(workload, options, callbacks, trace);
    }
    void sweep(const Workload& workload, const CaptureOptions& options, const SweepOptions& sweep,
               const CaptureCallbacks& callbacks, Trace& trace) override {
        source_.sweep(workload, options, sweep, callbacks, trace);
    }
    LiveMemory live_memory() const override { return source_.live_memory(); }
    OutOfMemoryDetail last_out_of_memory() const override { return source_.last_out_of_memory(); }
    profiler::DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) override {
        const at::Device device(at::kCUDA, 0);
        constexpr models::ComputeCapability kTf32{8, 0};
        const auto sizes = profiler::speed_sizes(device, !(device_.capability < kTf32));
        auto speed = profiler::measure_device(device, sizes, callbacks);
        speed.device_name = device_.name;
        speed.compute_capability = models::to_text(device_.capability);
        speed.memory_bytes = device_.total_bytes;
        speed.sm_count = device_.sm_count;
        speed.l2_bytes = device_.l2_bytes;
        return speed;
    }
    std::string memory_name() const override { return "the memory of the " + device_.name; }

private:
    profiler::CudaSource& source_;
    profiler::CudaDevice device_;
};

const profiler::CudaModule& cuda_module() {
    std::error_code error;
    return profiler::open_cuda_module(
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path());
}

Result<std::unique_ptr<TrainingDevice>> find_gpu() {
    const profiler::CudaModule& module = cuda_module();
    if (module.source == nullptr) {
        return models::fail("{}", profiler::describe_problem(module.checks));
    }
    auto device = module.source->device();
    if (!device) return tl::unexpected(device.error());
    return std::make_unique<Gpu>(*module.source, std::move(*device));
}

}  // namespace

Result<std::unique_ptr<TrainingDevice>> find_training_device(std::string_view name) {
    if (name == "cpu") return std::make_unique<Processor>();
    if (name == "cuda") return find_gpu();
    if (name != "auto") return models::fail("'{}' is no device of this worker.", name);
    // A GPU that this torch cannot use, and a driver without one, leave the processor.
    auto gpu = find_gpu();
    return gpu ? std::move(*gpu) : std::make_unique<Processor>();
}

std::vector<profiler::CudaCheck> check_cuda() {
    const profiler::CudaModule& module = cuda_module();
    std::vector<profiler::CudaCheck> checks = module.checks;
    if (module.source != nullptr) {
        for (profiler::CudaCheck& check : module.source->checks()) {
            checks.push_back(std::move(check));
        }
    }
    return checks;
}

}  // namespace app
