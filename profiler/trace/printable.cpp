#include "profiler/trace/printable.h"

#include "profiler/trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <system_error>

namespace profiler {
namespace {

/// What a terminal takes for a command, a line end or a change of direction (Unicode, UAX 9), or
/// shows nothing for (soft hyphen, spaces and operators without width, tags). Not the joiners
/// U+200C and U+200D, which some scripts are written with. assets/page/format.js has the same set.
bool acts_or_hides(uint32_t code_point) {
    const auto lies_in = [&](uint32_t first, uint32_t last) {
        return code_point >= first && code_point <= last;
    };
    return code_point < 0x20 || lies_in(0x7f, 0x9f) || code_point == 0x061c || code_point == 0xad ||
           code_point == 0x180e || code_point == 0x200b || lies_in(0x200e, 0x200f) ||
           lies_in(0x2028, 0x202e) || lies_in(0x2060, 0x206f) || code_point == 0xfeff ||
           lies_in(0xe0000, 0xe007f);
}

/// Of a well-formed UTF-8 character.
uint32_t code_point_of(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(character[i]); };
    if (character.size() == 1) return byte(0);
    uint32_t code_point = byte(0) & (0xffU >> (character.size() + 1));
    for (std::size_t i = 1; i < character.size(); ++i) {
        code_point = code_point << 6 | (byte(i) & 0x3fU);
    }
    return code_point;
}

/// Calls `escape(result, character, code point)` for each character that may not stand as it is;
/// a byte that is not UTF-8 is a character of its own.
template <typename Escape>
std::string escaped(std::string_view text, Escape escape) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto special =
            std::find_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c == 0x7f; });
        const auto plain = static_cast<std::size_t>(special - text.begin());
        result += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        const std::size_t size = character_bytes(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
        const bool is_text = size != 0;
        const uint32_t code_point =
            is_text ? code_point_of(character) : static_cast<uint8_t>(text[0]);
        if (is_text && !acts_or_hides(code_point)) {
            result += character;
        } else {
            escape(result, character, code_point);
        }
        text.remove_prefix(character.size());
    }
    return result;
}

bool is_number(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::string printable(std::string_view text) {
    return escaped(text, [](std::string& result, std::string_view character, uint32_t code_point) {
        result += character.size() == 1 ? fmt::format("\\x{:02x}", code_point)
                  : code_point > 0xffff ? fmt::format("\\U{:08x}", code_point)
                                        : fmt::format("\\u{:04x}", code_point);
    });
}

std::string spreadsheet_cell(std::string_view text) {
    const bool may_run =
        !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
    return (may_run && !is_number(text) ? "'" : "") + printable(text);
}

std::string csv_cell(std::string_view text) {
    const std::string cell = spreadsheet_cell(text);
    if (cell.find_first_of(",\"") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (const char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string printable_json(std::string_view document) {
    return escaped(document, [](std::string& result, std::string_view, uint32_t code_point) {
        if (code_point == '\n') {
            result += '\n';
        } else if (code_point > 0xffff) {  // as two halves (RFC 8259)
            const uint32_t rest = code_point - 0x10000;
            fmt::format_to(std::back_inserter(result), "\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10),
                           0xdc00 + (rest & 0x3ff));
        } else {
            fmt::format_to(std::back_inserter(result), "\\u{:04x}", code_point);
        }
    });
}

}  // namespace profiler
