#include "profiler/charts/html_parts.h"

#include "profiler/charts/packed_numbers.h"

#include <nlohmann/json.hpp>

namespace profiler {

/// Only "<" could end the element or open a comment
/// in it, and JSON has "<" nowhere but in texts.
std::string to_element_text(const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string hash_source(const HtmlPart& part) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < part.sha256.size(); i += 2) {
        const auto digit = [&](std::size_t at) {
            const char c = part.sha256[at];
            return c <= '9' ? c - '0' : c - 'a' + 10;
        };
        bytes.push_back(static_cast<char>(digit(i) << 4 | digit(i + 1)));
    }
    return "'sha256-" + to_base64(bytes) + "'";
}

}  // namespace profiler
