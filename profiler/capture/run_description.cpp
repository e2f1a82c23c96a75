#include "profiler/capture/run_description.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>

namespace profiler {

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
    }
    return "cpu";
}

void describe_run(const models::Workload& workload, const RunEnvironment& place, Trace& trace) {
    StringTable& strings = trace.strings;
    const nlohmann::json software{{"torch", TORCH_VERSION},
                                  {"cpu_capability", at::get_cpu_capability()}};
    nlohmann::json recipes = nlohmann::json::array();
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        recipes.push_back(
            models::to_text(models::recipe_of_layer(models::layer_recipes_of(workload), layer)));
    }
    const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
    trace.runs.append({.source = place.source,
                       .time_basis = place.time_basis,
                       .state = RunState::kIncomplete,
                       .workload = strings.intern(models::to_json(workload).dump()),
                       .model = strings.intern(workload.model.name),
                       .head = strings.intern(models::name_of(workload.head)),
                       .recipe = strings.intern(workload.recipe_name),
                       .recipe_per_layer = strings.intern(recipes.dump()),
                       .precision = strings.intern(models::name_of(workload.precision)),
                       .device_name = strings.intern(place.device_name),
                       .software = strings.intern(software.dump()),
                       .allocator_settings = strings.intern(""),
                       .num_layers = workload.model.num_layers,
                       .batch_size = workload.batch_size,
                       .seq_len = workload.seq_len,
                       .seed = workload.seed,
                       .num_threads = place.num_threads,
                       .memory_limit_bytes = place.memory_limit_bytes,
                       .start_unix_ns = std::chrono::nanoseconds(unix_time).count()});
}

}  // namespace profiler
