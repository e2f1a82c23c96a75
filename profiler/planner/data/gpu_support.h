#pragma once

#include "models/config/workload.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"

#include <string>
#include <vector>

/// What PyTorch refuses to run on a GPU, known before anything is traced.
namespace profiler {

/// Errors: the GPU cannot run the workload at any batch; the message says what to choose instead.
models::Result<void> check_gpu_support(const models::Workload& workload, const Gpu& gpu);

/// Why the modelled times of this attention cannot be compared with those of other attentions on
/// this GPU, as a clause for a note; empty if they can. The recipe search leaves such an attention
/// out.
std::string why_not_comparable(models::Attention attention, const Gpu& gpu,
                               const Calibration& calibration);

/// The recipes that the GPU can run in every layer of the workload.
std::vector<models::Recipe> supported_recipes(std::vector<models::Recipe> recipes,
                                              const models::Workload& workload, const Gpu& gpu);

}  // namespace profiler
