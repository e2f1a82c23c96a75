#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <vector>

namespace app {

struct WindowOptions {
    std::vector<std::filesystem::path> files;  // to open; a folder stands for the traces in it
};

/// Opens the window and returns when the user closes it. Errors: no display, no OpenGL. Files that
/// do not open are reported in the window.
models::Result<void> run_window(const WindowOptions& options);

}  // namespace app
