#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/comparison.h"

#include <nlohmann/json_fwd.hpp>

/// Predicted steps of a comparison beside the measured ones of the same workload and recipe.
namespace app {

/// Nothing where no such pair is.
void print_prediction_errors(Output& output, const profiler::Comparison& comparison);
nlohmann::json prediction_errors_json(const profiler::Comparison& comparison);

}  // namespace app
