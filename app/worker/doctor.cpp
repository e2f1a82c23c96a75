#include "app/worker/doctor.h"

#include "app/worker/training_device.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace app {
namespace {

nlohmann::json to_json(const profiler::CudaCheck& check) {
    return {{"name", check.name},
            {"status", check.ok ? "ok" : "missing"},
            {"detail", check.detail},
            {"remedy", check.remedy}};
}

}  // namespace

nlohmann::json describe_machine() {
    nlohmann::json checks = nlohmann::json::array();
    checks.push_back(
        to_json({.name = "torch",
                 .ok = true,
                 .detail = fmt::format("{}, {} threads", TORCH_VERSION, at::get_num_threads())}));
    for (const profiler::CudaCheck& check : check_cuda()) checks.push_back(to_json(check));
    return {{"checks", std::move(checks)}};
}

}  // namespace app
