#pragma once

#include "app/commands/options/command_line.h"
#include "app/user/workload_jobs.h"

/// The options that say which step to train, how, and where to write. `options` must live until
/// the command has run.
namespace app {

/// The modes of `sweep` and `capture`.
enum MeasureMode : Modes {
    kMeasure = 1,
    kMeasureAuto = 2,      // sweep --auto
    kMeasureParallel = 4,  // sweep --parallel
    kCalibrate = 8,        // sweep --calibrate
    kCaptureRanks = 16,    // capture --parallel
    kPredictStep = 32,     // capture --device predict:GPU
    kPredictAuto = 64      // sweep --auto --device predict:GPU
};

/// --hidden, --heads, --intermediate, --dropout and --attention-dropout, which say what a layer is,
/// and --layers, --vocab and --positions, which only a whole model has.
void add_model_size_options(Command& command, StepForm& options, Modes layer_modes = kAllModes,
                            Modes model_modes = kAllModes);

/// --accumulate.
void add_accumulation_option(Command& command, StepForm& options, const char* group = "Options",
                             Modes modes = kAllModes);

/// All options of `capture`, or of the modes of `sweep` that train; only a capture requires a model
/// and an output.
void add_training_options(Command& command, StepForm& options, bool is_capture);

/// Refuse an option that only predictions use, and one that only measurements use.
std::string refuse_in_measurement(const std::string& option);
std::string refuse_in_prediction(const std::string& option);

}  // namespace app
