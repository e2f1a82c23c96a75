#pragma once

namespace app {

/// Makes the sleeping frame loop draw; any thread may call it while a window is open.
void wake_window();

}  // namespace app
