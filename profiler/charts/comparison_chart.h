#pragma once

#include "profiler/charts/bars.h"
#include "profiler/charts/canvas.h"
#include "profiler/view/programs/compare_view.h"

#include <vector>

/// Where the parts of the comparison figure stand.
///
///     title, workload, sentence
///     legend of categories
///              Peak memory            Maximum batch      Throughput
///     name  |#####====//// 3.2 GiB   |##### 12        |      __--o
///           |== saved 1.2 GiB        |                |  _--
///     name  |...                     |...             |_/
///     source, notes
///
/// Recipes are rows that the first two panels share. Names of any length stay readable, and the
/// figure looks alike with two recipes or eight.
namespace profiler {

inline constexpr double kValueIndent = 7;  // between a bar and its value

struct RowLayout {
    Rect name;
    Rect memory_bar;             // the whole stack
    std::vector<Rect> segments;  // of the stack, as CompareColumn::stack
    Rect saved_bar;              // below it
    BarSlot batch;
    Rect batch_bar;  // measured or predicted, whichever is longer
    Rect rate_bar;   // throughput of the captured step, if there is no sweep
};

struct ComparisonLayout {
    double panel_title_y = 0;  // baseline
    Rect memory;
    Rect batch;
    Rect throughput;
    std::vector<RowLayout> rows;
    double memory_end_bytes = 1;  // ends of the axes
    double batch_end = 1;
    double rate_end = 1;
    double bottom = 0;  // below the axis labels
};

/// The panels start at `area.y` and are at least `area.height` high.
ComparisonLayout layout_comparison(Canvas& canvas, const CompareView& view, const Rect& area);

}  // namespace profiler
