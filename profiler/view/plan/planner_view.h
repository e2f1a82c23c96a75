#pragma once

#include "profiler/planner/plan_figures.h"
#include "profiler/tables/columns.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// A plan of several recipes on one GPU, as lines over the batch size. Every batch can be read from
/// it, so that a cursor can move without another plan.
namespace profiler {

/// What sliders and curves end at.
inline constexpr int64_t kLargestPlannedBatch = BatchInterpolation::kLargestBatch;

/// A planned recipe and what is drawn of it: x and y of two lines.
struct PlannerRecipe {
    PlanRow row;
    std::vector<double> memory_x;  // goes on above the ceiling as a straight line
    std::vector<double> memory_y;  // bytes
    std::vector<double> speed_x;
    std::vector<double> speed_y;    // sequences/s
    std::vector<double> speed_low;  // the band around speed_y; empty where times are calibrated
    std::vector<double> speed_high;

    const std::string& name() const { return row.workload.recipe_name; }
};

/// Where the axes end.
struct PlannerAxes {
    int64_t last_batch = 8;
    double last_bytes = 1;
    double last_rate = 1;
};

struct PlannerView {
    std::string gpu;
    int64_t usable_bytes = 0;
    PlannerAxes axes;
    std::vector<PlannerRecipe> recipes;  // in the order of the plan
    std::vector<std::string> notes;      // assumptions, each once
    std::string band_text;  // "±14 %: rates that others measured on this GPU"; empty without bands
};

/// `plan` has one GPU and memory curves.
PlannerView build_planner_view(const Plan& plan);

/// Without times where the batch does not fit.
PlanFigures planner_figures(const PlannerRecipe& recipe, int64_t batch_size);

/// A part of what the GPU holds at the peak.
struct PlannerPart {
    std::optional<Category> category;  // empty: no tensors
    std::string label;
    int64_t bytes = 0;
    bool is_gap = false;  // unused between blocks
};

/// A change after which a step fits.
struct PlannerFix {
    std::string text;  // "Batch 14: 583 sequences/s"
    std::optional<int64_t> batch_size;
    std::optional<std::size_t> recipe;  // index into PlannerView::recipes
};

/// One recipe at one batch.
struct PlannerReading {
    PlanFigures figures;
    std::string gauge_text;          // "11.1 of 14.6 GiB"
    std::vector<PlannerPart> parts;  // from the bottom of a stack to its top
    /// The largest batch that fits, and of the planned recipes that fit this batch the fastest.
    std::vector<PlannerFix> fixes;
};
PlannerReading read_planner(const PlannerView& view, std::size_t recipe, int64_t batch_size);

inline constexpr std::size_t kMostPins = 4;

/// One recipe of a plan that the user keeps in sight while others are made.
struct PlannerPin {
    PlannerRecipe recipe;    // its curves go on in the plots
    std::string detail;      // "bert-large, 24 layers, S 512, fp32, NVIDIA T4"
    int64_t batch_size = 1;  // of the figures
    PlanFigures figures;
};

/// `detail` says what the recipe was planned for. `recipe` is an index into view.recipes.
PlannerPin pin_of(const PlannerView& view, std::size_t recipe, int64_t batch_size,
                  std::string detail);

/// So that a plan and its pins can be seen.
PlannerAxes axes_of(const PlannerView& view, std::span<const PlannerPin> pins);

// ---- tables for other programs ------------------------------------------------------------------

/// A row for each recipe and batch of the plan.
DataTable planner_data(const PlannerView& view);

}  // namespace profiler
