#pragma once

#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/tables/columns.h"
#include "profiler/view/theme.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace profiler {

// What pages of HTML have in common: scripts that a browser may run, and data that is none.

/// A file inside a page and its SHA-256 in hexadecimal digits.
struct HtmlPart {
    std::string_view text;
    std::string_view sha256;
};

/// A source of a Content-Security-Policy: only an element with exactly this text is used.
std::string hash_source(const HtmlPart& part);

/// JSON that may stand inside a <script> element.
std::string to_element_text(const nlohmann::json& value);

/// Whole numbers in few bytes, for a page: 7 bits a byte, the lowest first, and the highest bit of
/// a byte says that another one follows (LEB128). assets/page/decode.js reads them.
class PackedNumbers {
public:
    void add(uint64_t value);
    /// Small magnitudes stay small: 0, -1, 1, -2 become 0, 1, 2, 3.
    void add_signed(int64_t value);

    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);

/// The page of a figure: as high as its content asks for, or as `options` say if that is higher.
Page page_of(const FigureText& text, const Theme& theme, const ChartOptions& options,
             double content_height);

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
