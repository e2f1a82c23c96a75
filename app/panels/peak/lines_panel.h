#pragma once

#include "app/panels/parts/panel_context.h"

#include <cstdint>
#include <optional>

/// What fills the memory at the peak, or where memory ran out: by line with its code, by module, by
/// category.
namespace app {

struct LinesState {
    enum class GroupBy : uint8_t { kLine, kModule, kCategory };
    std::optional<GroupBy> group_by;  // that the user chose
};

PanelEvents draw_lines_panel(const PanelContext& context, LinesState& state);

}  // namespace app
