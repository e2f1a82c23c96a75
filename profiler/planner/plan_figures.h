#pragma once

#include "profiler/planner/plan.h"

#include <cstdint>
#include <string>
#include <vector>

/// What a plan says of a recipe, in figures and in words. Views hold the PlanRow itself and read it
/// here, so that a figure has one value and one text in every panel, chart and table.
namespace profiler {

/// "gelu=in_place,masks=bit": the recipe as canonical text, also of a preset.
std::string recipe_text(const PlanRow& row);

/// Whether it is known how many sequences fit, if any.
bool knows_max_batch(const PlanRow& row);
/// "46", "≥ 1,048,576" where the search ended, "none" where not even batch 1 fits, "–" where it is
/// not known.
std::string max_batch_text(const PlanRow& row);
/// What goes behind max_batch_text: ", by tensor size" where that limits the batch and not memory,
/// else empty.
std::string max_batch_note(const PlanRow& row);
/// What limits the batch, as a sentence, if not memory; else empty.
std::string other_limit_text(const PlanRow& row);

/// "11.6 at batch 27": the highest throughput; empty without times.
std::string best_text(const PlanRow& row);
/// "batch 8: 20.0 sequences/s predicted".
std::string point_text(const PlanPoint& point);

/// Whether the row has times: a GPU without a kernel model has none.
bool has_times(const PlanRow& row);
/// At any batch: interpolated between those of the plan; beyond the last one the line goes on.
/// Require memory_curve, or curve, not to be empty.
MemoryPoint memory_at(const PlanRow& row, double batch);
PlanPoint speed_at(const PlanRow& row, double batch);

/// A planned recipe at one batch. What is not known is 0, and its text is empty.
struct PlanFigures {
    bool fits = false;
    std::string why;            // why it does not fit; else empty
    int64_t needed_bytes = 0;   // that the GPU must have: tensors, gaps, CUDA context
    int64_t context_bytes = 0;  // of these
    int64_t step_time_ns = 0;
    double sequences_per_s = 0;
    std::string memory_text;     // "11.1 GiB"
    std::string step_text;       // "412 ms"
    std::string rate_text;       // "77.6"
    std::string max_batch_text;  // of every batch
    std::string best_text;       // of every batch
};
PlanFigures figures_at(const PlanRow& row, int64_t batch_size);

/// Adds the row's notes that `notes` lacks.
void add_notes(const PlanRow& row, std::vector<std::string>& notes);

}  // namespace profiler
