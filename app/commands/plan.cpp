#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/auto_plan_report.h"
#include "app/commands/reports/plan_report.h"
#include "app/commands/reports/reports.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/trace_workers.h"
#include "app/prediction/virtual_cards.h"
#include "app/user/settings.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/view/plan/auto_plan_view.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using models::Result;

std::vector<const Gpu*> traced_gpus(const PlanRequest& request) {
    return request.traces_each_gpu ? request.gpus : std::vector{&shared_gpu()};
}

/// What a plan of the layers alone leaves out, and the head that adds it; empty: the model has
/// no other head.
std::string about_layers_only(const models::Workload& workload) {
    const auto heads = workload.model.traits().heads;
    if (workload.head != models::Head::kLayers || heads.empty()) return {};
    return fmt::format("no embeddings and no head: --head {} adds them", name_of(heads.front()));
}

/// Adds what names options of this command. `interpolates`: the steps of some batches were traced,
/// on one GPU.
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

/// The step behind a row, with its kernels. Without a trace: the row is not possible, or its GPU
/// has no model of kernels.
using RowSteps = std::vector<std::optional<Trace>>;

Result<RowSteps> trace_rows(const Plan& plan, const PlanRequest& request, const PlannerData& data) {
    TraceWorkers workers(request.gpus, TraceDetail::kForCapture);
    const CancelOnInterrupt cancel(workers);
    RowSteps steps;
    for (const PlanRow& row : plan.rows) {
        std::optional<Trace>& step = steps.emplace_back();
        if (row.status != PlanStatus::kOk || !row.time) continue;
        models::Workload workload = row.workload;
        workload.batch_size = *row.batch_size;
        auto trace = predict_trace(
            workload,
            {.gpu = row.gpu, .environment = row.environment, .allocator = request.allocator}, data,
            workers.source());
        if (!trace) return tl::unexpected(trace.error());
        step = std::move(*trace);
    }
    return steps;
}

void print_row_ops(Output& output, const Plan& plan, const RowSteps& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i]) continue;
        const PlanRow& row = plan.rows[i];
        output.heading(fmt::format("Ops of {}, {}, {}, sequence length {}, batch {} on {}",
                                   row.workload.model.name, row.workload.recipe_name,
                                   models::name_of(row.workload.precision), row.workload.seq_len,
                                   *row.batch_size, row.gpu->id));
        output.table(ops_table(op_usage(*steps[i])));
    }
}

// ---- a folder of captures in place of traced steps ---------------------------------------------

using TracePointer = std::shared_ptr<const Trace>;

/// Whether a trace of `b` can be used for `a`. The name of the recipe, the seed and the learning
/// rate do not matter. The optimizer of `a` may come from the software environment, so it may
/// differ.
bool is_same_step(models::Workload a, const models::Workload& b, bool with_optimizer) {
    if (!with_optimizer) a.recipe.optimizer = b.recipe.optimizer;
    a.recipe_name = b.recipe_name;
    a.seed = b.seed;
    a.learning_rate = b.learning_rate;
    return a == b;
}

/// The traces in a folder, as `temposcope capture` writes them, by workload and batch size.
/// Errors: the folder cannot be read. If a workload is missing, only its row gets an error.
Result<StepSource> trace_folder_source(const std::string& folder) {
    const auto paths = expand_paths({folder});
    if (!paths) return tl::unexpected(paths.error());
    const auto named = open_traces(*paths);
    if (!named) return tl::unexpected(named.error());
    std::vector<std::pair<models::Workload, TracePointer>> traces;
    std::set<int64_t> batches;
    for (const NamedTrace& one : *named) {
        const auto workload = workload_of(*one.trace);
        if (!workload || one.trace->steps.empty()) continue;
        traces.emplace_back(*workload, one.trace);
        batches.insert(workload->batch_size);
    }
    const auto find = [traces = std::move(traces)](const models::Workload& workload) {
        for (const bool with_optimizer : {true, false}) {
            for (const auto& [traced, trace] : traces) {
                if (is_same_step(workload, traced, with_optimizer)) return trace;
            }
        }
        return TracePointer();
    };
    const auto trace = [folder, find](const StepToTrace& step) -> Result<TracePointer> {
        if (TracePointer found = find(step.workload)) return found;
        return models::fail(
            "{} holds no step of {}, {}, {}: capture one into it with temposcope capture.", folder,
            step.workload.recipe_name, describe(step.workload),
            models::name_of(step.workload.head));
    };
    const auto batches_of = [batches = std::move(batches), find](models::Workload workload) {
        std::vector<int64_t> found;
        for (const int64_t batch_size : batches) {
            workload.batch_size = batch_size;
            if (find(workload)) found.push_back(batch_size);
        }
        return found;
    };
    return StepSource(trace, batches_of);
}

// ---- the modes -------------------------------------------------------------------------------

/// The plan that `make` makes. It shows its progress and can be cancelled.
template <typename Make>
Result<std::invoke_result_t<Make, PlanProgress>> make_with_progress(TraceWorkers& workers,
                                                                    const Make& make) {
    const CancelOnInterrupt cancel(workers);
    Progress progress;
    auto plan = make(delayed_progress(progress));
    if (workers.is_cancelled()) return models::fail("The plan was cancelled.");
    return plan;
}

Outcome run_auto_plan(PlanOptions options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    auto candidates = auto_candidates(options);
    if (!candidates) return wrong_usage(candidates.error());
    // The result is compared with the first recipe.
    RecipeList compared;
    if (options.names_recipes) compared.names = {planned_recipes(options).front()};
    options.workload.recipes = compared;
    auto grid = make_plan_request(options, *data);
    if (!grid) return wrong_usage(grid.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    const AutoRequest request{.plan = std::move(*grid), .candidates = std::move(*candidates)};
    TraceWorkers workers(traced_gpus(request.plan), TraceDetail::kForPlan);
    auto plan = make_with_progress(workers, [&](const PlanProgress& progress) {
        return make_auto_plan(request, *data, workers.source(), progress);
    });
    if (!plan) return failed(plan.error());
    for (AutoRow& row : plan->rows) add_option_names(row.row, !request.plan.traces_each_gpu);
    const PlanView view = build_plan_view(*plan, request.plan);
    const Report report{.json = [&] { return auto_plan_json(*plan, view); },
                        .text = [&](Output& text) { print_auto_plan(text, *plan, request.plan); },
                        .csv = [&] { return auto_plan_csv(*plan, view); }};
    const auto done = emit(output, report, options.output);
    const PlanRow& row = plan->rows.front().row;
    if (!done || plan->has_ok_row()) return done;
    return fail_with(no_row_code(row), "{}", row.reason);
}

Outcome run_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    TraceWorkers workers(traced_gpus(*request), TraceDetail::kForPlan);
    const bool reads_traces = !options.traces.empty();
    const auto source = reads_traces ? trace_folder_source(options.traces) : workers.source();
    if (!source) return failed(source.error());
    auto plan = make_with_progress(workers, [&](const PlanProgress& progress) {
        return make_plan(*request, *data, *source, progress);
    });
    if (!plan) return failed(plan.error());
    for (PlanRow& row : plan->rows) {
        add_option_names(row, !request->traces_each_gpu && !reads_traces);
    }
    const PlanView view = build_plan_view(*plan, *request);
    const auto steps =
        options.lists_ops ? trace_rows(*plan, *request, *data) : Result<RowSteps>(RowSteps());
    if (!steps) return failed(steps.error());
    const auto with_ops = [&] {
        nlohmann::json json = plan_json(view);
        for (std::size_t i = 0; i < steps->size(); ++i) {
            json["rows"][i]["ops"] =
                (*steps)[i] ? ops_json(op_usage(*(*steps)[i])) : nlohmann::json();
        }
        return json;
    };
    const auto print = [&](Output& text) {
        print_plan(text, view);
        print_row_ops(text, *plan, *steps);
    };
    const auto done =
        emit(output, {.json = with_ops, .text = print, .csv = [&] { return plan_csv(view); }},
             options.output);
    if (!done || plan->has_ok_row()) return done;
    return fail_with(no_row_code(plan->rows.front()), "{}", no_row_sentence(view));
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

std::string no_row_sentence(const PlanView& view) {
    std::string text = "No row of the plan is possible.";
    for (const PlanSentence& reason : view.reasons) {
        text += fmt::format(" {}{}{}", reason.rows, reason.rows.empty() ? "" : ": ", reason.text);
    }
    return text;
}

void add_plan_command(CommandLine& line) {
    Command& command = line.add_command(
        "plan", "Predict which batch fits on which GPU and how fast a step is, without the GPU");
    auto options = std::make_shared<PlanOptions>();
    add_plan_options(command, *options);
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
        "      -o plan.csv\n"
        "  temposcope plan --model bert-large --head mlm --gpu rtx4090,a100-80gb \\\n"
        "      --parallel none,ddp,fsdp2 --world-size 1,8 -o fits.csv --chart fits.svg\n"
        "  temposcope plan --trace batch8.tscope --trace batch16.tscope --gpu a100-40gb,t4\n");
    const auto refuse = [](const std::string& option) -> std::string {
        if (option == "--ops") {
            return "--ops lists the ops of recipes that are named: leave out --auto.";
        }
        return "--auto has to trace recipes that it chooses itself, so it cannot use a folder of "
               "traces: leave out --traces.";
    };
    const auto run_auto = [options, &command](Output& output) {
        options->names_recipes = command.is_given("--recipe") && !options->workload.recipes.is_all;
        return run_auto_plan(*options, output);
    };
    command.on_run({program_plan_mode(*options),
                    parallel_plan_mode(*options),
                    {.bit = kPlanAuto, .chosen_by = "--auto", .refuse = refuse, .run = run_auto},
                    {.bit = kPlanGrid,
                     .run = [options](Output& output) { return run_plan(*options, output); }}});
}

}  // namespace app
