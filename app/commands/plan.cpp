#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/plan_report.h"
#include "app/commands/reports/reports.h"
#include "app/prediction/prediction_target.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/view/plan/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using models::Result;
using Json = nlohmann::json;

/// The step behind a row, with its kernels. Without a trace: the row is not possible, or its GPU
/// has no model of kernels.
using RowSteps = std::vector<std::optional<Trace>>;

Result<RowSteps> trace_rows(const Plan& plan, const PlanRequest& request, const PlannerData& data) {
    TraceWorkers workers(request.gpus, TraceDetail::kForCapture, torch_for(*request.environment));
    const CancelOnInterrupt cancel(workers);
    RowSteps steps;
    for (const PlanRow& row : plan.rows) {
        std::optional<Trace>& step = steps.emplace_back();
        if (row.status != PlanStatus::kOk || !row.time) continue;
        models::Workload workload = row.workload;
        workload.batch_size = *row.batch_size;
        auto trace = predict_trace(
            workload,
            {.gpu = &row.gpu, .environment = &row.environment, .allocator = request.allocator},
            data, workers.source());
        if (workers.is_cancelled()) return models::fail("The plan was cancelled.");
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
                                   *row.batch_size, row.gpu.id));
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

// ---- the command -----------------------------------------------------------------------------

Outcome run_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
    TraceWorkers workers(traced_gpus(*request), TraceDetail::kForPlan,
                         torch_for(*request->environment));
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
        Json json = plan_json(view);
        for (std::size_t i = 0; i < steps->size(); ++i) {
            const auto& step = (*steps)[i];
            json["rows"][i]["ops"] = step ? ops_json(op_usage(*step)) : Json();
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

void add_plan_command(CommandLine& line) {
    Command& command = line.add_command(
        "plan", "Predict which batch fits on which GPU, and how long a step takes there");
    auto options = std::make_shared<PlanOptions>();
    add_plan_options(command, *options);
    command.footer(
        list_recipes() + "\n" + list_planner_data() +
        "\n"
        "A row that is not possible does not stop the others. Describe GPUs of your own in\n"
        "gpus.json in the settings folder (docs/choose_gpu_and_batch.md).\n\n"
        "Examples:\n"
        "  temposcope plan --model bert-large --head squad --seq 384 --precision fp16 \\\n"
        "      --recipe original,tempo --gpu v100-16gb,rtx3090ti\n"
        "  temposcope plan --auto --model bert-large --head squad --seq 384 --gpu v100-16gb\n"
        "  temposcope plan --model gpt2 --head lm --recipe tempo --gpu all --batch 8 \\\n"
        "      -o plan.csv\n"
        "  temposcope plan --model bert-large --head mlm --gpu rtx4090,a100-80gb \\\n"
        "      --parallel none,ddp,fsdp2 --world-size 1,8 -o fits.csv --chart fits.svg\n"
        "  temposcope plan --trace batch8.tscope --trace batch16.tscope --gpu a100-40gb,t4\n");
    command.on_run({program_plan_mode(*options),
                    parallel_plan_mode(*options),
                    auto_plan_mode(*options, command),
                    {.bit = kPlanGrid,
                     .run = [options](Output& output) { return run_plan(*options, output); }}});
}

}  // namespace app
