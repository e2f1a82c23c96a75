#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/step/breakdown.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

/// A comparison as a table for people (a column per recipe) and as JSON (a row per recipe).
namespace app {

void print_comparison(Output& output, const profiler::Comparison& comparison,
                      std::optional<profiler::GroupBy> by, const std::vector<std::string>& charts,
                      bool shows_phases = false);

nlohmann::json comparison_json(const profiler::Comparison& comparison,
                               std::optional<profiler::GroupBy> by,
                               const std::vector<std::string>& charts);

}  // namespace app
