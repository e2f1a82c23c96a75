#pragma once

#include "models/config/workload.h"
#include "profiler/planner/gpu.h"

#include <optional>
#include <string>

/// What PyTorch refuses on a card, before anything is traced.
namespace profiler {

/// One sentence that says why the card cannot run the workload and what to choose; none when it
/// can.
std::optional<std::string> why_not_supported(const models::Workload& workload, const Gpu& gpu);

}  // namespace profiler
