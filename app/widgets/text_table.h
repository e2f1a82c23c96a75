#pragma once

#include "profiler/tables/text_table.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace app {

/// A table of text in the room that is left; it scrolls in both directions. `marks` stand before
/// the first cell of each row: A or B. Returns the row that was clicked.
std::optional<std::size_t> draw_text_table(const profiler::TextTable& table,
                                           const std::vector<const char*>& marks);

}  // namespace app
