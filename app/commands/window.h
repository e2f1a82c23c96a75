#pragma once

#include "app/commands/console/outcome.h"

#include <string>
#include <vector>

namespace app {

/// Opens the window with these files and returns when the user closes it.
Outcome open_window(const std::vector<std::string>& files);

}  // namespace app
