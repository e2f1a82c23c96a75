#include "app/commands/console/terminal.h"

#include "profiler/trace/text.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace app {
namespace {

using profiler::Align;
using profiler::TextTable;
using profiler::Tone;

constexpr std::string_view kNothing = "–";
constexpr std::string_view kColumnGap = "  ";

const char* escape_of(Style style) {
    switch (style) {
        case Style::kPlain:
            return "";
        case Style::kBold:
            return "\x1b[1m";
        case Style::kDim:
            return "\x1b[2m";
        case Style::kGood:
            return "\x1b[32m";
        case Style::kBad:
            return "\x1b[31m";
        case Style::kWarning:
            return "\x1b[33m";
    }
    return "";
}

Style style_of(Tone tone) {
    switch (tone) {
        case Tone::kNeutral:
            return Style::kPlain;
        case Tone::kGood:
            return Style::kGood;
        case Tone::kBad:
            return Style::kBad;
        case Tone::kStrong:
            return Style::kBold;
    }
    return Style::kPlain;
}

/// Where a style begins and ends inside a line: bytes that no UTF-8 text has. `Output::shown` turns
/// them into escape sequences, so a name with such a byte can at most change a colour.
constexpr char kStyleBegin = '\xf8';  // plus the number of the style
constexpr char kStyleEnd = '\xff';

bool is_style_mark(char c) {
    return c == kStyleEnd ||
           (c >= kStyleBegin && c <= kStyleBegin + static_cast<char>(Style::kWarning));
}

/// What a terminal takes for a command, a line end or a change of direction (Unicode, UAX 9).
bool acts_on_terminal(uint32_t code_point) {
    const auto lies_in = [&](uint32_t first, uint32_t last) {
        return code_point >= first && code_point <= last;
    };
    return code_point < 0x20 || lies_in(0x7f, 0x9f) || code_point == 0x061c ||
           lies_in(0x200e, 0x200f) || lies_in(0x2028, 0x202e) || lies_in(0x2066, 0x2069);
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

TextTable printable_table(TextTable table) {
    for (TextTable::Column& column : table.columns) column.title = printable(column.title);
    for (auto& row : table.rows) {
        for (std::string& cell : row) cell = printable(cell);
    }
    return table;
}

/// Width of each column; 0 for one that says nothing.
std::vector<std::size_t> column_widths(const TextTable& table) {
    std::vector<std::size_t> widths(table.columns.size(), 0);
    for (std::size_t column = 0; column < widths.size(); ++column) {
        bool says_something = table.rows.empty();
        for (const auto& row : table.rows) {
            says_something |= !row[column].empty() && row[column] != kNothing;
            widths[column] = std::max(widths[column], display_width(row[column]));
        }
        widths[column] = says_something
                             ? std::max(widths[column], display_width(table.columns[column].title))
                             : 0;
    }
    return widths;
}

bool wants_colour() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    if (no_color != nullptr && *no_color != '\0') return false;
    return isatty(STDOUT_FILENO) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::size_t size = profiler::character_bytes(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
        const uint32_t code_point =
            size == 0 ? static_cast<uint8_t>(text[0]) : code_point_of(character);
        if (size != 0 && !acts_on_terminal(code_point)) {
            result += character;
        } else {
            result += size < 2 ? fmt::format("\\x{:02x}", code_point)
                               : fmt::format("\\u{:04x}", code_point);
        }
        text.remove_prefix(character.size());
    }
    return result;
}

std::size_t display_width(std::string_view text) {
    // Bytes 10xxxxxx continue a UTF-8 character.
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

Output::Output(bool json) : json_(json), colour_(!json && wants_colour()) {}

std::string Output::styled(std::string_view text, Style style) const {
    if (!colour_ || style == Style::kPlain) return std::string(text);
    return fmt::format("{}{}{}", static_cast<char>(kStyleBegin + static_cast<char>(style)),
                       printable(text), kStyleEnd);
}

std::string Output::shown(std::string_view text) const {
    if (!colour_) return printable(text);
    std::string result;
    while (!text.empty()) {
        const auto mark = std::find_if(text.begin(), text.end(), is_style_mark);
        const auto size = static_cast<std::size_t>(mark - text.begin());
        result += printable(text.substr(0, size));
        text.remove_prefix(size);
        if (text.empty()) break;
        const auto style = static_cast<Style>(text[0] - kStyleBegin);
        result += text[0] == kStyleEnd ? "\x1b[0m" : escape_of(style);
        text.remove_prefix(1);
    }
    return result;
}

void Output::line(std::string_view text) {
    if (json_) return;
    text_.append(shown(text));
    text_.push_back('\n');
}

void Output::heading(std::string_view text) {
    line();
    line(styled(text, Style::kBold));
}

void Output::table(const TextTable& raw) {
    const TextTable table = printable_table(raw);
    const std::vector<std::size_t> widths = column_widths(table);
    const auto add_row = [&](const std::vector<std::string>& cells, const auto& style_at) {
        std::string row;
        for (std::size_t column = 0; column < cells.size(); ++column) {
            if (widths[column] == 0) continue;
            if (!row.empty()) row += kColumnGap;
            const std::string padding(
                widths[column] - std::min(widths[column], display_width(cells[column])), ' ');
            const std::string cell = styled(cells[column], style_at(column));
            row += table.columns[column].align == Align::kRight ? padding + cell : cell + padding;
        }
        row.erase(row.find_last_not_of(' ') + 1);
        line(row);
    };
    std::vector<std::string> titles;
    for (const TextTable::Column& column : table.columns) titles.push_back(column.title);
    add_row(titles, [](std::size_t) { return Style::kDim; });
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        add_row(table.rows[row], [&](std::size_t column) {
            if (table.rows[row][column] == kNothing) return Style::kDim;
            return row < table.tones.size() ? style_of(table.tones[row][column]) : Style::kPlain;
        });
    }
}

void Output::document(const nlohmann::json& document) {
    if (!json_) return;
    // Names from files may hold bytes that are not UTF-8: they are replaced rather than refused.
    text_ += document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    text_.push_back('\n');
}

models::Result<void> Output::flush() { return write_output(std::exchange(text_, {})); }

models::Result<void> write_output(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if ((written && std::fflush(stdout) == 0) || errno == EPIPE) return {};
    return models::fail("The output could not be written ({}): free some space or write elsewhere.",
                        std::strerror(errno));
}

void write_error(std::string_view text) {
    // fmt::print would throw, and there is nowhere left to report it.
    [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void print_error(std::string_view sentence) {
    constexpr std::size_t kMostBytes = 6000;  // longer than a path may be
    constexpr std::size_t kEndBytes = 1000;   // what to do stands at the end
    std::string text = printable(sentence);
    if (text.size() > kMostBytes) {
        text =
            text.substr(0, kMostBytes - kEndBytes) + " ... " + text.substr(text.size() - kEndBytes);
    }
    write_error(fmt::format("temposcope: {}\n", text));
}

}  // namespace app
