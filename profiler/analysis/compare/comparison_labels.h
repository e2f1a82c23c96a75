#pragma once

#include "profiler/analysis/compare/comparison.h"

#include <string>
#include <vector>

namespace profiler {

/// Gives each column a different name: its recipe. Columns of the same recipe also get their source
/// ("tempo (predicted)"); if that repeats, the part of the file's path that differs ("tempo
/// (before/tempo)"); if even that repeats, a number.
std::vector<std::string> unique_labels(const std::vector<ComparisonColumn>& columns);

}  // namespace profiler
