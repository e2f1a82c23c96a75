#pragma once

#include "app/commands/plan_request.h"

namespace app {

class Output;

/// `temposcope plan --parallel`: the largest batch over cards, their number and strategies. Torch's
/// own code finds it on virtual GPUs.
Outcome run_fits(const PlanOptions& options, Output& output);

/// Errors: an option was given that these runs do not have.
models::Result<void> check_fits_options(const Command& command);

}  // namespace app
