#include "profiler/planner/plan.h"
#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/options/help.h"
#include "app/commands/options/list_option.h"
#include "app/commands/options/number_option.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/reports/auto_plan_report.h"
#include "app/commands/reports/plan_report.h"
#include "app/commands/worker/step_traces.h"
#include "app/commands/worker/virtual_cards.h"
#include "app/user/settings.h"
#include "models/config/validity.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"
#include "profiler/view/auto_plan_view.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

namespace app {
namespace {

using namespace profiler;
using models::Result;

/// Larger plans share traces and interpolate batches: each row would take about five traces.
constexpr std::size_t kMostTracedRows = 24;

struct PlanOptions {
    WorkloadOptions workload;  // recipes and precision are lists here
    std::string seq = "512";
    std::string gpu = "all";
    std::string environment = "torch-2.11";
    std::optional<int64_t> batch_size;
    std::string budget;
    std::optional<int64_t> num_gpus;
    int64_t zero_stage = 0;
    std::string link;
    std::string alloc_conf;
    std::string traces;
    std::string output;
    bool is_auto = false;
    bool names_recipes = false;  // --recipe was given, and is not all
};

/// The recipes of --recipe, each once.
std::vector<std::string> planned_recipes(const PlanOptions& options) {
    std::vector<std::string> recipes;
    for (std::string& recipe : recipes_of(options.workload.recipes)) {
        append_once(recipes, std::move(recipe));
    }
    return recipes;
}

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
                    WorkloadOptions one = options.workload;
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

Result<std::vector<const Gpu*>> find_gpus(const std::vector<Gpu>& catalogue,
                                          const std::string& list) {
    std::vector<const Gpu*> gpus;
    if (list == "all") {
        for (const Gpu& gpu : catalogue) gpus.push_back(&gpu);
        return gpus;
    }
    const auto ids = split_list("--gpu", list);
    if (!ids) return tl::unexpected(ids.error());
    for (const std::string& id : *ids) {
        const auto gpu = find_gpu(catalogue, id);
        if (!gpu) return tl::unexpected(gpu.error());
        gpus.push_back(*gpu);
    }
    return gpus;
}

Result<int64_t> parse_size(const std::string& option, const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (bytes && *bytes == 0) return models::fail("{} is 0: give a size, such as 14GiB.", option);
    return bytes;
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

Result<PlanRequest> make_request(const PlanOptions& options, const PlannerData& data) {
    PlanRequest request;
    auto workloads = make_workloads(options);
    if (!workloads) return tl::unexpected(workloads.error());
    if (const auto ok = check_workloads(*workloads); !ok) return tl::unexpected(ok.error());
    request.workloads = std::move(*workloads);
    auto gpus = find_gpus(data.gpus, options.gpu);
    if (!gpus) return tl::unexpected(gpus.error());
    request.gpus = std::move(*gpus);
    const auto environment = find_environment(data.environments, options.environment);
    if (!environment) return tl::unexpected(environment.error());
    request.environment = *environment;
    if (const auto ok = add_limits(options, request); !ok) return tl::unexpected(ok.error());
    const std::size_t num_rows = request.workloads.size() * request.gpus.size();
    request.traces_each_gpu = options.traces.empty() && num_rows <= kMostTracedRows;
    if (!options.output.empty() && !options.output.ends_with(".csv") &&
        !options.output.ends_with(".json")) {
        return models::fail("-o {} ends neither in .csv nor in .json: name such a file.",
                            options.output);
    }
    return request;
}

std::vector<const Gpu*> traced_gpus(const PlanRequest& request) {
    return request.traces_each_gpu ? request.gpus : std::vector{&shared_gpu()};
}

/// What a plan of the layers alone leaves out, and the head that adds it; empty: the model has
/// no other head.
std::string about_layers_only(const models::Workload& workload) {
    if (workload.head != models::Head::kLayers) return {};
    if (workload.model.family == models::Family::kSubstation) return {};
    const bool is_decoder = workload.model.family == models::Family::kGpt2;
    return fmt::format("no embeddings and no head: --head {} adds them",
                       name_of(is_decoder ? models::Head::kLm : models::Head::kMlm));
}

/// Adds what names options of this command.
void add_option_names(PlanRow& row, const PlanRequest& request, const PlanOptions& options) {
    if (!request.traces_each_gpu && options.traces.empty()) {
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

/// For a plan without a possible row: every reason, with the rows that have it.
std::string no_row_sentence(const PlanView& view) {
    std::string text = "No row of the plan is possible.";
    for (const PlanSentence& reason : view.reasons) {
        text += fmt::format(" {}{}{}", reason.rows, reason.rows.empty() ? "" : ": ", reason.text);
    }
    return text;
}

/// The exit code of a plan without a possible row.
ExitCode no_row_code(const PlanRow& first) {
    return first.ran_out_of_memory ? ExitCode::kOutOfMemory : ExitCode::kFailed;
}

/// Shows progress, but only for plans that take longer than 2 s. `progress` must outlive it.
PlanProgress delayed_progress(Progress& progress) {
    constexpr std::chrono::seconds kDelay{2};
    const auto start = std::chrono::steady_clock::now();
    return [&progress, start, kDelay](std::size_t done, std::size_t total,
                                      const models::Workload& next) {
        if (std::chrono::steady_clock::now() - start < kDelay) return;
        progress.update(static_cast<double>(done) / static_cast<double>(total),
                        fmt::format("plan: {} of {}: {}, {}, {}, sequence length {}", done + 1,
                                    total, next.model.name, next.recipe_name,
                                    models::name_of(next.precision), next.seq_len));
    };
}

/// Writes the file of -o, if there is one. `to_json` and `to_csv` are called only when needed.
template <typename ToJson, typename ToCsv>
Result<void> write_rows(const std::string& path, const ToJson& to_json, const ToCsv& to_csv) {
    if (path.empty()) return {};
    return write_file(path, path.ends_with(".csv") ? to_csv() : to_json().dump(2) + "\n");
}

/// The recipes of --recipe, from which --auto may choose; empty: it may choose any.
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

Outcome run_auto_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    if (!options.traces.empty()) {
        return wrong_usage(
            {"--auto has to trace recipes that it chooses itself, so it cannot use a folder of "
             "traces: leave out --traces."});
    }
    auto candidates = auto_candidates(options);
    if (!candidates) return wrong_usage(candidates.error());
    PlanOptions grid = options;  // the result is compared with the first recipe
    grid.workload.recipes =
        options.names_recipes ? planned_recipes(options).front() : WorkloadOptions().recipes;
    const auto plan_request = make_request(grid, *data);
    if (!plan_request) return wrong_usage(plan_request.error());
    const AutoRequest request{.plan = *plan_request, .candidates = std::move(*candidates)};
    TraceWorkers workers(traced_gpus(*plan_request), TraceDetail::kForPlan);
    AutoPlan plan = [&] {
        const CancelOnInterrupt cancel(workers);
        Progress progress;
        return make_auto_plan(request, *data, workers.source(), delayed_progress(progress));
    }();
    if (workers.is_cancelled()) return fail_with(ExitCode::kFailed, "The plan was cancelled.");
    for (AutoRow& row : plan.rows) add_option_names(row.row, *plan_request, options);
    const PlanView view = build_plan_view(plan, request.plan);
    const auto to_json = [&] { return auto_plan_json(plan, view); };
    const auto written =
        write_rows(options.output, to_json, [&] { return auto_plan_csv(plan, view); });
    if (!written) return failed(written.error());
    if (!plan.has_ok_row()) {
        return fail_with(no_row_code(plan.rows.front().row), "{}", plan.rows.front().row.reason);
    }
    if (output.json()) {
        output.document(to_json());
    } else {
        print_auto_plan(output, plan, request.plan);
    }
    return ExitCode::kOk;
}

Outcome run_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_request(options, *data);
    if (!request) return wrong_usage(request.error());
    TraceWorkers workers(traced_gpus(*request), TraceDetail::kForPlan);
    StepSource source = workers.source();
    if (!options.traces.empty()) {
        auto folder = trace_folder_source(options.traces);
        if (!folder) return failed(folder.error());
        source = std::move(*folder);
    }
    Plan plan = [&] {
        const CancelOnInterrupt cancel(workers);
        Progress progress;
        return make_plan(*request, *data, source, delayed_progress(progress));
    }();
    if (workers.is_cancelled()) return fail_with(ExitCode::kFailed, "The plan was cancelled.");
    for (PlanRow& row : plan.rows) add_option_names(row, *request, options);
    const PlanView view = build_plan_view(plan, *request);
    const auto to_json = [&] { return plan_json(view); };
    const auto written = write_rows(options.output, to_json, [&] { return plan_csv(view); });
    if (!written) return failed(written.error());
    if (!plan.has_ok_row()) {
        return fail_with(no_row_code(plan.rows.front()), "{}", no_row_sentence(view));
    }
    if (output.json()) {
        output.document(to_json());
    } else {
        print_plan(output, view);
    }
    return ExitCode::kOk;
}

void add_grid_options(Command& command, PlanOptions& options) {
    command.add({.names = "--model",
                 .help = "models, with commas between",
                 .value_name = "LIST",
                 .is_required = true},
                &options.workload.model);
    command.add({"--head", "layers (only the layers), mlm, squad or lm", "NAME"},
                &options.workload.head);
    command.add({"--recipe", "recipes, " + about_recipe_list(), "LIST"}, &options.workload.recipes);
    command.add({"--gpu", "GPUs, with commas between, or all", "LIST"}, &options.gpu);
    command.add({"--precision",
                 list_precisions() + ", with commas between; there is no plan for fp64", "LIST"},
                &options.workload.precision);
    command.add({"--seq", "tokens per sequence, with commas between", "LIST"}, &options.seq);
    command.add({"--padding", "none, or random lengths with a mask", "NAME"},
                &options.workload.padding);
}

void add_limit_options(Command& command, PlanOptions& options) {
    command.add(
        {"--setup", "the software environment to assume: PyTorch, host and optimizer", "NAME"},
        &options.environment);
    command.add({"--auto",
                 "search for the fastest recipe that fits, layer by layer, among the recipes of "
                 "--recipe if it is given"},
                &options.is_auto);
    command.add({"--batch", "sequences per step on each GPU; default: the largest that fits", "N"},
                &options.batch_size);
    command.add({"--budget", "memory to use of each GPU, such as 14GiB", "SIZE"}, &options.budget);
    command.add({"--gpus", "data-parallel GPUs", "N"}, &options.num_gpus);
    command.add({"--zero", "ZeRO stage, 0 to 3", "N"}, &options.zero_stage);
    command.add({"--link", "bandwidth between the GPUs per second, such as 44GB", "SIZE"},
                &options.link);
    command.add(
        {"--alloc-conf", "allocator settings, as PYTORCH_CUDA_ALLOC_CONF takes them", "SETTINGS"},
        &options.alloc_conf);
    command.add({"--traces", "plan from the captures in this folder", "DIR"}, &options.traces);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options.output);
}

/// ". Optimizer: bert_adam; fp16 and bf16: apex_o2_adam"; empty where the recipe names it.
std::string about_optimizer(const SoftwareEnvironment& environment) {
    if (environment.optimizer == "recipe") return {};
    std::string text = ". Optimizer: " + environment.optimizer;
    if (!environment.optimizer_master.empty()) {
        text += "; fp16 and bf16: " + environment.optimizer_master;
    }
    if (!environment.optimizer_half.empty()) {
        text += "; pure-fp16 and pure-bf16: " + environment.optimizer_half;
    }
    return text;
}

/// The built-in GPUs and software environments. Those of the user are in files.
std::string list_planner_data() {
    std::vector<std::string_view> gpus;
    for (const Gpu& gpu : built_in_planner_data().gpus) gpus.push_back(gpu.id);
    std::string text = "GPUs:\n" + wrapped(fmt::format("{}", fmt::join(gpus, ", ")));
    text += "\nSoftware environments (--setup):\n";
    for (const SoftwareEnvironment& environment : built_in_planner_data().environments) {
        text += two_columns(environment.id, environment.name + about_optimizer(environment), 16);
    }
    return text +
           "bert_adam is the Adam of NVIDIA's BERT example. apex_* are apex's fused optimizers:\n"
           "o2 with fp32 master weights, o3 in 16 bits throughout.\n";
}

}  // namespace

void add_plan_command(CommandLine& line) {
    Command& command = line.add_command(
        "plan", "Predict which batch fits on which GPU and how fast a step is, without the GPU");
    auto options = std::make_shared<PlanOptions>();
    add_grid_options(command, *options);
    add_model_size_options(command, options->workload);
    add_limit_options(command, *options);
    command.footer(
        list_recipes() + "\n" + list_planner_data() +
        "\n"
        "A row that is not possible does not stop the others. Describe GPUs of your own in\n"
        "gpus.json in the settings folder (docs/planner.md).\n\n"
        "Examples:\n"
        "  temposcope plan --model bert-large --head squad --seq 384 --precision fp16 \\\n"
        "      --recipe original,tempo --gpu v100-16gb,rtx3090ti\n"
        "  temposcope plan --auto --model bert-large --head squad --seq 384 --gpu v100-16gb\n"
        "  temposcope plan --model gpt2 --head lm --recipe tempo --gpu all --batch 8 \\\n"
        "      -o plan.csv\n");
    command.on_run([options, &command](Output& output) {
        options->names_recipes =
            command.is_given("--recipe") && options->workload.recipes != kAllRecipes;
        return options->is_auto ? run_auto_plan(*options, output) : run_plan(*options, output);
    });
}

}  // namespace app
