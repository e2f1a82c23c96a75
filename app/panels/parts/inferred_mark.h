#pragma once

#include "app/workspace/selection.h"

namespace app {

/// "inferred", beside the legend of categories, where A or B has none of its own.
void draw_inferred_mark(const Selection& selection);

}  // namespace app
