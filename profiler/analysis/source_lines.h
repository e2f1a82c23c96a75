#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The text of lines of source files, where these lie on this machine as they were when a trace was
/// recorded.
namespace profiler {

class SourceLines {
public:
    /// A file that was written after this time may have other lines. 0: not known.
    explicit SourceLines(int64_t recorded_unix_ns) : recorded_unix_ns_(recorded_unix_ns) {}

    /// Without white space around it; empty for a file that is not here, is newer than the trace or
    /// has no such line. `line` counts from 1. Each file is read once.
    std::string_view of(std::string_view file, int64_t line);

private:
    std::vector<std::string> read(const std::string& file) const;

    const int64_t recorded_unix_ns_;
    std::unordered_map<std::string, std::vector<std::string>> lines_;
};

}  // namespace profiler
