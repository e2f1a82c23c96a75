#include "app/commands/plan_request.h"

#include "app/commands/console/report.h"
#include "app/commands/options/help.h"
#include "app/commands/options/values.h"
#include "models/config/parallel.h"
#include "models/config/validity.h"

#include <algorithm>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::Result;

/// Model x precision x length x recipe, in the order in which people read a table.
Result<std::vector<models::Workload>> make_workloads(const PlanOptions& options) {
    std::vector<models::Workload> workloads;
    const auto model_names = split_list("--model", options.workload.model);
    if (!model_names) return tl::unexpected(model_names.error());
    const auto precisions = split_list("--precision", options.workload.precision);
    if (!precisions) return tl::unexpected(precisions.error());
    const auto lengths = split_list("--seq", options.seq);
    if (!lengths) return tl::unexpected(lengths.error());
    for (const std::string& model : *model_names) {
        for (const std::string& precision : *precisions) {
            for (const std::string& length : *lengths) {
                const auto seq_len = parse_whole_number(length);
                if (!seq_len) {
                    return models::fail(
                        "'{}' is not a sequence length: write whole numbers, as 128,512.", length);
                }
                for (const std::string& recipe : planned_recipes(options)) {
                    StepForm one = options.workload;
                    one.model = model;
                    one.precision = precision;
                    one.seq_len = *seq_len;
                    auto workload = make_workload(one);
                    if (!workload) return tl::unexpected(workload.error());
                    workload = models::with_recipe(std::move(*workload), recipe);
                    if (!workload) return tl::unexpected(workload.error());
                    workloads.push_back(std::move(*workload));
                }
            }
        }
    }
    return workloads;
}

/// An impossible workload is a row of the plan. If every workload is impossible, the plan is wrong
/// usage.
Result<void> check_workloads(const std::vector<models::Workload>& workloads) {
    std::optional<models::Error> first;
    for (models::Workload workload : workloads) {
        workload.batch_size = 1;  // the plan finds the largest batch
        const auto ok = models::validate(workload);
        if (ok) return {};
        if (!first) first = ok.error();
    }
    return tl::unexpected(*first);
}

/// Batch, memory budget, data parallelism and allocator settings.
Result<void> add_limits(const PlanOptions& options, PlanRequest& request) {
    if (options.batch_size && *options.batch_size < 1) {
        return models::fail("The batch size is {}: it must be at least 1.", *options.batch_size);
    }
    request.batch_size = options.batch_size;
    if (!options.budget.empty()) {
        const auto budget = parse_size("--budget", options.budget);
        if (!budget) return tl::unexpected(budget.error());
        request.budget_bytes = *budget;
    }
    request.parallel = {
        .num_gpus = options.num_gpus.value_or(request.environment->num_gpus),
        .zero_stage = static_cast<int>(std::clamp<int64_t>(options.zero_stage, -1, 4))};
    constexpr int64_t kMostGpus = 65'536;
    if (request.parallel.num_gpus < 1 || request.parallel.num_gpus > kMostGpus) {
        return models::fail("--gpus is {}: it must be at least 1 and at most {}.",
                            request.parallel.num_gpus, kMostGpus);
    }
    if (options.zero_stage < 0 || options.zero_stage > 3) {
        return models::fail("--zero is {}: ZeRO has the stages 0 to 3.", options.zero_stage);
    }
    if (options.zero_stage > 0 && request.parallel.num_gpus == 1) {
        return models::fail("--zero spreads a step over several GPUs: say how many with --gpus.");
    }
    if (!options.link.empty()) {
        if (request.parallel.num_gpus == 1) {
            return models::fail("--link is between several GPUs: say how many with --gpus.");
        }
        const auto link = parse_size("--link", options.link);
        if (!link) return tl::unexpected(link.error());
        request.bus_bytes_per_s = static_cast<double>(*link);
    }
    const auto settings = parse_alloc_conf(options.alloc_conf);
    if (!settings) return tl::unexpected(settings.error());
    if (settings->memory_fraction < 1) {
        return models::fail(
            "A plan takes the memory to use from --budget: give it there, and leave "
            "per_process_memory_fraction out of --alloc-conf.");
    }
    request.allocator = *settings;
    return {};
}

constexpr Modes kPlanModels = kPlanGrid | kPlanAuto | kPlanParallel;
constexpr Modes kPlanClosedTerms = kPlanGrid | kPlanAuto;
constexpr Modes kPlanMemory = kPlanClosedTerms | kPlanProgram;

void add_grid_options(Command& command, PlanOptions& options) {
    command.add({"--model", "models, with commas between", "LIST"}, &options.workload.model,
                kPlanModels);
    command.add({.names = "--trace",
                 .help = "in place of a model: a trace of a program of your own; give two batches, "
                         "as --trace A --trace B",
                 .value_name = "FILE.tscope"},
                &options.program_traces, kPlanProgram);
    command.add({.names = "--run",
                 .help = "with --trace: run the programs on the GPUs where torch chooses another "
                         "attention than they ran",
                 .needs = "--trace"},
                &options.runs, kPlanProgram);
    command.add({.names = "--timeout",
                 .help = "with --run: end each run after so many seconds; 0: never",
                 .value_name = "S",
                 .needs = "--run"},
                &options.timeout_s, kPlanProgram);
    command.add({"--head", "layers (only the layers), mlm, squad or lm", "NAME"},
                &options.workload.head, kPlanModels);
    command.add({"--recipe", "recipes, " + about_recipe_list(), "LIST"}, &options.workload.recipes,
                kPlanModels);
    command.add({"--gpu", "GPUs, with commas between, or all", "LIST"}, &options.gpu);
    command.add({"--precision",
                 list_precisions() + ", with commas between; there is no plan for fp64", "LIST"},
                &options.workload.precision, kPlanModels);
    command.add({"--seq", "tokens per sequence, with commas between", "LIST"}, &options.seq,
                kPlanModels);
    command.add({"--padding", "none, or random lengths with a mask", "NAME"},
                &options.workload.padding, kPlanModels);
}

void add_limit_options(Command& command, PlanOptions& options) {
    command.add(
        {"--setup", "the software environment to assume: PyTorch, host and optimizer", "NAME"},
        &options.environment, kPlanMemory);
    command.add({"--auto",
                 "search for the fastest recipe that fits, layer by layer, among the recipes of "
                 "--recipe if it is given"},
                &options.is_auto, kPlanAuto);
    command.add(
        {"--batch", "sequences per micro-batch on each GPU; default: the largest that fits", "N"},
        &options.batch_size, kPlanMemory);
    add_accumulation_option(command, options.workload, "Options", kPlanModels);
    command.add({"--budget", "memory to use of each GPU, such as 14GiB", "SIZE"}, &options.budget,
                kPlanMemory);
    command.add({"--gpus", "data-parallel GPUs", "N"}, &options.num_gpus, kPlanClosedTerms);
    command.add({"--zero", "ZeRO stage, 0 to 3", "N"}, &options.zero_stage, kPlanClosedTerms);
    command.add({"--parallel",
                 fmt::format("simulate strategies by running PyTorch's own code, exact and slower "
                             "than the formulas of --gpus and --zero: {}",
                             models::kStrategyList),
                 "LIST"},
                &options.parallel, kPlanParallel);
    command.add({.names = "--world-size",
                 .help = "with --parallel: numbers of GPUs, as 1,8",
                 .value_name = "LIST",
                 .needs = "--parallel"},
                &options.world_sizes, kPlanParallel);
    command.add({.names = "--chart",
                 .help = "with --parallel: a file that ends in .svg, .pdf, .png or .html",
                 .value_name = "FILE",
                 .needs = "--parallel"},
                &options.chart, kPlanParallel);
    command.add({"--link", "bandwidth between the GPUs per second, such as 44GB", "SIZE"},
                &options.link, kPlanClosedTerms);
    command.add(
        {"--alloc-conf", "allocator settings, as PYTORCH_CUDA_ALLOC_CONF takes them", "SETTINGS"},
        &options.alloc_conf, kPlanMemory);
    command.add({"--ops", "also what each op of a row runs: calls, time, kernels and scratch"},
                &options.lists_ops, kPlanGrid);
    command.add({"--traces", "plan from the captures in this folder", "DIR"}, &options.traces,
                kPlanGrid);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options.output);
}

/// What a plan of the layers alone leaves out, and the head that adds it; empty: the model has
/// no other head.
std::string about_layers_only(const models::Workload& workload) {
    const auto heads = workload.model.traits().heads;
    if (workload.head != models::Head::kLayers || heads.empty()) return {};
    return fmt::format("no embeddings and no head: --head {} adds them", name_of(heads.front()));
}

}  // namespace

std::vector<std::string> planned_recipes(const PlanOptions& options) {
    std::vector<std::string> recipes;
    for (const std::string& recipe : options.workload.recipes.names) append_once(recipes, recipe);
    return recipes;
}

Result<PlanRequest> make_program_request(const PlanOptions& options, const PlannerData& data) {
    const auto gpus = split_list("--gpu", options.gpu);
    if (!gpus) return tl::unexpected(gpus.error());
    auto request = profiler::make_plan_request({}, *gpus, options.environment, data);
    if (!request) return request;
    request->traces_each_gpu = false;
    if (const auto ok = add_limits(options, *request); !ok) return tl::unexpected(ok.error());
    if (const auto ok = check_ending(options.output); !ok) return tl::unexpected(ok.error());
    return request;
}

Result<PlanRequest> make_plan_request(const PlanOptions& options, const PlannerData& data) {
    if (options.workload.model.empty()) {
        return models::fail(
            "A plan is for a model or a program: say which with --model, or with --trace A --trace "
            "B.");
    }
    auto workloads = make_workloads(options);
    if (!workloads) return tl::unexpected(workloads.error());
    if (const auto ok = check_workloads(*workloads); !ok) return tl::unexpected(ok.error());
    auto made = make_program_request(options, data);
    if (!made) return made;
    PlanRequest& request = *made;
    request.workloads = std::move(*workloads);
    const std::size_t num_rows = request.workloads.size() * request.gpus.size();
    request.traces_each_gpu = options.traces.empty() && num_rows <= kMostTracedRows;
    if (options.lists_ops && !request.traces_each_gpu) {
        return options.traces.empty()
                   ? models::fail("--ops traces every row, so a plan may have {} of them, not {}.",
                                  kMostTracedRows, num_rows)
                   : models::fail(
                         "--ops traces each row anew: leave out --traces, or read the traces "
                         "with temposcope info FILE --ops.");
    }
    return made;
}

Result<std::vector<models::Recipe>> auto_candidates(const PlanOptions& options) {
    std::vector<models::Recipe> candidates;
    if (!options.names_recipes) return candidates;
    for (const std::string& name : planned_recipes(options)) {
        const auto choice = models::parse_layer_recipes(name);
        if (!choice) return tl::unexpected(choice.error());
        if (!choice->layers.empty()) {
            return models::fail(
                "--auto chooses the layers of a recipe itself: write {} without '@'.", name);
        }
        candidates.push_back(choice->recipe);
    }
    const models::Recipe* of_tempo = nullptr;
    for (const models::Recipe& recipe : candidates) {
        if (recipe.optimizer != candidates.front().optimizer) {
            return models::fail(
                "The recipes of --auto have different optimizers, but a step has only one: name "
                "the same optimizer in each recipe.");
        }
        if (!models::uses_implementation(recipe)) continue;
        if (of_tempo != nullptr && of_tempo->implementation != recipe.implementation) {
            return models::fail(
                "The recipes of --auto use both the kernels of Tempo's release and ours, but a "
                "step has only one implementation: name recipes with the same one.");
        }
        of_tempo = &recipe;
    }
    return candidates;
}

void add_plan_options(Command& command, PlanOptions& options) {
    add_grid_options(command, options);
    add_model_size_options(command, options.workload, kPlanModels, kPlanModels);
    add_limit_options(command, options);
}

std::vector<const Gpu*> traced_gpus(const PlanRequest& request) {
    return request.traces_each_gpu ? request.gpus : std::vector{&shared_gpu()};
}

void add_option_names(PlanRow& row, bool interpolates) {
    if (interpolates) {
        row.notes.push_back(fmt::format(
            "traced on an A100 at some batches and interpolated: reserved memory within 4 %, which "
            "can move the largest batch; plans of up to {} rows trace each GPU and batch",
            kMostTracedRows));
    }
    row.reason = with_options(std::move(row.reason), row.reason_fields);
    if (std::string note = about_layers_only(row.workload); !note.empty()) {
        row.notes.insert(row.notes.begin(), std::move(note));
    }
}

ExitCode no_row_code(const PlanRow& first) {
    return first.ran_out_of_memory ? ExitCode::kOutOfMemory : ExitCode::kFailed;
}

}  // namespace app
