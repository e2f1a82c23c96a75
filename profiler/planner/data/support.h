#pragma once

#include "models/config/workload.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"

#include <optional>
#include <string>
#include <vector>

/// What PyTorch refuses on a GPU, before anything is traced.
namespace profiler {

/// One sentence that says why the GPU cannot run the workload and what to choose; none when it
/// can.
std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu);

/// Why modelled times with an attention are not to be compared with those of the others on a GPU,
/// as a clause for a note; empty: they are. Searches leave such an attention out.
std::string why_not_comparable(models::Attention attention, const Gpu& gpu,
                               const Calibration& calibration);

/// Those of `recipes` that the GPU can run in every layer of the workload.
std::vector<models::Recipe> supported_recipes(std::vector<models::Recipe> recipes,
                                              const models::Workload& workload, const Gpu& gpu);

}  // namespace profiler
