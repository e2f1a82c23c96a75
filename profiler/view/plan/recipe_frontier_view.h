#pragma once

#include "profiler/planner/plan_figures.h"
#include "profiler/planner/search/step_recipes.h"
#include "profiler/tables/columns.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Memory against throughput of every recipe that a step may have, each a dot, and the frontier:
/// the recipes that no other recipe beats in both.
///
///     seq/s │        ┌──●───        ● on the frontier
///           │   ┌──●─┘  ○  ○        ○ beaten: another recipe is as small and as fast
///           │   ● ○   ○
///           └─────────────── peak memory
///
/// Every figure is predicted, but for those of open traces (MeasuredDot).
namespace profiler {

/// What x is. y is throughput: at the request's batch, or at the best batch of each recipe.
enum class FrontierAxis : uint8_t { kPeakMemory, kMaxBatch };

/// The recipe of A or B.
struct PairRecipe {
    std::string letter;  // "A"
    std::string recipe;  // canonical text

    friend bool operator==(const PairRecipe&, const PairRecipe&) = default;
};

/// An open trace of the same step.
struct MeasuredStep {
    std::string name;    // "tempo (before)"
    std::string recipe;  // canonical text
    int64_t peak_allocated_bytes = 0;
    int64_t step_time_ns = 0;  // 0: measured on the CPU, whose times say nothing about a GPU

    friend bool operator==(const MeasuredStep&, const MeasuredStep&) = default;
};

struct FrontierRequest {
    /// A row for each recipe, for every batch on one GPU; null: none yet.
    std::shared_ptr<const Plan> planned;
    FrontierAxis axis = FrontierAxis::kPeakMemory;
    int64_t batch_size = 1;
    std::string gpu;                         // its id
    const std::vector<Gpu>* gpus = nullptr;  // borrowed: the catalogue
    std::vector<PairRecipe> pair;
    std::vector<MeasuredStep> measured;

    friend bool operator==(const FrontierRequest&, const FrontierRequest&) = default;
};

struct RecipeDot {
    std::string recipe;  // canonical text
    std::string name;    // "tempo"; without a preset "gelu=in_place,masks=bit"
    std::string title;   // "tempo"; without a preset its switches in words
    std::string detail;  // what the title does not say: the switches of a preset, else the name
    bool is_preset = false;
    double x = 0;  // bytes, or the largest batch
    double y = 0;  // sequences/s
    bool is_on_frontier = false;
    int num_switches = 0;                  // that differ from the baseline
    std::optional<std::size_t> beaten_by;  // a dot of the frontier that is at least as good
    PlanFigures figures;                   // at the request's batch
};

/// Memory of one or more GPUs, as a vertical line.
struct MemoryCeiling {
    double bytes = 0;
    std::string label;  // "T4", "A10, L4 +2"
    bool is_chosen = false;
};

struct MarkedDot {
    std::string letter;
    std::size_t dot = 0;
};

struct MeasuredDot {
    std::size_t dot = 0;  // its prediction
    std::string name;
    double x = 0;
    double y = 0;  // predicted if the trace was measured on the CPU
    bool is_memory_only = false;
    std::string memory_text;  // "11.0 GiB, 2.7 % less than predicted"
    std::string rate_text;    // "74.2, 1.3 % more than predicted"; empty if memory only
};

struct RecipeFrontierView {
    FrontierAxis axis = FrontierAxis::kPeakMemory;
    int64_t batch_size = 1;
    std::string gpu;  // its short name
    int64_t usable_bytes = 0;
    std::vector<RecipeDot> dots;        // in the order of the plan
    std::vector<std::size_t> frontier;  // dots, by rising x
    std::vector<double> line_x;         // the frontier as a stepped line
    std::vector<double> line_y;
    std::vector<MemoryCeiling> ceilings;  // inside the axis and the GPU's own; by rising memory
    std::vector<MarkedDot> marks;
    std::vector<MeasuredDot> measured;
    std::vector<RefusedRecipe> refused;  // planned, but runs at no batch
    std::vector<std::string> notes;      // assumptions, each once
    std::string same_batch_reason;       // what gives all recipes one largest batch; else empty
    double first_x = 0;                  // ends of the axes
    double last_x = 1;
    double first_y = 0;
    double last_y = 1;
};

RecipeFrontierView build_recipe_frontier_view(const FrontierRequest& request);

/// The fastest dot within a limit: at most so many bytes, or at least so large a largest batch. Of
/// equals the one with the fewest switches. Empty: none.
std::optional<std::size_t> best_within(const RecipeFrontierView& view, double limit);

/// Of the dots at most 1 % slower than `best`, the dot with the least memory. Often the better
/// choice: predicted times err by more than 1 %. Empty if none saves 1 % of the memory of `best`,
/// or if x is not memory.
std::optional<std::size_t> smaller_near_tie(const RecipeFrontierView& view, std::size_t best);

/// The dot with this canonical recipe.
std::optional<std::size_t> find_dot(const RecipeFrontierView& view, const std::string& recipe);

/// One switch of a path. Figures are against the step before; texts of a recipe that is not planned
/// are empty.
struct PathStep {
    std::string change;  // "in-place GELU"
    std::string recipe;  // canonical text, after the change
    bool is_planned = false;
    int64_t saved_bytes = 0;
    int64_t lost_ns = 0;
    std::string memory_text;  // "-1.50 GiB"
    std::string time_text;    // "+2.1 ms"; "≈ 0" below a thousandth of the step
    std::string gain_text;    // "714 MiB/ms", "free", "no gain"
};

struct RecipePath {
    std::vector<PathStep> steps;
    PathStep total;        // from end to end
    std::string why_none;  // why there are no steps; else empty
};

/// What to switch to get from one dot to another, one switch a step: first what saves memory and
/// costs no time, then by bytes saved for each millisecond lost. Where the switches only cost
/// memory, by time gained for each byte. A switch that only works with another comes with it.
RecipePath recipe_path(const RecipeFrontierView& view, std::size_t from, std::size_t to);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each recipe.
DataTable frontier_data(const RecipeFrontierView& view);
/// A row for each switch.
DataTable path_data(const RecipePath& path);

}  // namespace profiler
