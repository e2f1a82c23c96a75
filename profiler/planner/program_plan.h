#pragma once

#include "models/config/result.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/planner/plan.h"
#include "profiler/planner/step/step_work.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The plan of a program of the user's: from traces of two batches to every batch on every GPU.
namespace profiler {

/// What a step takes more where one expert of a mixture gets more tokens than its share.
struct UnevenExperts {
    double imbalance = 1;              // times the share
    std::vector<int64_t> extra_bytes;  // at the peak, of each step
};

/// Which backends of scaled_dot_product_attention ran.
struct AttentionUse {
    bool flash = false;
    bool cudnn = false;
    bool other_16_bit = false;  // another one, with 16-bit queries
};

struct ProgramSteps {
    PlannedProgram program;
    std::vector<StepWork> steps;  // by rising batch, at least two
    std::string device;           // on which they were recorded
    AttentionUse attention;
    std::optional<UnevenExperts> uneven_experts;  // none: the traces do not tell
};

/// Errors: fewer than two batches; traces that are not of the same program, recipe and number of
/// steps; a size that grows faster than the batch, with what to do instead.
models::Result<ProgramSteps> program_steps_of(std::vector<NamedTrace> traces);

/// A row for each GPU. One on which torch may choose another attention is refused.
Plan make_program_plan(const PlanRequest& request, const PlannerData& data,
                       const ProgramSteps& program);

using GpuGroup = std::vector<const Gpu*>;

/// The GPUs that make_program_plan refuses for their attention. Torch chooses by architecture, so
/// the GPUs of a group run the same attention: a plan of each may use steps of the first one.
std::vector<GpuGroup> gpus_of_other_attention(const PlanRequest& request, const PlannerData& data,
                                              const ProgramSteps& program);

}  // namespace profiler
