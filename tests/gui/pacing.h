#pragma once

#include "app/window/shell.h"

namespace tests {

/// Runs the window's own loop, without the test engine. Checks that an idle window draws no frames,
/// and that a window does not draw a frame for each report of a worker. Returns 0 if all checks
/// pass.
int check_pacing(app::Shell& shell);

/// The same loop: checks that every picture arrives of what was asked for, with no input after
/// that. Needs temposcope-worker.
int check_arrivals(app::Shell& shell);

}  // namespace tests
