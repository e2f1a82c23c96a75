#pragma once

#include "profiler/trace/printable.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace app {

/// Builds one line of comma-separated values after the other. Texts become cells by `csv_cell`.
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
            text_ += profiler::csv_cell(value);
        } else {
            fmt::format_to(std::back_inserter(text_), "{}", value);
        }
    }

    std::string text_;
};

}  // namespace app
