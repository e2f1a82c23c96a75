#pragma once

#include "app/workspace/selection.h"

#include <string_view>

namespace app {

struct UnfilledTexts {
    const char* icon = "";
    const char* purpose = "";      // what the panel will show, as a sentence
    const char* error_title = "";  // "The timeline could not be drawn"
    const char* working = "";      // "Sampling the memory curve ..."
};

/// Fills a panel on A and B that has no view yet: no trace is open, A holds no recorded step,
/// building the view failed with `error`, or the view is still being built.
void draw_unfilled(const UnfilledTexts& texts, const Selection& selection, std::string_view error);

}  // namespace app
