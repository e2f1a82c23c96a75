#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

/// What pages of HTML have in common: scripts that a browser may run, and data that is none.
namespace profiler {

/// A file inside a page and its SHA-256 in hexadecimal digits.
struct HtmlPart {
    std::string_view text;
    std::string_view sha256;
};

/// A source of a Content-Security-Policy: only an element with exactly this text is used.
std::string hash_source(const HtmlPart& part);

/// JSON that may stand inside a <script> element.
std::string to_element_text(const nlohmann::json& value);

}  // namespace profiler
