#pragma once

#include "models/config/result.h"

#include <filesystem>
#include <vector>

namespace app {

struct WindowOptions {
    std::vector<std::filesystem::path> files;  // files to open; a folder means the traces in it
};

/// Opens the window and returns when the user closes it. Files that do not open are reported in the
/// window. Errors: no display, no OpenGL.
models::Result<void> run_window(const WindowOptions& options);

}  // namespace app
