#pragma once

#include "app/panels/parts/panel_context.h"

#include <cstdint>

/// What fills the memory at the peak, or where memory ran out: by line with its code, by module, by
/// category.
namespace app {

struct LinesState {
    enum class GroupBy : uint8_t { kLine, kModule, kCategory };
    GroupBy group_by = GroupBy::kLine;
};

PanelEvents draw_lines_panel(const PanelContext& context, LinesState& state);

}  // namespace app
