#pragma once

#include "profiler/planner/step/batch_interpolation.h"

#include <string>

/// Sources of the traced steps from which plans are made.
namespace app {

/// The worker, which traces the model on libtorch's Meta device. `cancelled` is set when the user
/// interrupts, and nothing is traced after that. It must outlive the source.
profiler::MetaTraceSource meta_trace_source(bool& cancelled);

/// The traces in a folder, as `temposcope capture` writes them, by workload and batch size.
/// Errors: the folder cannot be read. If a workload is missing, only its row gets an error.
models::Result<profiler::MetaTraceSource> trace_folder_source(const std::string& folder);

}  // namespace app
