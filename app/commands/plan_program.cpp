#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/plan_report.h"
#include "app/programs/batch_search.h"
#include "app/programs/remedy_runs.h"
#include "app/user/settings.h"
#include "profiler/planner/program_plan.h"
#include "profiler/trace/at_once.h"
#include "profiler/view/plan/plan_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// `plan --trace`: a program of the user's on other GPUs and at other batches, from its traces.
namespace app {
namespace {

using namespace profiler;

using models::Result;

/// The program of a trace, run again on another GPU.
Result<NamedTrace> record_on(const Gpu& gpu, const NamedTrace& recorded,
                             std::chrono::seconds timeout) {
    auto run = recorded_run(*recorded.trace);
    if (!run) {
        return models::fail("{}: {} Record it again.", recorded.file, run.error().message);
    }
    run->timeout = timeout;
    auto trace = record_without_limit(std::move(*run), gpu.id);
    if (!trace) return models::fail("{}: {}", recorded.file, trace.error().message);
    return NamedTrace{.file = fmt::format("{} on {}", recorded.file, gpu.name),
                      .trace = std::make_shared<const Trace>(std::move(*trace))};
}

Result<ProgramSteps> record_steps_on(const Gpu& gpu, const std::vector<NamedTrace>& recorded,
                                     std::chrono::seconds timeout) {
    Progress progress;
    progress.update(-1, fmt::format("running {} programs on {}", recorded.size(), gpu.name));
    std::vector<Result<NamedTrace>> runs(recorded.size(), models::fail("{}", kRunCancelled));
    for_each_on_all_cores(runs.size(), [&](std::size_t i) {
        if (were_asked_to_end()) return;
        runs[i] = record_on(gpu, recorded[i], timeout);
    });
    std::vector<NamedTrace> traces;
    for (Result<NamedTrace>& run : runs) {
        if (!run) return tl::unexpected(run.error());
        traces.push_back(std::move(*run));
    }
    return program_steps_of(std::move(traces));
}

/// The row of a GPU, which is in the plan.
PlanRow& row_of(Plan& plan, const Gpu& gpu) {
    return *std::ranges::find(plan.rows, gpu.id, [](const PlanRow& row) { return row.gpu.id; });
}

/// Plans again the GPUs that were refused because torch chooses another attention there: from runs
/// of the recorded programs. Errors: the user has stopped the runs.
Result<void> run_other_attention(Plan& plan, const PlanRequest& request, const PlannerData& data,
                                 const ProgramSteps& program,
                                 const std::vector<NamedTrace>& recorded,
                                 std::chrono::seconds timeout) {
    for (const GpuGroup& group : gpus_of_other_attention(request, data, program)) {
        const auto steps = record_steps_on(*group.front(), recorded, timeout);
        if (were_asked_to_end()) return models::fail("{}", kRunCancelled);
        if (!steps) {
            for (const Gpu* gpu : group) row_of(plan, *gpu).refuse(steps.error());
            continue;
        }
        PlanRequest of_group = request;
        of_group.gpus = group;
        for (PlanRow& row : make_program_plan(of_group, data, *steps).rows) {
            row_of(plan, row.gpu) = std::move(row);
        }
    }
    return {};
}

Outcome run_program_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_program_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
    auto traces = open_traces(options.program_traces);
    if (!traces) return failed(traces.error());
    const auto program = program_steps_of(*traces);
    if (!program) return failed(program.error());
    Plan plan = make_program_plan(*request, *data, *program);
    if (options.runs) {
        const auto ok = run_other_attention(plan, *request, *data, *program, *traces,
                                            std::chrono::seconds(options.timeout_s));
        if (!ok) return failed(ok.error());
    } else {
        for (const GpuGroup& group : gpus_of_other_attention(*request, *data, *program)) {
            for (const Gpu* gpu : group) row_of(plan, *gpu).reason += " Add --run.";
        }
    }
    const PlanView view = build_plan_view(plan, *request);
    const auto done = emit(output,
                           {.json = [&] { return plan_json(view); },
                            .text = [&](Output& text) { print_plan(text, view); },
                            .csv = [&] { return plan_csv(view); }},
                           options.output);
    if (!done || plan.has_ok_row()) return done;
    return fail_with(ExitCode::kFailed, "{}", no_row_sentence(view));
}

}  // namespace

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

}  // namespace app
