#pragma once

#include "app/commands/options/command_line.h"
#include "app/user/workload_jobs.h"

/// The options that say which step to train, how, and where to write. `options` must live until
/// the command has run.
namespace app {

/// --layers, --hidden, --heads, --intermediate, --vocab, --positions, --dropout and
/// --attention-dropout.
void add_model_size_options(Command& command, WorkloadOptions& options);

/// --accumulate.
void add_accumulation_option(Command& command, WorkloadOptions& options,
                             const char* group = "Options");

/// All options of `capture`, which can also predict.
void add_capture_options(Command& command, WorkloadOptions& options);
/// All options of `sweep`, which needs neither model nor output to calibrate.
void add_sweep_options(Command& command, WorkloadOptions& options);

/// Errors: an option that only measurements use was given for a prediction, or the other way round.
models::Result<void> check_prediction_options(const Command& command,
                                              const WorkloadOptions& options);

}  // namespace app
