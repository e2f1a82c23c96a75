#pragma once

#include "app/workspace/documents.h"

namespace app {

/// Which file is being read, how much of it is read, and a button to stop. Returns true when the
/// button was clicked.
bool draw_loading(const Documents::Loading& loading);

}  // namespace app
