#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"
#include "app/commands/options/command_line.h"
#include "app/user/workload_jobs.h"

#include <string>

/// `sweep --parallel`: memory and throughput of a built-in model over many GPUs as its batch grows,
/// by running it on virtual cards.
namespace app {

struct SweepRanksOptions {
    std::string parallel;     // strategies, with commas between
    std::string world_sizes;  // numbers of GPUs for them
    std::string chart;
};

/// Errors: an option is missing, or was given that means nothing here.
models::Result<void> check_sweep_ranks_options(const Command& command);

Outcome sweep_ranks(const WorkloadOptions& workload, const SweepRanksOptions& options,
                    Output& output);

}  // namespace app
