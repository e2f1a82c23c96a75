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

/// The columns that tell where and with what it runs, not what.
Run run_in(const RunEnvironment& environment, Trace& trace) {
    const nlohmann::json software{{"torch", TORCH_VERSION},
                                  {"cpu_capability", at::get_cpu_capability()}};
    return {.source = environment.source,
            .time_basis = environment.time_basis,
            .state = RunState::kIncomplete,
            .recipe_per_layer = trace.strings.intern("[]"),
            .device_name = trace.strings.intern(environment.device_name),
            .software = trace.strings.intern(software.dump()),
            .allocator_settings = trace.strings.intern(""),
            .num_threads = environment.num_threads,
            .memory_limit_bytes = environment.memory_limit_bytes,
            .start_unix_ns = unix_time().count()};
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
    nlohmann::json recipes = nlohmann::json::array();
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        recipes.push_back(
            models::to_text(models::recipe_of_layer(models::layer_recipes_of(workload), layer)));
    }
    Run run = run_in(environment, trace);
    run.workload = strings.intern(models::to_json(workload).dump());
    run.model = strings.intern(workload.model.name);
    run.head = strings.intern(models::name_of(workload.head));
    run.recipe = strings.intern(workload.recipe_name);
    run.recipe_per_layer = strings.intern(recipes.dump());
    run.precision = strings.intern(models::name_of(workload.precision));
    run.num_layers = workload.model.num_layers;
    run.batch_size = workload.batch_size;
    run.seq_len = workload.seq_len;
    run.seed = workload.seed;
    trace.runs.append(run);
}

void describe_program(const ProgramDescription& program, const RunEnvironment& environment,
                      Trace& trace) {
    if (trace.runs.empty()) trace.runs.append(run_in(environment, trace));
    const Id<Run> run(0);
    StringTable& strings = trace.strings;
    const nlohmann::json what{{"program", program.program}};
    trace.runs.set<&Run::workload>(run, strings.intern(what.dump()));
    trace.runs.set<&Run::model>(run, strings.intern(program.model));
    if (!program.recipe.empty()) {
        trace.runs.set<&Run::recipe>(run, strings.intern(program.recipe));
    }
    trace.runs.set<&Run::precision>(run, strings.intern(program.precision));
    trace.runs.set<&Run::batch_size>(run, program.batch_size);
    trace.runs.set<&Run::seq_len>(run, program.seq_len);
    trace.runs.set<&Run::rank>(run, program.rank);
    trace.runs.set<&Run::world_size>(run, program.world_size);
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
