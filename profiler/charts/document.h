#pragma once

#include "models/config/result.h"
#include "profiler/charts/canvas.h"
#include "profiler/charts/charts.h"

#include <functional>
#include <string>

/// A page of fixed size onto which a chart draws, in any of the formats.
namespace profiler {

struct Page {
    double width = 0;
    double height = 0;
    double png_scale = 2;
    Color paper;
    std::string title;        // metadata
    std::string description;  // the figure in words
};

using Draw = std::function<void(Canvas&)>;

/// SVG, PDF or PNG bytes (kHtml: the SVG). The same input gives the same bytes.
/// Errors: Cairo ran out of memory.
models::Result<std::string> draw_page(const Page& page, ChartFormat format, const Draw& draw);

/// Runs `measure` with a canvas whose drawing is thrown away: for layouts that need text widths.
void with_measuring_canvas(const Draw& measure);

/// Refuses sizes that make no picture.
models::Result<void> check_options(const ChartOptions& options);

}  // namespace profiler
