#pragma once

#include "profiler/analysis/step/breakdown.h"

#include <cstddef>
#include <span>
#include <vector>

namespace profiler {

/// No line of the other program is the same.
inline constexpr std::size_t kNoLine = static_cast<std::size_t>(-1);

/// For each line of `after` the same line of `before`, both as rows of GroupBy::kLine. An edit
/// moves lines, and a copy of a program lies in another folder:
///
///     before                    after
///     train.py:11  h = up(x)    train.py:12  h = up(x)      the same text in the same function
///     train.py:12  h = gelu(h)  train.py:13  h = relu(h)    the only other line of the function
///
/// The text of a line tells more than its number. Where a text stands several times in a function,
/// equally often in both programs, the k-th is the k-th.
std::vector<std::size_t> find_same_lines(std::span<const BreakdownRow> before,
                                         std::span<const BreakdownRow> after);

}  // namespace profiler
