#pragma once

#include "app/panels/parts/panel_context.h"
#include "profiler/view/peak/flame_view.h"

#include <imgui.h>

#include <memory>
#include <string>
#include <vector>

/// The bytes at one moment over the tree of modules (or call stacks), as an icicle with the root on
/// top. A click on a module zooms to it, a click on a tensor selects it.
namespace app {

struct FlameState {
    std::vector<std::string> focus;  // names from the root to the node that fills the width
    std::string search;              // as typed

    // The picture of the last frame.
    std::weak_ptr<const profiler::FlameView> shown;  // that the members below belong to
    std::size_t focus_node = 0;
    float width = 0;
    profiler::FlameLayout layout;
    ImVec2 corner{};       // upper left, on the screen
    float row_height = 0;  // of a row with its gap
    std::size_t menu_node = 0;
};

PanelEvents draw_flame_panel(const PanelContext& context, FlameState& state);

}  // namespace app
