#pragma once

#include "models/config/result.h"
#include "profiler/planner/data/calibration.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/software_environment.h"

#include <filesystem>
#include <vector>

/// The data files that plans rest on: ours are in the program, the user's own in a folder.
namespace profiler {

struct PlannerData {
    std::vector<Gpu> gpus;
    std::vector<SoftwareEnvironment> environments;
    Calibration calibration;
};

/// What the program brings. Throws std::logic_error when that is damaged: a test reads it.
const PlannerData& built_in_planner_data();

/// With the user's additions: `gpus.json`, `setups.json` and `calibration.json` in `folder`, each
/// only when it is there. A GPU or a software environment of a known id replaces it; calibration
/// rows come last.
/// Errors: a file that cannot be read or breaks the rules, by file, row and field; names of GPUs,
/// software environments, optimizers and kernel sets that nothing explains.
models::Result<PlannerData> load_planner_data(const std::filesystem::path& folder);

}  // namespace profiler
