#include "tests/app/predicted_steps.h"

#include "profiler/planner/data/planner_data.h"

#include <cstdlib>
#include <filesystem>
#include <map>

namespace tests {

void PredictedSteps::SetUp() {
    const std::string worker = TEMPOSCOPE_BINARY_DIR "/temposcope-worker";
    if (!std::filesystem::exists(worker)) GTEST_SKIP() << "temposcope-worker is not built";
    setenv("TEMPOSCOPE_WORKER", worker.c_str(), 1);
    setenv("TEMPOSCOPE_VIRTUAL_GPU_FOLDER", TEMPOSCOPE_BINARY_DIR "/virtual_gpu", 1);
}

void PredictedSteps::TearDown() {
    unsetenv("TEMPOSCOPE_WORKER");
    unsetenv("TEMPOSCOPE_VIRTUAL_GPU_FOLDER");
}

app::TraceWorkers& PredictedSteps::workers_on(const std::string& gpu, app::TraceDetail detail) {
    static std::map<std::pair<std::string, app::TraceDetail>, app::TraceWorkers> workers;
    const auto& gpus = profiler::built_in_planner_data().gpus;
    const std::vector card{*profiler::find_gpu(gpus, gpu)};
    return workers.try_emplace(std::pair(gpu, detail), card, detail).first->second;
}

profiler::Trace PredictedSteps::predict(const models::Workload& workload, const std::string& gpu) {
    const auto trace = workers_on(gpu).source()({workload});
    if (trace) return **trace;
    ADD_FAILURE() << trace.error().message;
    return {};
}

}  // namespace tests
