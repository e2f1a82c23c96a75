#include "app/window/run_window.h"

#include "app/window/shell.h"

#include <fmt/format.h>

#include <cstdio>

namespace app {

int run_window(const WindowOptions& options) {
    const auto shell = Shell::open({.settings_folder = settings_folder()});
    if (!shell) {
        fmt::print(stderr, "temposcope: {}\n", shell.error().message);
        return 1;
    }
    (*shell)->ui().workspace.open(options.files);
    (*shell)->run();
    return 0;
}

}  // namespace app
