#pragma once

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/options/command_line.h"
#include "app/commands/options/workload_options.h"
#include "app/prediction/trace_workers.h"
#include "app/programs/batch_search.h"
#include "app/user/usual_setup.h"
#include "profiler/planner/plan.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

/// The options of `temposcope plan`, the request that they make, and what its modes share.
namespace app {

/// The modes of the command.
enum PlanMode : Modes { kPlanGrid = 1, kPlanAuto = 2, kPlanParallel = 4, kPlanProgram = 8 };

/// Larger plans share traces and interpolate batches: each row would take about five traces.
inline constexpr std::size_t kMostTracedRows = 24;

struct PlanOptions {
    StepForm workload;  // recipes and precision are lists here
    std::string seq = "512";
    std::string gpu = "all";
    std::string environment = usual_setup();
    std::optional<int64_t> batch_size;
    std::string budget;
    std::optional<int64_t> num_gpus;
    int64_t zero_stage = 0;
    std::string link;
    std::string alloc_conf;
    std::string traces;
    std::vector<std::string> program_traces;  // of a program of the user's, in place of a model
    bool runs = false;        // those programs, where torch chooses another attention
    int64_t timeout_s = 0;    // of each such run; 0: none
    std::string parallel;     // strategies, with commas between; empty: closed terms alone
    std::string world_sizes;  // numbers of GPUs for them
    std::string chart;        // of what fits
    std::string output;
    bool is_auto = false;
    bool lists_ops = false;
    bool names_recipes = false;  // --recipe was given, and is not all
};

/// `options` must live until the command has run.
void add_plan_options(Command& command, PlanOptions& options);

/// Errors: wrong usage. An impossible workload is none if another one is possible.
models::Result<profiler::PlanRequest> make_plan_request(const PlanOptions& options,
                                                        const profiler::PlannerData& data);

/// The request for a program of the user's: without workloads.
models::Result<profiler::PlanRequest> make_program_request(const PlanOptions& options,
                                                           const profiler::PlannerData& data);

/// The recipes of --recipe, each once.
std::vector<std::string> planned_recipes(const PlanOptions& options);

/// The recipes of --recipe, from which --auto may choose; empty: it may choose any.
models::Result<std::vector<models::Recipe>> auto_candidates(const PlanOptions& options);

/// The modes of other files. `options` and `command` must live until the command has run.
Mode auto_plan_mode(PlanOptions& options, const Command& command);
Mode parallel_plan_mode(const PlanOptions& options);
Mode program_plan_mode(const PlanOptions& options);

/// `plan --parallel`, if batches are guessed: the largest ones. `sweep --parallel`, if they are
/// doubled: all that were tried.
Outcome run_parallel(const PlanOptions& options, BatchOrder order, Output& output);

// ---- plans of models ---------------------------------------------------------------------------

/// The GPUs on which the steps are traced.
std::vector<const profiler::Gpu*> traced_gpus(const profiler::PlanRequest& request);

/// The plan that `make` makes. It shows its progress and can be cancelled.
template <typename Make>
models::Result<std::invoke_result_t<Make, profiler::PlanProgress>> make_with_progress(
    TraceWorkers& workers, const Make& make) {
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

/// Adds what names options of this command. `interpolates`: the steps of some batches were traced,
/// on one GPU.
void add_option_names(profiler::PlanRow& row, bool interpolates);

/// The exit code of a plan without a possible row.
ExitCode no_row_code(const profiler::PlanRow& first);

}  // namespace app
