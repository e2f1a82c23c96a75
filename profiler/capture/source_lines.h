#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The text of lines of Python files on this machine.
namespace profiler {

class SourceLines {
public:
    /// Without white space around it, and cut after kMaxLength; empty for a file that is not here,
    /// is no Python file or has no such line. `line` counts from 1. Each file is read once.
    std::string_view of(std::string_view file, int64_t line);

    static constexpr std::size_t kMaxLength = 200;  // bytes

private:
    std::unordered_map<std::string, std::vector<std::string>> lines_;
};

}  // namespace profiler
