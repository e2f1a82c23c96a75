#pragma once

#include "app/commands/options/command_line.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/programs/batch_search.h"
#include "profiler/planner/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The options of `temposcope plan`, the request that they make, and the mode in plan_parallel.cpp.
namespace app {

/// The modes of the command.
enum PlanMode : Modes { kPlanGrid = 1, kPlanAuto = 2, kPlanParallel = 4, kPlanProgram = 8 };

/// Larger plans share traces and interpolate batches: each row would take about five traces.
inline constexpr std::size_t kMostTracedRows = 24;

struct PlanOptions {
    StepForm workload;  // recipes and precision are lists here
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
    std::vector<std::string> program_traces;  // of a program of the user's, in place of a model
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

/// The mode of another file. `options` must live until the command has run.
Mode parallel_plan_mode(const PlanOptions& options);

/// `plan --parallel`, if batches are guessed: the largest ones. `sweep --parallel`, if they are
/// doubled: all that were tried.
Outcome run_parallel(const PlanOptions& options, BatchOrder order, Output& output);

}  // namespace app
