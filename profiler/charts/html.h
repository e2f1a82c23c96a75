#pragma once

#include "profiler/charts/figure.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/theme.h"

#include <string>
#include <string_view>

namespace profiler {

/// One self-contained page: the figure as inline SVG, then the numbers as a table (`table` may be
/// null). Loads nothing from anywhere.
std::string make_html_page(std::string_view svg, const FigureText& text, const TextTable* table,
                           const Theme& theme);

}  // namespace profiler
