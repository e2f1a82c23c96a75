#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What workers wrote to standard output and error, as lines to draw. The text comes from other
/// programs, so it may hold anything.
namespace profiler {

inline constexpr std::size_t kMostLogLines = 5000;

/// The last kMostLogLines lines: without control characters and colours of terminals, and cut where
/// they are too long to read. Of a line that was overwritten (a progress bar) the last state stays.
std::vector<std::string> log_lines(std::string_view text);

/// The part of `text` that was written after `seen`. Both are the end of one log, so `text` may
/// have lost the beginning of `seen`.
std::string_view text_since(std::string_view text, std::string_view seen);

}  // namespace profiler
