#pragma once

#include "profiler/charts/figure.h"
#include "profiler/view/compare_view.h"
#include "profiler/view/theme.h"

#include <string>
#include <string_view>

namespace profiler {

/// One page that loads nothing from elsewhere: the <svg> element, then the numbers as a table
/// unless `table` is null.
std::string make_html_page(std::string_view svg, const FigureText& text, const TextTable* table,
                           const Theme& theme);

}  // namespace profiler
