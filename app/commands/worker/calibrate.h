#pragma once

#include "app/commands/console/outcome.h"
#include "app/commands/console/terminal.h"

#include <string>

namespace app {

/// `sweep --calibrate`: the worker measures `device` ("auto", "cpu" or "cuda"), and the result is
/// added to the user's planner files.
Outcome run_calibration(const std::string& device, Output& output);

}  // namespace app
