#pragma once

#include "app/workspace/planner_form.h"
#include "app/workspace/selection.h"
#include "profiler/analysis/advice/explanation.h"
#include "profiler/view/allocator/what_if_view.h"
#include "profiler/view/kernels/movement_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/peak/flame_view.h"
#include "profiler/view/peak/ledger_view.h"
#include "profiler/view/plan/recipe_frontier_view.h"

#include <cstdint>
#include <optional>
#include <string>

/// What the user asks to see in each panel.
namespace app {

// ---- panels with one window ------------------------------------------------------------------

/// The GPU for which recipes are planned.
struct GpuForm {
    std::string gpu = "a100-80gb";  // its id
    bool is_chosen = false;         // by the user; before that it is the GPU of A, if that has one

    friend bool operator==(const GpuForm&, const GpuForm&) = default;
};

/// What the Recipe frontier shows, of the same step as the Planner.
struct FrontierQuery {
    profiler::FrontierAxis axis = profiler::FrontierAxis::kPeakMemory;
    std::string from;  // the dots that the user selected, as canonical recipes; empty: none
    std::string to;
    bool is_drawn = false;  // the panel has been drawn; before that nothing is planned

    friend bool operator==(const FrontierQuery&, const FrontierQuery&) = default;
};

/// What the Movement panel shows.
struct MovementQuery {
    profiler::MovementOps ops = profiler::MovementOps::kRun;
    profiler::MovementScope scope = profiler::MovementScope::kLayers;
    profiler::MovementColumn sort_by = profiler::MovementColumn::kTime;
    bool descending = true;
    std::string gpu;        // id of the card whose roofline is drawn; empty: of the trace's own
    bool is_drawn = false;  // the panel has been drawn; before that its view is not built

    friend bool operator==(const MovementQuery&, const MovementQuery&) = default;
};

/// What the Ranks panel shows.
struct RanksQuery {
    int width_px = 0;  // of its plot; 0: not drawn yet, so nothing is built

    friend bool operator==(const RanksQuery&, const RanksQuery&) = default;
};

/// What the search field holds.
struct SearchQuery {
    std::string text;
    bool is_open = false;  // the field is on the screen; otherwise nothing is searched

    friend bool operator==(const SearchQuery&, const SearchQuery&) = default;
};

struct PanelQueries {
    GpuForm plan;
    PlannerForm planner;
    FrontierQuery frontier;
    MovementQuery movement;
    RanksQuery ranks;
    profiler::ExplainTarget advice;  // what remedies of A are for; empty fields: as A recorded
    SearchQuery search;
};

// ---- panels that may have several windows, each with its query ---------------------------------

/// What the ledger shows and in which order.
struct LedgerQuery {
    std::string filter;
    profiler::LedgerColumn sort_by = profiler::LedgerColumn::kSize;
    bool descending = true;
    bool only_differences = false;
    bool compare = true;  // show B beside A, when there is a B
    profiler::LedgerGrouping grouping = profiler::LedgerGrouping::kTensors;

    friend bool operator==(const LedgerQuery&, const LedgerQuery&) = default;
};

/// What the Flame graph shows.
struct FlameQuery {
    profiler::FlameMode mode = profiler::FlameMode::kA;
    bool combine_layers = false;
    bool by_stack = false;  // the lines of code instead of the modules
    std::string search;
    bool is_drawn = false;  // the panel has been drawn; before that its view is not built

    friend bool operator==(const FlameQuery&, const FlameQuery&) = default;
};

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
    std::optional<int64_t> segment;  // address of the explained segment; empty: the newest
    WhatIfQuery what_if;

    friend bool operator==(const BlocksQuery&, const BlocksQuery&) = default;
};

/// What the Inspector describes.
struct InspectorQuery {
    /// The selection when the user pinned it; empty: what is selected now. A pin ends when A, B or
    /// the alignment of their times changes.
    std::optional<Selection> pinned;
};

/// The queries of the windows that have the same number: "Ledger 2", "Flame graph 2", ...
struct WindowQueries {
    LedgerQuery ledger;
    FlameQuery flame;
    BlocksQuery blocks;
    InspectorQuery inspector;
};

}  // namespace app
