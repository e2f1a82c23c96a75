#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/plan_request.h"
#include "app/commands/reports/plan_report.h"
#include "app/user/settings.h"
#include "profiler/planner/program_plan.h"
#include "profiler/view/plan/plan_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

/// `plan --trace`: a program of the user's on other GPUs and at other batches, from its traces.
namespace app {
namespace {

using namespace profiler;

Outcome run_program_plan(const PlanOptions& options, Output& output) {
    const auto data = load_planner_data(settings_folder());
    if (!data) return failed(data.error());
    const auto request = make_program_request(options, *data);
    if (!request) return wrong_usage(request.error());
    if (const auto ok = check_result_file(options.output); !ok) return tl::unexpected(ok.error());
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
