#pragma once

#include "app/workspace/panel_events.h"
#include "profiler/view/activity_view.h"
#include "profiler/view/ledger_view.h"
#include "profiler/view/timeline_view.h"

#include <memory>

/// From what is selected to what the views are built of. Everything is borrowed from the documents.
namespace app {

/// No source when A holds no recorded step: the time axis is that of A. `alignment` is that of A
/// and B, null without one of them.
profiler::TimelineRequest make_request(const Selection& selection, const TimeWindow& window,
                                       std::shared_ptr<const profiler::Alignment> alignment);

/// The same for what ran; `width_px` is that of the Kernels panel.
profiler::ActivityRequest make_activity_request(
    const Selection& selection, const TimeWindow& window, int width_px,
    std::shared_ptr<const profiler::Alignment> alignment);

/// Half a window more on both sides: what panning uncovers is already there while the next view is
/// built.
TimeWindow with_margins(TimeWindow window);

profiler::LedgerRequest make_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const LedgerQuery& query);

}  // namespace app
