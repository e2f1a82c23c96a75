#include "profiler/trace/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace profiler {

std::string to_lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](char c) { return to_lower(c); });
    return result;
}

std::string capitalized(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
    }
    return text;
}

std::string join_with_and(const std::vector<std::string>& parts) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    }
    return text;
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string_view short_tensor_name(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos || dot == 0) return name;
    const std::size_t before = name.rfind('.', dot - 1);
    return before == name.npos ? name : name.substr(before + 1);
}

std::size_t character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
    };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const uint8_t first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0;  // a continuation, or an overlong form of two bytes
    if (first < 0xe0) return continues(1) ? 2 : 0;
    if (first < 0xf0) {
        const bool overlong = first == 0xe0 && byte(1) < 0xa0;
        const bool surrogate = first == 0xed && byte(1) > 0x9f;
        return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
    }
    if (first > 0xf4) return 0;
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool too_large = first == 0xf4 && byte(1) > 0x8f;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t size = character_bytes(text);
        if (size == 0) return false;
        text.remove_prefix(size);
    }
    return true;
}

std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

}  // namespace profiler
