#pragma once

#include "app/workspace/document.h"
#include "app/workspace/selection.h"

#include <string_view>

/// What panels say of the open traces beside their pictures, or in the place of them.
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

/// Which file is being read, how much of it is read, and a button to stop. Returns true when the
/// button was clicked.
bool draw_loading(const Documents::Loading& loading);

/// "inferred", beside the legend of categories, where A or B has none of its own.
void draw_inferred_mark(const Selection& selection);

}  // namespace app
