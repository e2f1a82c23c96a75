#pragma once

#include "app/commands/options/workload_options.h"

#include <string>

/// The options of `temposcope sweep`, and its modes in other files.
namespace app {

struct SweepOptions {
    StepForm workload;
    bool calibrates = false;
    std::string searches;     // of --auto, with commas between
    std::string parallel;     // strategies, with commas between
    std::string world_sizes;  // numbers of GPUs for them
    std::string chart;
};

/// `options` and `command` must live until the command has run.
Mode auto_sweep_mode(const SweepOptions& options, const Command& command);
Mode calibration_mode(const SweepOptions& options);

}  // namespace app
