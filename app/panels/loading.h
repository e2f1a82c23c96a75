#pragma once

#include "app/workspace/document_loader.h"

namespace app {

/// Which file is being read, how far, and a cross to stop; true when that was clicked.
bool draw_loading(const DocumentLoader::Progress& progress);

}  // namespace app
