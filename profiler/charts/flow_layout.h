#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/view/movement_view.h"

#include <cstdint>
#include <vector>

/// Where the ops of a layer and the lines between them stand.
///
///      forward                      backward
///     ┌────────┐   saved           ┌────────┐
///   ╭─│ QKV    │═══════════════════│ QKV dW │─╮
///   │ └───┃────┘                   └────▲───┘ │
///   │ ┌───▼────┐                   ┌────┃───┐ │
///   ╰─│ softmax│───────────────────│ softm. │─╯
///     └────────┘                   └────────┘
namespace profiler {

enum class FlowPathKind : uint8_t {
    kNext,   // to the next node of the column, straight
    kSkip,   // past other nodes, around the outside
    kSaved,  // from forward to backward
};

struct FlowPath {
    FlowPathKind kind = FlowPathKind::kNext;
    std::vector<Point> points;
    double width = 1;
    Point label;             // start of the text
    bool has_label = false;  // there is room for one
};

struct FlowLayout {
    std::vector<Rect> nodes;      // as the flow's
    std::vector<FlowPath> paths;  // as the flow's edges
    double forward_x = 0;         // middles of the columns
    double backward_x = 0;
    double bottom = 0;
};

/// The two columns begin at `area.y` and are as high as the longer of them needs.
FlowLayout layout_flow(const MovementFlow& flow, const Rect& area);

}  // namespace profiler
