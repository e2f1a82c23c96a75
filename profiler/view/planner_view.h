#pragma once

#include "profiler/planner/plan.h"
#include "profiler/planner/step/batch_interpolation.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A plan of several recipes on one GPU, as lines over the batch size. Every batch can be read from
/// it, so that a cursor can move without another plan.
namespace profiler {

/// What sliders and curves end at.
inline constexpr int64_t kLargestPlannedBatch = BatchInterpolation::kLargestBatch;

struct PlannerRecipe {
    std::string name;
    std::optional<int64_t> max_batch;  // empty: none fits, or there is no plan
    std::string max_batch_text;        // max_batch_text(row)
    std::string why;                   // why no batch fits; else empty
    std::string other_limit;           // what limits the batch, if not memory; else empty
    std::string max_batch_note;        // max_batch_note(row)
    int64_t bytes_at_max = 0;
    std::vector<MemoryPoint> memory;  // by rising batch
    std::vector<PlanPoint> speed;     // by rising batch
    // What is drawn: x and y of two lines. Memory goes on above the ceiling as a straight line.
    std::vector<double> memory_x;
    std::vector<double> memory_y;  // bytes
    std::vector<double> speed_x;
    std::vector<double> speed_y;  // sequences/s
    /// How far times may be off, as a share, where the plan says so; else 0. Then there is no band.
    double speed_error = 0;
    std::vector<double> speed_low;  // the band around speed_y
    std::vector<double> speed_high;
};

struct PlannerView {
    std::string gpu;
    int64_t usable_bytes = 0;
    int64_t last_batch = 8;  // ends of the axes
    double last_bytes = 1;
    double last_rate = 1;
    std::vector<PlannerRecipe> recipes;  // in the order of the plan
    std::vector<std::string> notes;      // assumptions, each once
    std::string band_text;  // "±20 %: times are not calibrated on this GPU"; empty without bands
};

/// The figures of one row; without colour and lines.
PlannerRecipe make_planner_recipe(const PlanRow& row);

/// At any batch: interpolated between those of the plan; beyond the last one the line goes on.
/// Require `memory`, or `speed`, not to be empty.
double memory_bytes_at(const PlannerRecipe& recipe, double batch);
double step_ns_at(const PlannerRecipe& recipe, double batch);
/// Sequences per second of a step; more than one GPU multiplies them.
double rate_at(const PlannerRecipe& recipe, double batch);

/// `plan` has one GPU and memory curves.
PlannerView build_planner_view(const Plan& plan);

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

/// One recipe at one batch. Figures that are not known are empty.
struct PlannerReading {
    bool has_memory = false;
    bool fits = false;
    int64_t needed_bytes = 0;
    std::string memory_text;         // "11.1 GiB"
    std::string gauge_text;          // "11.1 of 14.6 GiB"
    std::vector<PlannerPart> parts;  // from the bottom of a stack to its top
    std::string step_text;           // "412 ms"
    std::string rate_text;           // "77.6"
    std::string why;                 // why it does not fit; else empty
    /// The largest batch that fits, and of the planned recipes that fit this batch the fastest.
    std::vector<PlannerFix> fixes;
};

/// Between the batches of the plan, memory and time are interpolated.
PlannerReading read_planner(const PlannerView& view, std::size_t recipe, int64_t batch_size);

}  // namespace profiler
