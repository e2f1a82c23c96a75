#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/view/kernels/movement_view.h"

#include <cstdint>
#include <string_view>
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
///
/// What a checkpoint runs again has a column between them, downwards like forward, each op beside
/// the call of forward that it repeats.
namespace profiler {

enum class FlowPathKind : uint8_t {
    kNext,   // to the next node of the column, straight
    kSkip,   // past other nodes, around the outside
    kSaved,  // to another column
};

struct FlowPath {
    FlowPathKind kind = FlowPathKind::kNext;
    std::vector<Point> points;
    double width = 1;
    Point label;             // start of the text
    bool has_label = false;  // there is room for one
};

struct FlowColumnTitle {
    std::string_view text;
    double x = 0;  // its middle
};

struct FlowLayout {
    std::vector<Rect> nodes;      // as the flow's
    std::vector<FlowPath> paths;  // as the flow's edges
    std::vector<FlowColumnTitle> titles;
    double bottom = 0;
};

/// The columns begin at `area.y` and are as high as the longest of them needs.
FlowLayout layout_flow(const MovementFlow& flow, const Rect& area);

}  // namespace profiler
