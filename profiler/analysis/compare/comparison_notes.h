#pragma once

#include "profiler/analysis/compare/comparison.h"

#include <string>
#include <vector>

/// Sentences about a comparison.
namespace profiler {

/// The sentence that a user would quote: what the column with the lowest peak saves against the
/// baseline, the first column, and what it costs.
std::string quote(const std::vector<ComparisonColumn>& columns);

/// A sentence on predicted times of two columns that spread a step over GPUs by different
/// strategies; empty for others.
std::string about_communication(const ComparisonColumn& column, const ComparisonColumn& baseline);

/// Pairs the steps of two columns that were measured in turn (ComparisonColumn::step_ratio).
void pair_steps(ComparisonColumn& column, const ComparisonColumn& baseline);

}  // namespace profiler
