#include "app/window/run_window.h"

#include "app/window/session.h"
#include "app/window/shell.h"

namespace app {

models::Result<void> run_window(const WindowOptions& options) {
    const auto open_files = [&](Ui& ui) {
        if (options.files.empty()) {
            reopen_traces(ui.workspace, ui.settings.session);
        } else {
            ui.workspace.open(options.files);
        }
    };
    const auto shell =
        Shell::open({.settings_folder = settings_folder(), .before_window = open_files});
    if (!shell) return tl::unexpected(shell.error());
    (*shell)->run();
    return {};
}

}  // namespace app
