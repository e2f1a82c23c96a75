#pragma once

#include "profiler/view/blocks_view.h"

#include <cstdint>
#include <optional>

namespace app {

/// What the Blocks panel shows, and how large its pictures are.
struct BlocksQuery {
    enum class Show : uint8_t { kA, kB, kDifference };

    Show show = Show::kA;
    profiler::BlockOrder order = profiler::BlockOrder::kStack;
    std::optional<profiler::BlockColoring> coloring;  // see coloring_of
    double low_bytes = 0;  // the visible part of the vertical axis; all of it if both are 0
    double high_bytes = 0;
    int width_px = 0;  // 0: not drawn yet
    int height_px = 0;
    int minimap_px = 0;
    int segment_px = 0;  // width of the largest segment

    friend bool operator==(const BlocksQuery&, const BlocksQuery&) = default;
};

}  // namespace app
