#include "app/worker/answers.h"
#include "models/config/validity.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/measure_device.h"
#include "profiler/capture/measure_layouts.h"
#include "profiler/capture/run_description.h"
#include "profiler/capture/torch_adapter/torch_version.h"
#include "profiler/capture/tracking_allocator.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <utility>

namespace app {
namespace {

using models::Result;
using models::Workload;
using namespace profiler;

class Processor final : public TrainingDevice {
public:
    Result<void> validate(const Workload& workload) override {
        return models::validate_for_cpu(workload);
    }
    void capture(const Workload& workload, const CaptureOptions& options,
                 const CaptureCallbacks& callbacks, Trace& trace) override {
        capture_on_cpu(workload, options, callbacks, trace);
    }
    void sweep(const Workload& workload, const CaptureOptions& options, const SweepOptions& sweep,
               const CaptureCallbacks& callbacks, Trace& trace) override {
        sweep_on_cpu(workload, options, sweep, callbacks, trace);
    }
    models::BenchmarkTime time_benchmark(const models::Benchmark& benchmark, double seconds,
                                         const CaptureCallbacks& callbacks) override {
        return profiler::benchmark_on_cpu(benchmark, seconds, callbacks);
    }
    LiveMemory live_memory() const override {
        const TrackingAllocator& allocator = TrackingAllocator::instance();
        return {allocator.allocated_bytes(), allocator.peak_bytes()};
    }
    OutOfMemoryDetail last_out_of_memory() const override {
        return TrackingAllocator::instance().last_out_of_memory();
    }
    DeviceSpeed measure_speed(const CaptureCallbacks& callbacks) override {
        const at::Device device(at::kCPU);
        auto speed = measure_device(device, speed_sizes(device, /*has_tf32=*/false), callbacks);
        speed.device_name = processor_name();
        speed.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
        speed.sm_count = at::get_num_threads();
        return speed;
    }
    LayoutGraph measure_layouts(const LayoutMeasurement& measurement,
                                const CaptureCallbacks& callbacks) override {
        auto graph = profiler::measure_layouts(at::Device(at::kCPU), measurement, callbacks);
        graph.device_name = processor_name();
        return graph;
    }
    std::vector<double> time_layout_runs(const LayoutMeasurement& measurement,
                                         const std::vector<LayoutRun>& runs,
                                         const CaptureCallbacks& callbacks) override {
        return profiler::time_layout_runs(at::Device(at::kCPU), measurement, runs, callbacks);
    }
    std::string name() override { return processor_name(); }
    std::string memory_name() const override { return "the memory of this machine"; }
    bool can_take_turns() const override { return true; }
};

const CudaModule& cuda_module() {
    std::error_code error;
    return open_cuda_module(std::filesystem::read_symlink("/proc/self/exe", error).parent_path());
}

Result<TrainingDevice*> find_gpu() {
    const auto cuda = find_cuda();
    if (!cuda) return tl::unexpected(cuda.error());
    if (const auto device = (*cuda)->device(); !device) return tl::unexpected(device.error());
    return *cuda;
}

/// Everything that CUDA needs. Opens libtorch_cuda and our modules.
std::vector<CudaCheck> check_cuda() {
    const CudaModule& module = cuda_module();
    std::vector<CudaCheck> checks = module.checks;
    if (module.source != nullptr) {
        for (CudaCheck& check : module.source->checks()) {
            checks.push_back(std::move(check));
        }
    }
    return checks;
}

nlohmann::json to_json(const CudaCheck& check) {
    return {{"name", check.name},
            {"status", check.ok ? "ok" : "missing"},
            {"detail", check.detail},
            {"remedy", check.remedy}};
}

}  // namespace

Result<CudaSource*> find_cuda() {
    const CudaModule& module = cuda_module();
    if (module.source != nullptr) return module.source;
    return models::fail("{}", describe_problem(module.checks));
}

Result<TrainingDevice*> find_training_device(std::string_view name) {
    static Processor processor;
    if (name == "cpu") return &processor;
    if (name == "cuda") return find_gpu();
    if (name != "auto") return models::fail("'{}' is not a device of this worker.", name);
    // A driver without a GPU, or with a GPU that this torch cannot use, leaves the processor.
    auto gpu = find_gpu();
    return gpu ? *gpu : &processor;
}

nlohmann::json describe_machine() {
    nlohmann::json checks = nlohmann::json::array();
    checks.push_back(
        to_json({.name = "torch",
                 .ok = true,
                 .detail = fmt::format("{}, {} threads", kTorchVersion, at::get_num_threads())}));
    for (const CudaCheck& check : check_cuda()) checks.push_back(to_json(check));
    return {{"checks", std::move(checks)}};
}

}  // namespace app
