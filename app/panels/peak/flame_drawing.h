#pragma once

#include "app/workspace/selection.h"
#include "profiler/view/peak/flame_view.h"

#include <imgui.h>

#include <optional>

/// The boxes of the Flame graph, drawn directly into a draw list.
namespace app {

struct FlameBoxLook {
    bool faded = false;    // holds nothing of the selected category, or is not searched for
    bool matches = false;  // the search
    bool picked = false;   // the selected tensor
    bool hovered = false;
    std::optional<profiler::Category> category;  // the selected one
};

/// A node of one trace: in colour and pattern of its category; a node of several categories has a
/// strip at its lower edge with the share of each.
void draw_flame_box(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const profiler::FlameView& view,
                    const profiler::FlameNode& node, const FlameBoxLook& look);

/// A node of the difference: what A and B share is grey, what B adds is filled, and what B does not
/// need is hollow.
void draw_flame_change(ImDrawList* draw, ImVec2 upper, ImVec2 lower,
                       const profiler::FlameView& view, const profiler::FlameNode& node,
                       const FlameBoxLook& look);

/// Neighbours that are narrower than a pixel.
void draw_flame_merged(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const profiler::FlameBox& box);

}  // namespace app
