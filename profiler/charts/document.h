#pragma once

#include "models/config/result.h"
#include "profiler/charts/canvas.h"
#include "profiler/charts/charts.h"

#include <functional>
#include <string>

/// A page of fixed size that a chart draws on, in any of the formats.
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

/// SVG, PDF or PNG bytes. For kHtml, the <svg> element to put into the page. The same input gives
/// the same bytes.
/// Errors: a text is not UTF-8; Cairo ran out of memory.
models::Result<std::string> draw_page(const Page& page, ChartFormat format, const Draw& draw);

/// Runs `measure` with a canvas that draws nothing, for layouts that need the widths of texts.
void with_measuring_canvas(const Draw& measure);
/// What `draw` returns for such a canvas: the height that a figure asks for.
double measure_height(const std::function<double(Canvas&)>& draw);

/// Errors: sizes out of range.
models::Result<void> check_options(const ChartOptions& options);

}  // namespace profiler
