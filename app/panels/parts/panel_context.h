#pragma once

#include "app/workspace/workspace.h"

#include <filesystem>
#include <optional>
#include <vector>

namespace app {

/// What every panel draws from. A panel also has its own state, and returns PanelEvents.
struct PanelContext {
    const Workspace& workspace;
    const WindowViews& views;                                // of the window that is drawn
    const std::vector<std::filesystem::path>& recent_files;  // newest first
    /// The time under the mouse, if the mouse was over a panel with a time axis in the last frame.
    std::optional<double> cursor_ns;
};

}  // namespace app
