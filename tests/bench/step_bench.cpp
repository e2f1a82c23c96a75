// Times training steps without a recorder (alone) or under PyTorch's own profiler (profiler).
// tools/gpu_check/gpu-check compares a capture's step times with these.
//
//     step_bench cpu|cuda alone|profiler STEPS < workload.json
//
// The workload is JSON as models/config writes it. Prints {"step_times_ns": [...]}; the two warm-up
// steps are not included. The profiler runs like torch.profiler with profile_memory=True. Its work
// after the last step, which makes the results readable, is not counted.

#include "models/config/workload.h"
#include "models/training/training.h"
#include "profiler/capture/cuda_source.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

constexpr int kWarmupSteps = 2;

class PytorchProfiler {
public:
    explicit PytorchProfiler(bool cuda) : cuda_(cuda) {
        std::set<ActivityType> activities{ActivityType::CPU};
        if (cuda) activities.insert(ActivityType::CUDA);
        const torch::profiler::impl::ProfilerConfig config(
            torch::profiler::impl::ProfilerState::KINETO, /*report_input_shapes=*/false,
            /*profile_memory=*/true);
        kineto::prepareProfiler(config, activities);
        kineto::enableProfiler(config, activities);
    }
    /// Stops the profiler. Throws if it recorded no work of the device, since its cost would then
    /// mean nothing.
    void end() {
        const auto result = kineto::disableProfiler();
        const auto& events = result->events();
        const bool saw_device = std::any_of(events.begin(), events.end(), [&](const auto& event) {
            return (event.deviceType() != c10::DeviceType::CPU) == cuda_;
        });
        if (!saw_device) throw std::runtime_error("PyTorch's profiler recorded no device work");
    }

private:
    bool cuda_;
};

std::vector<int64_t> step_times_ns(models::Training& training, int64_t steps) {
    std::vector<int64_t> times;
    for (int64_t i = 0; i < steps; ++i) {
        const auto start = std::chrono::steady_clock::now();
        training.step();
        const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
        times.push_back(elapsed.count());
    }
    return times;
}

int fail(std::string_view sentence) {
    std::cerr << "step_bench: " << sentence << '\n';
    return 1;
}

int run(std::string_view device, std::string_view recording, int64_t steps) {
    const auto workload =
        models::workload_from_json(nlohmann::json::parse(std::cin, nullptr, false));
    if (!workload) return fail(workload.error().message);
    const bool cuda = device == "cuda";
    if (cuda) {
        std::error_code error;
        const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
        const auto folder = program.parent_path();
        const auto& module = profiler::open_cuda_module(folder);
        if (module.source == nullptr) return fail(profiler::describe_problem(module.checks));
        if (const auto found = module.source->device(); !found) return fail(found.error().message);
    }
    models::Training training(*workload, cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU));
    step_times_ns(training, kWarmupSteps);
    std::vector<int64_t> times;
    if (recording == "profiler") {
        PytorchProfiler profiler(cuda);
        times = step_times_ns(training, steps);
        profiler.end();
    } else {
        times = step_times_ns(training, steps);
    }
    std::cout << nlohmann::json{{"step_times_ns", times}}.dump() << '\n';
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string_view> arguments(argv + 1, argv + argc);
    const int64_t steps = arguments.size() == 3 ? std::atoll(argv[3]) : 0;
    if (steps < 1 || (arguments[0] != "cpu" && arguments[0] != "cuda") ||
        (arguments[1] != "alone" && arguments[1] != "profiler")) {
        return fail("usage: step_bench cpu|cuda alone|profiler STEPS < workload.json");
    }
    try {
        return run(arguments[0], arguments[1], steps);
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}
