#pragma once

namespace app {

/// Tells the frame loop that there is something new to draw. Any thread may call it. Does nothing
/// until a window has called set_wake_window, so that code below the window runs without one.
void wake_window();

/// `wake` must be safe to call from any thread for as long as the program runs.
void set_wake_window(void (*wake)());

}  // namespace app
