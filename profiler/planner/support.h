#pragma once

#include "models/config/workload.h"
#include "profiler/planner/gpu.h"

#include <optional>
#include <string>
#include <vector>

/// What PyTorch refuses on a card, before anything is traced.
namespace profiler {

/// One sentence that says why the card cannot run the workload and what to choose; none when it
/// can.
std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu);

/// Those of `recipes` that the card can run in every layer of the workload.
std::vector<models::Recipe> supported_recipes(std::vector<models::Recipe> recipes,
                                              const models::Workload& workload, const Gpu& gpu);

}  // namespace profiler
