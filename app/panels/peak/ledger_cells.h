#pragma once

#include "profiler/view/peak/ledger_view.h"

#include <cstdint>
#include <optional>

namespace app {

/// Draws one cell of the Ledger's table. Tensors of other categories than the `picked` one are dim,
/// and so are tensors that only B saves. The bar under the bytes is as long as the column is wide
/// for `largest_bytes`.
void draw_ledger_cell(const profiler::LedgerViewRow& row, profiler::LedgerColumn column,
                      std::optional<profiler::Category> picked, int64_t largest_bytes);

}  // namespace app
