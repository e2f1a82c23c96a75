#pragma once

#include <string>
#include <string_view>

/// The little that is asked of text everywhere. Independent of the locale.
namespace profiler {

/// Of ASCII letters; everything else stays.
constexpr char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string to_lower(std::string_view text);
/// With a capital first letter: a phrase that begins a line.
std::string capitalized(std::string text);

/// Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing over U+10FFFF.
bool is_utf8(std::string_view text);

/// What the system says about an errno: "No space left on device".
std::string reason_of(int error_number);

}  // namespace profiler
