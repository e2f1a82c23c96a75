#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/plan_fits.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/auto_plan_report.h"
#include "app/commands/reports/plan_report.h"
#include "app/commands/reports/reports.h"
#include "app/commands/worker/trace_folder.h"
#include "app/prediction/predict_trace.h"
#include "app/prediction/trace_workers.h"
#include "app/prediction/virtual_cards.h"
#include "app/user/settings.h"
#include "profiler/planner/program_plan.h"
#include "profiler/trace/write_file.h"
#include "profiler/view/auto_plan_view.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>

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
    if (workload.head != models::Head::kLayers) return {};
    if (workload.model.family == models::Family::kSubstation || workload.model.is_t5()) return {};
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
    return write_file(path, path.ends_with(".csv") ? to_csv() : json_text(to_json()));
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

Outcome run_auto_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    if (!options.traces.empty()) {
        return wrong_usage(
            {"--auto has to trace recipes that it chooses itself, so it cannot use a folder of "
             "traces: leave out --traces."});
    }
    if (options.lists_ops) {
        return wrong_usage({"--ops lists the ops of recipes that are named: leave out --auto."});
    }
    auto candidates = auto_candidates(options);
    if (!candidates) return wrong_usage(candidates.error());
    PlanOptions grid = options;  // the result is compared with the first recipe
    grid.workload.recipes =
        options.names_recipes ? planned_recipes(options).front() : WorkloadOptions().recipes;
    const auto plan_request = make_plan_request(grid, *data);
    if (!plan_request) return wrong_usage(plan_request.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
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
    const auto request = make_plan_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
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
    const auto steps =
        options.lists_ops ? trace_rows(plan, *request, *data) : Result<RowSteps>(RowSteps());
    if (!steps) return failed(steps.error());
    const auto to_json = [&] {
        nlohmann::json json = plan_json(view);
        for (std::size_t i = 0; i < steps->size(); ++i) {
            json["rows"][i]["ops"] =
                (*steps)[i] ? ops_json(op_usage(*(*steps)[i])) : nlohmann::json();
        }
        return json;
    };
    const auto written = write_rows(options.output, to_json, [&] { return plan_csv(view); });
    if (!written) return failed(written.error());
    if (!plan.has_ok_row()) {
        return fail_with(no_row_code(plan.rows.front()), "{}", no_row_sentence(view));
    }
    if (output.json()) {
        output.document(to_json());
    } else {
        print_plan(output, view);
        print_row_ops(output, plan, *steps);
    }
    return ExitCode::kOk;
}

/// What a program's traces decide by themselves.
Result<void> check_program_options(const Command& command) {
    constexpr std::array<std::string_view, 8> kMeaningful{
        "--trace", "--gpu", "--setup", "--batch", "--budget", "--alloc-conf", "--output", "--json"};
    for (const std::string& name : command.given_options()) {
        if (std::find(kMeaningful.begin(), kMeaningful.end(), name) != kMeaningful.end()) continue;
        const bool means_many = name == "--parallel" || name == "--world-size";
        return models::fail(
            "--trace plans the program as it was recorded: leave {} out{}.", name,
            means_many
                ? ", and run it on many GPUs by temposcope run --gpu GPU --world-size N --max"
                : "");
    }
    return {};
}

Outcome run_program_plan(const Command& command, const PlanOptions& options, Output& output) {
    if (const auto ok = check_program_options(command); !ok) return wrong_usage(ok.error());
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_program_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return failed(ok.error());
    auto traces = open_traces(options.program_traces);
    if (!traces) return failed(traces.error());
    const auto program = program_steps_of(std::move(*traces));
    if (!program) return failed(program.error());
    const Plan plan = make_program_plan(*request, *data, *program);
    const PlanView view = build_plan_view(plan, *request);
    const auto to_json = [&] { return plan_json(view); };
    const auto written = write_rows(options.output, to_json, [&] { return plan_csv(view); });
    if (!written) return failed(written.error());
    if (!plan.has_ok_row()) return fail_with(ExitCode::kFailed, "{}", no_row_sentence(view));
    if (output.json()) {
        output.document(to_json());
    } else {
        print_plan(output, view);
    }
    return ExitCode::kOk;
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
    command.on_run([options, &command](Output& output) {
        if (!options->program_traces.empty()) {
            return run_program_plan(command, *options, output);
        }
        if (command.is_given("--parallel")) {
            const auto ok = check_fits_options(command);
            return ok ? run_fits(*options, output) : Outcome(wrong_usage(ok.error()));
        }
        options->names_recipes =
            command.is_given("--recipe") && options->workload.recipes != kAllRecipes;
        return options->is_auto ? run_auto_plan(*options, output) : run_plan(*options, output);
    });
}

}  // namespace app
