#pragma once

#include "profiler/charts/figure.h"
#include "profiler/tables/text_table.h"
#include "profiler/view/theme.h"

#include <string>
#include <string_view>
#include <vector>

namespace profiler {

/// A plot of columns over time whose values a reader may point at.
struct HoverPlot {
    struct Row {
        std::string label;
        std::vector<double> bytes;  // of each column
    };
    std::string title;
    Rect place;                                    // in the coordinates of the <svg>
    const std::vector<double>* edge_ns = nullptr;  // columns + 1
    std::vector<Row> rows;                         // from the top down, the total first
};

/// One page that loads nothing from elsewhere: the <svg> element, then the numbers as a table
/// unless `table` is null. A click on the head of a column sorts the table; pointing at one of
/// `plots` shows its values at that moment.
std::string make_html_page(std::string_view svg, const FigureText& text, const TextTable* table,
                           const Theme& theme, const std::vector<HoverPlot>& plots = {});

}  // namespace profiler
