#pragma once

#include "app/workspace/blocks_requests.h"
#include "app/workspace/view_requests.h"
#include "app/workspace/view_slot.h"

#include <tuple>

namespace app {

/// A panel has window 1; of some panels the user may open further ones.
inline constexpr int kMostWindows = 4;

template <typename Request, typename View>
using WindowSlot = ViewSlot<WindowInputs, Request, View>;

/// What the windows with one number show: their queries, and the views built from them. Views of
/// closed windows are not built and take no memory; the queries stay for the case that a window
/// comes back.
struct WindowViews {
    WindowQueries queries;
    OpenPanels open;

    WindowSlot<profiler::LedgerRequest, profiler::LedgerView> ledger{
        "Listing the saved tensors", wanted_ledger, profiler::build_ledger_view};
    WindowSlot<profiler::FlameRequest, profiler::FlameView> flame{
        "Building the flame graph", wanted_flame, profiler::build_flame_view};
    WindowSlot<profiler::BlocksRequest, profiler::BlocksView> blocks{
        "Laying out the blocks", wanted_blocks, profiler::build_blocks_view};
    WindowSlot<profiler::LiveBlocksRequest, profiler::LiveBlocksView> live_blocks{
        "Listing the live blocks", wanted_live_blocks, profiler::build_live_blocks_view};
    WindowSlot<profiler::WhatIfRequest, profiler::WhatIfView> what_if{
        "Replaying the requests", wanted_what_if, profiler::build_what_if_view};
    WindowSlot<profiler::SegmentMapRequest, profiler::SegmentMapView> segments{
        "Drawing the segments", wanted_segments, profiler::build_segment_map_view};
    WindowSlot<profiler::InspectorRequest, profiler::InspectorView> inspector{
        "Describing the selection", wanted_inspector, profiler::build_inspector_view};
    WindowSlot<profiler::RangeRequest, profiler::RangeView> range{
        "Summing up the selected range", wanted_range, profiler::build_range_view};

    /// What the slots of this window make their requests from.
    WindowInputs inputs(const SlotInputs& shared) const {
        const profiler::WhatIfView* const replay = what_if.view();
        return {shared, queries, open, replay ? replay->layout : nullptr};
    }

    /// All of them, for what the workspace does with each.
    auto all() {
        return std::tie(ledger, flame, blocks, live_blocks, what_if, segments, inspector, range);
    }
    auto all() const {
        return std::tie(ledger, flame, blocks, live_blocks, what_if, segments, inspector, range);
    }
};

}  // namespace app
