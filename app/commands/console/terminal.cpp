#include "app/commands/console/terminal.h"

#include "app/commands/console/json_values.h"
#include "profiler/trace/printable.h"
#include "profiler/trace/text.h"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;

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

/// Bytes 10xxxxxx continue a UTF-8 character.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The beginning and the end of a very long text. A table pads each row to its widest cell, so one
/// name of a megabyte would make a megabyte of each row.
std::string shortened(std::string text) {
    constexpr std::size_t kHalf = 120;  // bytes
    if (text.size() <= 2 * kHalf) return text;
    std::size_t first_end = kHalf, last_begin = text.size() - kHalf;
    while (first_end > 0 && continues_character(text[first_end])) --first_end;
    while (last_begin < text.size() && continues_character(text[last_begin])) ++last_begin;
    return text.substr(0, first_end) + "…" + text.substr(last_begin);
}

TextTable printable_table(TextTable table) {
    for (TextTable::Column& column : table.columns) column.title = printable(column.title);
    for (auto& row : table.rows) {
        for (std::string& cell : row) cell = shortened(printable(cell));
    }
    return table;
}

/// Width of each column; 0 for one that says nothing.
std::vector<std::size_t> column_widths(const TextTable& table) {
    std::vector<std::size_t> widths(table.columns.size(), 0);
    for (std::size_t column = 0; column < widths.size(); ++column) {
        bool says_something = table.rows.empty();
        for (const auto& row : table.rows) {
            says_something |= !row[column].empty() && row[column] != kNoValue;
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

std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, std::not_fn(continues_character)));
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
    bool is_open = false;
    while (!text.empty()) {
        const auto mark = std::ranges::find_if(text, is_style_mark);
        const auto size = static_cast<std::size_t>(mark - text.begin());
        result += printable(text.substr(0, size));
        text.remove_prefix(size);
        if (text.empty()) break;
        const auto style = static_cast<Style>(text[0] - kStyleBegin);
        is_open = text[0] != kStyleEnd;
        result += is_open ? escape_of(style) : "\x1b[0m";
        text.remove_prefix(1);
    }
    if (is_open) result += "\x1b[0m";  // a name may hold a mark by chance
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
            if (table.rows[row][column] == kNoValue) return Style::kDim;
            return row < table.tones.size() ? style_of(table.tones[row][column]) : Style::kPlain;
        });
    }
}

void Output::document(const nlohmann::json& document) {
    if (json_) text_ += json_text(document);
}

models::Result<void> Output::flush() { return write_output(std::exchange(text_, {})); }

models::Result<void> write_output(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if ((written && std::fflush(stdout) == 0) || errno == EPIPE) return {};
    return models::fail(
        "The output could not be written ({}): {}.", std::strerror(errno),
        errno == EBADF ? "open standard output" : "free some space or write elsewhere");
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

std::string shell_word(std::string_view text) {
    const auto is_plain = [](char c) {
        return profiler::is_letter(c) || profiler::is_digit(c) ||
               std::string_view("_./+:@%=,-").find(c) != std::string_view::npos;
    };
    if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
    std::string word = "'";
    for (const char c : text) {
        if (c == '\'') {
            word += R"('\'')";
        } else {
            word += c;
        }
    }
    return word + "'";
}

std::string next_line(std::string_view arguments) {
    return fmt::format("Next: temposcope {}", arguments);
}

}  // namespace app
