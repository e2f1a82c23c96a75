#pragma once

#include "app/panels/memory/blocks_panel.h"
#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/memory/blocks_view.h"

/// The parts of the Blocks panel beside and below its plot.
namespace app {

/// The blocks that live at the moment, the largest first. A click selects one.
void draw_live_blocks(const PanelContext& context, const profiler::LiveBlocksView& view,
                      PanelEvents& events);

/// The segments at the moment.
void draw_segments(const PanelContext& context, const profiler::SegmentMapView& view,
                   PanelEvents& events);

/// Width in pixels of the largest segment in a list of this width.
int segment_width(float width);

/// The document that the panel draws.
const DocumentPtr& shown_document(const PanelContext& context);
/// Selects a block of the shown document, or clears the selection if it is selected.
void pick_block(const PanelContext& context, profiler::Id<profiler::Allocation> allocation,
                PanelEvents& events);
bool is_selected(const PanelContext& context, profiler::Id<profiler::Allocation> allocation);
/// The tooltip of a block.
void draw_block_readout(const PanelContext& context, profiler::Id<profiler::Allocation> allocation);
/// The query that `events` asks for, to be changed.
BlocksQuery& wanted_query(const PanelContext& context, PanelEvents& events);

/// Other settings of the allocator, what they would do beside what was recorded, and a table of
/// settings that are worth a try.
void draw_what_if(const PanelContext& context, WhatIfState& state, PanelEvents& events);

/// Buttons that choose whose segments are shown, while settings are tried.
void draw_segment_choice(const PanelContext& context, PanelEvents& events);

}  // namespace app
