#pragma once

#include "profiler/view/programs/page_view.h"

#include <string>

namespace profiler {

/// One page for a browser that draws memory over time, the blocks and the ledger, and that zooms,
/// sorts and filters. It loads nothing: script and style are inside (assets/page/), and its
/// Content-Security-Policy lets only these run. Data is JSON whose texts cannot end their element.
/// The same view gives the same bytes.
std::string make_page(const PageView& view);

}  // namespace profiler
