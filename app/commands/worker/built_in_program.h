#pragma once

#include "app/commands/worker/program_run.h"
#include "models/config/parallel.h"

/// A built-in model as a program of Python, which torch's own wrappers can spread over many GPUs.
namespace app {

/// The run of three steps, as far as model and ranks say it. It starts the interpreter that
/// TEMPOSCOPE_PYTHON names; without it, python3. Further arguments may follow the words.
/// Errors: as models::validate; the package is missing.
models::Result<ProgramRun> built_in_program(const models::Workload& workload,
                                            const models::Parallel& parallel, int64_t world_size);

}  // namespace app
