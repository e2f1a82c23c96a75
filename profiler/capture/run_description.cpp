#include "profiler/capture/run_description.h"

#include "profiler/capture/torch_adapter/torch_version.h"

#include <ATen/Version.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

namespace profiler {
namespace {

constexpr const char* kTurnsKey = "measured_in_turn";
constexpr Id<Run> kRun(0);  // a trace has one

std::chrono::nanoseconds unix_time() { return std::chrono::system_clock::now().time_since_epoch(); }

nlohmann::json software_of(const Trace& trace) {
    return nlohmann::json::parse(trace.text(trace.runs.get<&Run::software>(kRun)));
}

/// The columns about the machine and the software; those about the workload come later.
Run run_in(const RunEnvironment& environment, Trace& trace) {
    const nlohmann::json software{{"torch", kTorchVersion},
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

/// The columns that say what is trained, but for the number of layers: a stage has some of them.
void describe_workload(const models::Workload& workload, Trace& trace) {
    StringTable& strings = trace.strings;
    nlohmann::json recipes = nlohmann::json::array();
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        recipes.push_back(
            models::to_text(models::recipe_of_layer(models::layer_recipes_of(workload), layer)));
    }
    trace.runs.set<&Run::model>(kRun, strings.intern(workload.model.name));
    trace.runs.set<&Run::head>(kRun, strings.intern(models::name_of(workload.head)));
    trace.runs.set<&Run::recipe>(kRun, strings.intern(workload.recipe_name));
    trace.runs.set<&Run::recipe_per_layer>(kRun, strings.intern(recipes.dump()));
    trace.runs.set<&Run::precision>(kRun, strings.intern(models::name_of(workload.precision)));
    trace.runs.set<&Run::batch_size>(kRun, workload.batch_size);
    trace.runs.set<&Run::seq_len>(kRun, workload.seq_len);
    trace.runs.set<&Run::seed>(kRun, workload.seed);
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
    trace.runs.append(run_in(environment, trace));
    trace.runs.set<&Run::workload>(kRun, trace.strings.intern(models::to_json(workload).dump()));
    describe_workload(workload, trace);
    trace.runs.set<&Run::num_layers>(kRun, workload.model.num_layers);
}

void describe_program(const ProgramDescription& program, const RunEnvironment& environment,
                      Trace& trace) {
    if (trace.runs.empty()) trace.runs.append(run_in(environment, trace));
    StringTable& strings = trace.strings;
    nlohmann::json what{{"program", program.program}};
    if (program.micro_batches > 0) what["micro_batches"] = program.micro_batches;
    if (program.workload) {
        what["workload"] = models::to_json(*program.workload);
        what["parallel"] = program.parallel;
        describe_workload(*program.workload, trace);
    } else {
        trace.runs.set<&Run::model>(kRun, strings.intern(program.model));
        if (!program.recipe.empty()) {
            trace.runs.set<&Run::recipe>(kRun, strings.intern(program.recipe));
        }
        trace.runs.set<&Run::precision>(kRun, strings.intern(program.precision));
        trace.runs.set<&Run::batch_size>(kRun, program.batch_size);
        trace.runs.set<&Run::seq_len>(kRun, program.seq_len);
    }
    trace.runs.set<&Run::workload>(kRun, strings.intern(what.dump()));
    trace.runs.set<&Run::rank>(kRun, program.rank);
    trace.runs.set<&Run::world_size>(kRun, program.world_size);
    if (!program.command.empty()) {
        trace.runs.set<&Run::command>(kRun, strings.intern(program.command));
        trace.runs.set<&Run::folder>(kRun, strings.intern(program.folder));
        trace.runs.set<&Run::environment>(kRun, strings.intern(program.environment));
    }
    if (!program.run_id.empty()) add_software({{"run_id", program.run_id}}, trace);
    if (!program.launch_id.empty()) add_software({{"launch_id", program.launch_id}}, trace);
}

void correct_precision(Trace& trace) {
    if (trace.runs.empty() || trace.text(trace.run().precision) != "fp32") return;
    std::map<DType, int64_t> flop_in;
    std::vector<bool> is_counted(trace.ops.size(), false);
    for (const OpTensor edge : trace.op_tensors.rows()) {
        const std::size_t op = edge.op.index();
        if (is_counted[op] || !edge.tensor.valid()) continue;
        is_counted[op] = true;  // by its first tensor
        const Id<Phase> phase = trace.ops.get<&Op::phase>(edge.op);
        const bool is_of_forward =
            phase.valid() && trace.phases.get<&Phase::kind>(phase) == PhaseKind::kForward;
        if (!is_of_forward || trace.ops.get<&Op::op_class>(edge.op) != OpClass::kContraction) {
            continue;
        }
        flop_in[trace.tensors.get<&Tensor::dtype>(edge.tensor)] +=
            trace.ops.get<&Op::flop>(edge.op);
    }
    if (flop_in.empty()) return;
    const auto most =
        std::ranges::max_element(flop_in, {}, [](const auto& of_type) { return of_type.second; });
    std::string_view name;
    if (most->first == DType::kBFloat16) name = "amp-bf16";
    if (most->first == DType::kFloat16) name = "amp-fp16";
    if (!name.empty()) trace.runs.set<&Run::precision>(kRun, trace.strings.intern(name));
}

void add_software(const nlohmann::json& entries, Trace& trace) {
    nlohmann::json software = software_of(trace);
    software.update(entries);
    trace.runs.set<&Run::software>(kRun, trace.strings.intern(software.dump()));
}

void note_turn(const Turn& turn, Trace& trace) {
    if (software_of(trace).contains(kTurnsKey)) return;
    add_software({{kTurnsKey, {{"run", turn.run}, {"recipes", turn.recipes}}}}, trace);
    if (turn.recipes > 1) return;
    add_diagnostic(
        trace,
        {.code = "not_in_turn",
         .severity = Severity::kInfo,
         .explanation =
             "This recipe ran alone, because the recipes of its run may not fit into memory "
             "together. If the speed of the machine changed meanwhile, the change looks like a "
             "difference between recipes."});
}

void note_wall_clock(int64_t time_ns, Trace& trace) {
    trace.counters.append({.name = trace.strings.intern("wall_clock_s"),
                           .time_ns = time_ns,
                           .value = static_cast<double>(unix_time().count()) * 1e-9});
}

}  // namespace profiler
