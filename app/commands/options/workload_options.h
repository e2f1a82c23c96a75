#pragma once

#include "app/commands/console/outcome.h"
#include "app/user/workload_jobs.h"

namespace CLI {
class App;
}

/// The options that `capture` and `sweep` share: which step to train, how, and where to write.
namespace app {

/// --layers, --hidden, --heads, --intermediate, --vocab, --dropout, --attention-dropout.
void add_model_size_options(CLI::App& command, WorkloadOptions& options);

void add_workload_options(CLI::App& command, WorkloadOptions& options);
/// Of a command that can also predict: the GPUs, and what is assumed around them.
void add_prediction_options(CLI::App& command, WorkloadOptions& options);
/// Errors: an option was given that a prediction, or a measurement, does not look at.
models::Result<void> check_prediction_options(const CLI::App& command,
                                              const WorkloadOptions& options);

}  // namespace app
