#pragma once

#include <filesystem>
#include <vector>

namespace app {

struct WindowOptions {
    std::vector<std::filesystem::path> files;  // to open; a folder stands for the traces in it
};

/// Opens the window and returns when the user closes it: 0, or 1 after one sentence on standard
/// error (no display, no OpenGL). Files that do not open are reported in the window.
int run_window(const WindowOptions& options);

}  // namespace app
