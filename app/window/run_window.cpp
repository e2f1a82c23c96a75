#include "app/window/run_window.h"

#include "app/window/session.h"
#include "app/window/shell.h"

namespace app {

models::Result<void> run_window(const WindowOptions& options) {
    const auto shell = Shell::open({.settings_folder = settings_folder()});
    if (!shell) return tl::unexpected(shell.error());
    Ui& ui = (*shell)->ui();
    if (options.files.empty()) {
        reopen_traces(ui.workspace, ui.settings.session);
    } else {
        ui.workspace.open(options.files);
    }
    (*shell)->run();
    return {};
}

}  // namespace app
