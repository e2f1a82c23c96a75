#pragma once

#include "app/workspace/view_requests.h"
#include "profiler/view/live_blocks_view.h"
#include "profiler/view/segment_map_view.h"
#include "profiler/view/what_if_view.h"

#include <optional>
#include <vector>

/// From the state of the workspace to the requests of the Blocks panel's slots.
namespace app {

std::optional<Wanted<profiler::BlocksRequest>> wanted_blocks(const WindowInputs& inputs);
std::optional<Wanted<profiler::LiveBlocksRequest>> wanted_live_blocks(const WindowInputs& inputs);
std::optional<Wanted<profiler::SegmentMapRequest>> wanted_segments(const WindowInputs& inputs);
std::optional<Wanted<profiler::WhatIfRequest>> wanted_what_if(const WindowInputs& inputs);

/// The blocks of A, and of B if it has a recorded step.
std::vector<profiler::BlockSource> block_sources(const Selection& selection);
/// The trace that the panel draws: 0 is A, also when B was wanted and there is none.
size_t shown_trace(const Selection& selection, const BlocksQuery& query);
/// What the user chose; else by category, or by line of code in a snapshot without ops.
profiler::BlockColoring coloring_of(const Selection& selection, const BlocksQuery& query);
/// Selection::moment_ns, or the peak of A.
double moment_of(const Selection& selection);

}  // namespace app
