#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Functions on text that every part needs. They do not depend on the locale.
namespace profiler {

/// Changes ASCII letters only.
constexpr char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string to_lower(std::string_view text);
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// An ASCII letter, or a byte of a character outside ASCII.
constexpr bool is_letter(char c) {
    return (to_lower(c) >= 'a' && to_lower(c) <= 'z') || (c & 0x80) != 0;
}
/// Makes the first letter a capital.
std::string capitalized(std::string text);

/// "a", "a and b", "a, b and c".
std::string join_with_and(const std::vector<std::string>& parts);

/// The lines of a text, without their ends.
std::vector<std::string_view> split_lines(std::string_view text);

/// The last two parts of a dotted name, without the layer:
/// "encoder.layer.5.attention.self.query.weight" -> "query.weight".
std::string_view short_tensor_name(std::string_view name);

/// Bytes of the UTF-8 character that `text` begins with; 0 when it is malformed.
std::size_t character_bytes(std::string_view text);

/// Whether the text is well-formed UTF-8 (Unicode, table 3-7): it has no overlong forms, no
/// surrogates and nothing over U+10FFFF.
bool is_utf8(std::string_view text);

/// The mark that editors of Windows write at the beginning of a text file.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// A text without that mark.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
    return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

/// The system's text for an errno: "No space left on device".
std::string reason_of(int error_number);

}  // namespace profiler
