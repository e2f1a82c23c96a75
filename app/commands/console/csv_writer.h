#pragma once

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace app {

/// Builds one line of comma-separated values after the other (RFC 4180); a cell is quoted when it
/// has to be. A text that a spreadsheet would read as a formula gets an apostrophe in front.
class CsvWriter {
public:
    template <typename... Cells>
    void row(const Cells&... cells) {
        bool first = true;
        (cell(cells, first), ...);
        text_.push_back('\n');
    }
    void row(const std::vector<std::string>& cells) {
        bool first = true;
        for (const std::string& one : cells) cell(one, first);
        text_.push_back('\n');
    }
    std::string take() { return std::move(text_); }

private:
    template <typename T>
    void cell(const T& value, bool& first) {
        if (!first) text_.push_back(',');
        first = false;
        if constexpr (std::is_convertible_v<T, std::string_view>) {
            quote(guarded(value));
        } else {
            fmt::format_to(std::back_inserter(text_), "{}", value);
        }
    }
    static std::string guarded(std::string_view text) {
        const bool may_run = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) !=
                                                  std::string_view::npos;
        return (may_run && !is_number(text) ? "'" : "") + std::string(text);
    }
    static bool is_number(std::string_view text) {
        if (text.starts_with('+')) text.remove_prefix(1);
        double number = 0;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, number);
        return read.ec == std::errc() && read.ptr == end;
    }
    void quote(std::string_view value) {
        if (value.find_first_of(",\"\n\r") == std::string_view::npos) {
            text_.append(value);
            return;
        }
        text_.push_back('"');
        for (const char c : value) {
            if (c == '"') text_.push_back('"');
            text_.push_back(c);
        }
        text_.push_back('"');
    }

    std::string text_;
};

}  // namespace app
