#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/comparison.h"

#include <string>
#include <vector>

/// What is said about a comparison in words.
namespace profiler {

/// What differs between the two besides the recipe, each as "batch size (8 and 16)". Empty exactly
/// when they are comparable.
std::vector<std::string> differences(const models::Workload& a, const models::Workload& b);

/// The sentence that a user would quote: the column with the lowest peak against the baseline.
std::string quote(const std::vector<ComparisonColumn>& columns);

}  // namespace profiler
