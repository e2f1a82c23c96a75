#pragma once

#include "app/widgets/marks.h"
#include "profiler/trace/trace.h"

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

/// Names beside dots that do not cover each other.
namespace app {

struct DotLabel {
    ImVec2 dot;
    float radius = 0;
    std::string text;
    ImU32 color = 0;
    bool is_bold = false;
    std::string badge;  // "A"; empty: none
    ImU32 badge_color = 0;
    /// The dot's shape and color, repeated before the text: which of dots in one place it names.
    std::optional<profiler::PhaseKind> shape;
    ImU32 shape_color = 0;
};

/// Draws the labels inside `frame` and beside what is `taken`, the first ones first. Each stands
/// beside its dot, with a line to it, where it covers no other label and no dot; a bold one may
/// cover dots. A label without room is left out; the tooltip of the dot has its name.
void draw_dot_labels(ImDrawList* draw, const std::vector<DotLabel>& labels,
                     const std::vector<ImVec2>& dots, const LabelArea& frame,
                     std::vector<LabelArea> taken = {});

}  // namespace app
