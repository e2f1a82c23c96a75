#include "profiler/charts/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

namespace profiler {
namespace {

/// Where ids are defined and where they are referred to, each up to the closing character.
struct IdContext {
    std::string_view before;
    char after;
};
constexpr std::array<IdContext, 4> kContexts{
    {{" id=\"", '"'}, {"url(#", ')'}, {"href=\"#", '"'}, {"href='#", '\''}}};

struct Occurrence {
    std::size_t start = std::string_view::npos;  // of the id itself
    std::size_t end = 0;
};

Occurrence next_id(std::string_view svg, std::size_t from) {
    Occurrence next;
    for (const IdContext& context : kContexts) {
        const std::size_t found = svg.find(context.before, from);
        if (found == std::string_view::npos) continue;
        const std::size_t start = found + context.before.size();
        const std::size_t end = svg.find(context.after, start);
        if (end != std::string_view::npos && start < next.start) next = {start, end};
    }
    return next;
}

}  // namespace

std::string renumber_svg_ids(std::string_view svg) {
    std::map<std::string_view, std::string> names;
    std::string result;
    result.reserve(svg.size());
    std::size_t copied = 0;
    for (Occurrence id = next_id(svg, 0); id.start != std::string_view::npos;
         id = next_id(svg, id.end)) {
        result += svg.substr(copied, id.start - copied);
        const auto name = names.try_emplace(svg.substr(id.start, id.end - id.start),
                                            fmt::format("c{}", names.size()));
        result += name.first->second;
        copied = id.end;
    }
    return result += svg.substr(copied);
}

std::string describe_svg(std::string_view svg, std::string_view title,
                         std::string_view description) {
    const std::size_t element = svg.find("<svg");
    const std::size_t end = element == std::string_view::npos ? element : svg.find('>', element);
    if (end == std::string_view::npos) return std::string(svg);
    return fmt::format("{}\n<title>{}</title>\n<desc>{}</desc>{}", svg.substr(0, end + 1),
                       escape_xml(title), escape_xml(description), svg.substr(end + 1));
}

std::string_view svg_element(std::string_view svg) {
    const std::size_t element = svg.find("<svg");
    return element == std::string_view::npos ? svg : svg.substr(element);
}

std::string escape_xml(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                // XML has no place for control characters, not even escaped.
                result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
        }
    }
    return result;
}

}  // namespace profiler
