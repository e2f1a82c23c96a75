#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/compare/comparison.h"

#include <nlohmann/json_fwd.hpp>

/// What makes up the error of a predicted step, for each predicted step of a comparison that has a
/// measured step of the same workload and recipe.
namespace app {

/// Prints nothing if no predicted step has a measured one.
void print_prediction_errors(Output& output, const profiler::Comparison& comparison);
nlohmann::json prediction_errors_json(const profiler::Comparison& comparison);

}  // namespace app
