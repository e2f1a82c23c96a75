#pragma once

#include "app/window/shell.h"

namespace tests {

/// Runs the window's own loop, without the test engine, while a worker reports all the time: the
/// window must not draw a frame for each report, nor any without cause. 0 when it does not.
int check_pacing(app::Shell& shell);

}  // namespace tests
