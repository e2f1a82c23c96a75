#pragma once

#include "profiler/planner/step/batch_interpolation.h"

#include <string>

/// Where plans get traces of steps that ran on no GPU.
namespace app {

/// The worker, which runs the model on libtorch's Meta device. `cancelled`, which must outlive the
/// source, is set when the user interrupts; nothing is traced after that.
profiler::MetaTraceSource meta_trace_source(bool& cancelled);

/// The traces in a folder, by workload and batch size: `temposcope capture` writes such.
/// Errors: the folder cannot be read. A workload that is not there is an error of its row.
models::Result<profiler::MetaTraceSource> trace_folder_source(const std::string& folder);

}  // namespace app
