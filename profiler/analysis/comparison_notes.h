#pragma once

#include "models/config/workload.h"
#include "profiler/analysis/comparison.h"

#include <optional>
#include <string>
#include <vector>

/// What is said about a comparison in words.
namespace profiler {

/// The workload that a trace ran; nullopt when it does not say (imported files).
std::optional<models::Workload> workload_of(const Trace& trace);

/// "bert-large, 3 layers, layers head, B=8 S=512, fp32".
std::string describe(const models::Workload& workload);

/// What differs between the two besides the recipe, each as "batch size (8 and 16)".
std::vector<std::string> differences(const models::Workload& a, const models::Workload& b);

/// The sentence that a user would quote: the column with the lowest peak against the baseline.
std::string quote(const std::vector<ComparisonColumn>& columns);

}  // namespace profiler
