#include "profiler/capture/run_description.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>

namespace profiler {
namespace {

constexpr const char* kTurnsKey = "measured_in_turn";

std::chrono::nanoseconds unix_time() { return std::chrono::system_clock::now().time_since_epoch(); }

nlohmann::json software_of(const Trace& trace) {
    return nlohmann::json::parse(trace.text(trace.runs.get<&Run::software>(Id<Run>(0))));
}

}  // namespace

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
    }
    return "cpu";
}

void describe_run(const models::Workload& workload, const RunEnvironment& environment,
                  Trace& trace) {
    StringTable& strings = trace.strings;
    const nlohmann::json software{{"torch", TORCH_VERSION},
                                  {"cpu_capability", at::get_cpu_capability()}};
    nlohmann::json recipes = nlohmann::json::array();
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        recipes.push_back(
            models::to_text(models::recipe_of_layer(models::layer_recipes_of(workload), layer)));
    }
    trace.runs.append({.source = environment.source,
                       .time_basis = environment.time_basis,
                       .state = RunState::kIncomplete,
                       .workload = strings.intern(models::to_json(workload).dump()),
                       .model = strings.intern(workload.model.name),
                       .head = strings.intern(models::name_of(workload.head)),
                       .recipe = strings.intern(workload.recipe_name),
                       .recipe_per_layer = strings.intern(recipes.dump()),
                       .precision = strings.intern(models::name_of(workload.precision)),
                       .device_name = strings.intern(environment.device_name),
                       .software = strings.intern(software.dump()),
                       .allocator_settings = strings.intern(""),
                       .num_layers = workload.model.num_layers,
                       .batch_size = workload.batch_size,
                       .seq_len = workload.seq_len,
                       .seed = workload.seed,
                       .num_threads = environment.num_threads,
                       .memory_limit_bytes = environment.memory_limit_bytes,
                       .start_unix_ns = unix_time().count()});
}

void add_software(const nlohmann::json& entries, Trace& trace) {
    nlohmann::json software = software_of(trace);
    software.update(entries);
    trace.runs.set<&Run::software>(Id<Run>(0), trace.strings.intern(software.dump()));
}

void note_turn(const Turn& turn, Trace& trace) {
    if (software_of(trace).contains(kTurnsKey)) return;
    add_software({{kTurnsKey, {{"run", turn.run}, {"recipes", turn.recipes}}}}, trace);
    if (turn.recipes > 1) return;
    trace.diagnostics.append(
        {.code = trace.strings.intern("not_in_turn"),
         .severity = Severity::kInfo,
         .count = 1,
         .explanation = trace.strings.intern(
             "This recipe ran alone, because the recipes of its run may not fit into memory "
             "together. If the speed of the machine changed meanwhile, the change looks like a "
             "difference between recipes.")});
}

void note_wall_clock(int64_t time_ns, Trace& trace) {
    trace.counters.append({.name = trace.strings.intern("wall_clock_s"),
                           .time_ns = time_ns,
                           .value = static_cast<double>(unix_time().count()) * 1e-9});
}

}  // namespace profiler
