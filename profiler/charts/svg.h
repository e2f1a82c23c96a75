#pragma once

#include <string>
#include <string_view>

/// Repairs to the SVG that Cairo writes.
namespace profiler {

/// Cairo numbers surfaces over the life of the process, so the second chart of a process gets other
/// ids than the first. Here they become c0, c1, ... in the order of the text, references too.
std::string renumber_svg_ids(std::string_view svg);

/// Adds <title> and <desc> as the first children of <svg>: the words for search and screen readers,
/// since Cairo's text is outlines.
std::string describe_svg(std::string_view svg, std::string_view title,
                         std::string_view description);

/// The <svg> element without the XML declaration before it, to stand inside an HTML page.
std::string_view svg_element(std::string_view svg);

/// For text and attribute values of XML and HTML.
std::string escape_xml(std::string_view text);

}  // namespace profiler
