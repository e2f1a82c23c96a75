#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/comparison.h"

#include <string>
#include <vector>

/// Sentences about a comparison.
namespace profiler {

/// What differs between two workloads besides the recipe, each as "batch size (8 and 16)". Empty
/// exactly when they are comparable.
std::vector<std::string> differences(const models::Workload& a, const models::Workload& b);

/// The sentence that a user would quote: what the column with the lowest peak saves against the
/// baseline, the first column, and what it costs.
std::string quote(const std::vector<ComparisonColumn>& columns);

/// A sentence on predicted times of two columns that spread a step over GPUs by different
/// strategies; empty for others.
std::string about_communication(const ComparisonColumn& column, const ComparisonColumn& baseline);

/// Pairs the steps of two columns that were measured in turn (ComparisonColumn::step_ratio).
void pair_steps(ComparisonColumn& column, const ComparisonColumn& baseline);

}  // namespace profiler
