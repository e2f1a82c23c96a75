#pragma once

#include "app/user/settings.h"
#include "models/config/result.h"

#include <filesystem>
#include <vector>

/// The window from its start to its end, and what it remembers for the next start.
namespace app {

class Workspace;

struct WindowOptions {
    std::vector<std::filesystem::path> files;  // files to open; a folder means the traces in it
};

/// Opens the window and returns when the user closes it. Files that do not open are reported in the
/// window. Errors: no display, no OpenGL.
models::Result<void> run_window(const WindowOptions& options);

/// What is open and chosen, for the next start. Predictions are no files, so they are left out.
Session session_of(const Workspace& workspace);

/// Opens the traces again and chooses A and B among them once they are read. A file that is gone is
/// named in a notice.
void reopen_traces(Workspace& workspace, const Session& session);

/// The GPU and the Planner's step. What cannot be read keeps its default.
void restore_choices(Workspace& workspace, const Session& session);

}  // namespace app
