#pragma once

#include "profiler/formats/parts/output_file.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

/// Writes JSON in pieces.
namespace profiler {

/// A text in quotes; control characters, quotes and backslashes are escaped, and what is not UTF-8
/// becomes "?".
std::string json_text(std::string_view text);

/// The texts of a trace as JSON, each made once, when it is first asked for.
class JsonTexts {
public:
    explicit JsonTexts(const Trace& trace) : trace_(trace), made_(trace.strings.size()) {}
    /// `""` for none.
    std::string_view operator[](StringId id);

private:
    const Trace& trace_;
    std::vector<std::string> made_;
};

/// The items of a list, written to a file, one a line.
class JsonList {
public:
    explicit JsonList(OutputFile& file) : file_(file) {}

    template <typename... T>
    void add(fmt::format_string<T...> format, const T&... values) {
        lines_ += is_first_ ? "\n" : ",\n";
        is_first_ = false;
        fmt::vformat_to(std::back_inserter(lines_), format, fmt::make_format_args(values...));
        if (lines_.size() > (std::size_t{1} << 16)) flush();
    }
    void flush() {
        file_.write(lines_);
        lines_.clear();
    }

private:
    OutputFile& file_;
    std::string lines_;
    bool is_first_ = true;
};

}  // namespace profiler
