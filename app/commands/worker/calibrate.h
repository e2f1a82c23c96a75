#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"

#include <string>

namespace app {

/// `sweep --calibrate`: the worker measures `device` ("auto", "cpu" or "cuda"), and the user's
/// planner files get rows of it.
Outcome run_calibration(const std::string& device, Output& output);

}  // namespace app
