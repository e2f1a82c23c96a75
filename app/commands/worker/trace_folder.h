#pragma once

#include "profiler/planner/step/batch_interpolation.h"

#include <string>

namespace app {

/// The traces in a folder, as `temposcope capture` writes them, by workload and batch size.
/// Errors: the folder cannot be read. If a workload is missing, only its row gets an error.
models::Result<profiler::StepSource> trace_folder_source(const std::string& folder);

}  // namespace app
