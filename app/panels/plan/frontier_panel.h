#pragma once

#include "app/panels/parts/panel_context.h"
#include "app/panels/plan/frontier_plot.h"

#include <optional>

namespace app {

struct FrontierState {
    std::optional<double> limit_bytes;   // empty: the memory of the GPU
    std::string gpu;                     // that it was set beside; another one forgets it
    std::optional<double> wanted_batch;  // empty: the batch of the step
    FrontierPicture picture;
};

/// Memory or the largest batch against throughput of every recipe of the Planner's step: which
/// recipes no other one beats, which is the fastest within a limit, and what to switch to get from
/// one to another.
PanelEvents draw_frontier_panel(const PanelContext& context, FrontierState& state);

}  // namespace app
