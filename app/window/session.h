#pragma once

#include "app/user/settings.h"

namespace app {

class Workspace;

/// What is open and chosen, for the next start. Predictions are no files, so they are left out.
Session session_of(const Workspace& workspace);

/// Opens the traces again and chooses A and B among them once they are read. A file that is gone is
/// named in a notice.
void reopen_traces(Workspace& workspace, const Session& session);

/// The GPU and the Planner's step. What cannot be read keeps its default.
void restore_choices(Workspace& workspace, const Session& session);

}  // namespace app
