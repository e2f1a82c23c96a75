#pragma once

#include "profiler/analysis/comparison.h"

#include <string>
#include <vector>

namespace profiler {

/// What each column is called, no two the same: its recipe; where recipes repeat also the source
/// ("tempo (predicted)") or, of one source, as much of the file's path as tells them apart
/// ("tempo (before/tempo)"); a number where even that repeats.
std::vector<std::string> unique_labels(const std::vector<ComparisonColumn>& columns);

}  // namespace profiler
