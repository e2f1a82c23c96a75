#include "app/window/run_window.h"

#include "app/window/shell.h"

namespace app {

models::Result<void> run_window(const WindowOptions& options) {
    const auto shell = Shell::open({.settings_folder = settings_folder()});
    if (!shell) return tl::unexpected(shell.error());
    (*shell)->ui().workspace.open(options.files);
    (*shell)->run();
    return {};
}

}  // namespace app
