#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/reports.h"
#include "app/prediction/prediction_target.h"
#include "app/prediction/trace_workers.h"
#include "app/user/settings.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/program_plan.h"
#include "profiler/planner/search/auto_plan.h"
#include "profiler/view/plan/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using models::Result;
using Json = nlohmann::json;

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
            {.gpu = &row.gpu, .environment = &row.environment, .allocator = request.allocator},
            data, workers.source());
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

// ---- text, JSON and CSV -------------------------------------------------------------------------

Json curve_json(const std::vector<PlanPoint>& curve) {
    Json json = Json::array();
    for (const PlanPoint& point : curve) {
        json.push_back({{"batch_size", point.batch_size},
                        {"step_time_ns", point.step_time_ns},
                        {"throughput_sequences_per_s", point.sequences_per_s}});
    }
    return json;
}

Json row_json(const std::vector<PlanColumn>& columns, const PlanViewRow& row) {
    Json json{{"curve", curve_json(row.row.curve)}, {"notes", row.row.notes}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const PlanColumn& column = columns[i];
        if (column.is_of_request) continue;
        if (column.group.empty()) {
            json[column.id] = json_of(row.cells[i]);
            continue;
        }
        Json& group = json[column.group];  // null until one of its cells has a value
        if (Json value = json_of(row.cells[i]); !value.is_null()) {
            group[column.id] = std::move(value);
        }
    }
    return json;
}

void print_parts(Output& output, const char* heading, const char* unit,
                 const std::vector<PlanPart>& parts) {
    if (parts.empty()) return;
    output.heading(heading);
    TextTable table{.columns = {{"class", Align::kLeft}, {unit, Align::kRight}}};
    for (const PlanPart& part : parts) table.rows.push_back({part.name, part.text});
    output.table(table);
}

void print_sentences(Output& output, const char* heading,
                     const std::vector<PlanSentence>& sentences) {
    if (!sentences.empty()) output.heading(heading);
    for (const PlanSentence& sentence : sentences) {
        output.line(fmt::format("  {}{}{}", sentence.rows, sentence.rows.empty() ? "" : ": ",
                                sentence.text));
    }
}

void print_plan(Output& output, const PlanView& view) {
    output.line(output.styled(view.common, Style::kBold));
    output.line(fmt::format("Predicted. Figures from \"at batch\" on are at {}.", view.batch));
    output.line();
    output.table(view.table);
    if (view.rows.size() == 1) {
        const PlanRow& row = view.rows.front().row;
        print_parts(output, "Memory when most is allocated", "bytes", memory_parts(row));
        print_parts(output, "Time of a step", "time", time_parts(row));
    }
    print_sentences(output, "Why not", view.reasons);
    print_sentences(output, "Assumptions", view.assumptions);
}

Json plan_json(const PlanView& view) {
    Json json{{"setup", view.environment}, {"rows", Json::array()}};
    for (std::size_t i = 0; i < view.columns.size() && !view.rows.empty(); ++i) {
        const PlanColumn& column = view.columns[i];
        if (column.is_of_request) json[column.id] = json_of(view.rows.front().cells[i]);
    }
    for (const PlanViewRow& row : view.rows) json["rows"].push_back(row_json(view.columns, row));
    return json;
}

/// One line per row: every cell, then the notes in one cell with "; " between. The throughput curve
/// is left out.
std::string plan_csv(const PlanView& view) {
    DataTable table;
    for (const PlanColumn& column : view.columns) table.columns.push_back(column.id);
    table.columns.emplace_back("notes");
    for (const PlanViewRow& row : view.rows) {
        table.rows.push_back(row.cells);
        table.rows.back().push_back(fmt::format("{}", fmt::join(row.row.notes, "; ")));
    }
    return to_csv(table, Decimals::kAsJson);
}

/// Letters for the recipes that are no preset, in the order in which they are first named.
class RecipeLetters {
public:
    /// "A"; a preset's own name.
    std::string letter_of(const std::string& recipe) {
        if (recipe.find_first_of("=@") == std::string::npos) return recipe;
        const auto known = std::ranges::find(recipes_, recipe);
        const auto index = static_cast<std::size_t>(known - recipes_.begin());
        if (known == recipes_.end()) recipes_.push_back(recipe);
        return letter_at(index);
    }
    /// "recipe A"; a preset's own name.
    std::string name_of(const std::string& recipe) {
        const std::string letter = letter_of(recipe);
        return letter == recipe ? recipe : "recipe " + letter;
    }
    void print(Output& output) const {
        if (!recipes_.empty()) output.heading("Recipes");
        for (std::size_t i = 0; i < recipes_.size(); ++i) {
            output.line(fmt::format("  {}  {}", letter_at(i), recipes_[i]));
        }
    }

private:
    /// A to Z, then A1 to Z1, ...
    static std::string letter_at(std::size_t index) {
        const char letter = static_cast<char>('A' + index % 26);
        return index < 26 ? fmt::format("{}", letter) : fmt::format("{}{}", letter, index / 26);
    }

    std::vector<std::string> recipes_;
};

/// Indented lines of at most 100 columns, as far as words allow.
void print_wrapped(Output& output, std::string_view text) {
    constexpr std::size_t kMost = 98;
    while (!text.empty()) {
        std::size_t end = text.size() > kMost ? text.rfind(' ', kMost) : text.size();
        if (end == text.npos) end = std::min(text.find(' '), text.size());
        output.line(fmt::format("  {}", text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

void print_answers(Output& output, const AutoPlan& plan, RecipeLetters& letters) {
    bool is_first = true;
    for (const AutoRow& row : plan.rows) {
        if (row.sentence.empty()) continue;
        if (!std::exchange(is_first, false)) output.line();
        const PlanRow& chosen = row.row;
        const std::string title =
            fmt::format("{}, {}, {}, sequence length {}: {}", chosen.gpu.id,
                        chosen.workload.model.name, models::name_of(chosen.workload.precision),
                        chosen.workload.seq_len, letters.name_of(chosen.workload.recipe_name));
        output.line(output.styled(title, Style::kBold));
        print_wrapped(output, row.sentence);
        print_wrapped(output, row.why);
    }
}

void print_frontier(Output& output, const AutoRow& row, RecipeLetters& letters) {
    TextTable table = frontier_table(row.frontier);
    for (auto& cells : table.rows) cells.back() = letters.letter_of(cells.back());
    const bool is_whole = table.rows.size() == row.frontier.size();
    output.heading(fmt::format("{}: recipes that no other recipe beats{}", row.row.gpu.id,
                               is_whole ? ""
                                        : fmt::format(" ({} of {}; --json has all)",
                                                      table.rows.size(), row.frontier.size())));
    output.table(table);
}

/// The rows with short names for their recipes.
PlanView build_short_view(AutoPlan plan, const PlanRequest& request, RecipeLetters& letters) {
    for (AutoRow& row : plan.rows) {
        std::string& name = row.row.workload.recipe_name;
        name = letters.name_of(name);
    }
    return build_plan_view(plan, request);
}

void print_auto_plan(Output& output, const AutoPlan& plan, const PlanRequest& request) {
    RecipeLetters letters;
    const PlanView view = build_short_view(plan, request, letters);
    print_answers(output, plan, letters);
    for (const AutoRow& row : plan.rows) {
        if (!row.sentence.empty()) print_frontier(output, row, letters);
    }
    letters.print(output);
    output.line();
    print_plan(output, view);
}

Json auto_plan_json(const AutoPlan& plan, const PlanView& view) {
    Json json = plan_json(view);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        const AutoRow& row = plan.rows[i];
        json["rows"][i]["sentence"] = row.sentence;
        json["rows"][i]["why"] = row.why;
        json["rows"][i]["candidates"] = row.num_candidates;
        json["rows"][i]["frontier"] = json_rows(data_table(frontier_columns(), row.frontier));
    }
    return json;
}

/// One line for each point of a frontier; a row without a frontier has one line with its status and
/// reason.
std::string auto_plan_csv(const AutoPlan& plan, const PlanView& view) {
    constexpr std::array kRowColumns{"model",     "head",    "gpu",    "setup",
                                     "precision", "seq_len", "status", "reason"};
    DataTable table{.columns = {kRowColumns.begin(), kRowColumns.end()}};
    for (const auto& column : frontier_columns()) table.columns.push_back(column.id);
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
        std::vector<Cell> cells;
        for (const char* id : kRowColumns) cells.push_back(view.cell(i, id));
        DataTable frontier = data_table(frontier_columns(), plan.rows[i].frontier);
        if (frontier.rows.empty()) {  // the recipe alone
            frontier.rows.emplace_back(frontier.columns.size());
            frontier.rows.front().front() = view.cell(i, "recipe");
        }
        for (const std::vector<Cell>& point : frontier.rows) {
            std::vector<Cell>& row = table.rows.emplace_back(cells);
            row.insert(row.end(), point.begin(), point.end());
        }
    }
    return to_csv(table, Decimals::kAsJson);
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
    Progress progress(std::chrono::seconds(2));  // most plans take less
    auto plan = make([&](std::size_t done, std::size_t total, const models::Workload& next) {
        progress.update(static_cast<double>(done) / static_cast<double>(total),
                        fmt::format("plan: {} of {}: {}, {}, {}, sequence length {}", done + 1,
                                    total, next.model.name, next.recipe_name,
                                    models::name_of(next.precision), next.seq_len));
    });
    if (workers.is_cancelled()) return models::fail("The plan was cancelled.");
    return plan;
}

/// For a plan without a possible row: every reason, with the rows that have it.
std::string no_row_sentence(const PlanView& view) {
    std::string text = "No row of the plan is possible.";
    for (const PlanSentence& reason : view.reasons) {
        text += fmt::format(" {}{}{}", reason.rows, reason.rows.empty() ? "" : ": ", reason.text);
    }
    return text;
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

/// A program of the user's on other GPUs and at other batches, from its traces.
Outcome run_program_plan(const PlanOptions& options, Output& output) {
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
    const auto done = emit(output,
                           {.json = [&] { return plan_json(view); },
                            .text = [&](Output& text) { print_plan(text, view); },
                            .csv = [&] { return plan_csv(view); }},
                           options.output);
    if (!done || plan.has_ok_row()) return done;
    return fail_with(ExitCode::kFailed, "{}", no_row_sentence(view));
}

Mode program_plan_mode(const PlanOptions& options) {
    const auto refuse = [](const std::string& option) {
        const bool means_many = option == "--parallel" || option == "--world-size";
        return fmt::format(
            "--trace plans the program as it was recorded: leave {} out{}.", option,
            means_many
                ? ", and run it on many GPUs by temposcope run --gpu GPU --world-size N --max"
                : "");
    };
    return {.bit = kPlanProgram,
            .chosen_by = "--trace",
            .refuse = refuse,
            .run = [&options](Output& output) { return run_program_plan(options, output); }};
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
