#pragma once

#include "profiler/view/data_table.h"
#include "profiler/view/flame_view.h"
#include "profiler/view/inspector_view.h"
#include "profiler/view/layer_view.h"
#include "profiler/view/pair_view.h"
#include "profiler/view/recipe_frontier_view.h"
#include "profiler/view/segment_map_view.h"
#include "profiler/view/timeline_view.h"
#include "profiler/view/what_if_view.h"

/// What plots show, as tables for other programs; view_tables.h has those of tables.
namespace profiler {

/// A row for each pixel column of one trace: the instant of its highest total.
DataTable timeline_data(const TimelineTrace& trace);

/// A row for each moment, trace and category.
DataTable pair_data(const PairView& view);

/// A row for each ribbon, with the columns of the calls that make and need it.
DataTable ribbons_data(const LayerView& view);

/// A row for each node from the root down, with its path.
DataTable flame_data(const FlameView& view);

/// A row for each recipe.
DataTable frontier_data(const RecipeFrontierView& view);
/// A row for each switch.
DataTable path_data(const RecipePath& path);

DataTable segments_data(const SegmentMapView& view);
/// What was recorded beside what the chosen settings do.
DataTable what_if_data(const WhatIfView& view);
/// The settings that were tried, best first.
DataTable tried_data(const WhatIfView& view);

/// Cards of the Inspector, row by row.
DataTable inspector_data(const InspectorView& view);

}  // namespace profiler
