#pragma once

#include "profiler/view/blocks_view.h"
#include "profiler/view/what_if_view.h"

#include <cstdint>
#include <optional>

namespace app {

/// What other settings of the allocator are tried.
struct WhatIfQuery {
    bool is_open = false;  // the settings stand beside the blocks
    profiler::WhatIfChoice choice;
    bool tries_all = false;
    bool shows_map = false;  // the segments are those of the replay

    friend bool operator==(const WhatIfQuery&, const WhatIfQuery&) = default;
};

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
    int phase_strip_px = 0;  // of the height; 0: there are no phases
    int minimap_px = 0;
    int segment_px = 0;              // width of the largest segment
    std::optional<int64_t> segment;  // address of the one that is explained; empty: the newest
    WhatIfQuery what_if;

    friend bool operator==(const BlocksQuery&, const BlocksQuery&) = default;
};

}  // namespace app
