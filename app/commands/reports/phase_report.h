#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/analysis/compare/comparison.h"

#include <nlohmann/json_fwd.hpp>

namespace app {

/// The peak of each phase, a column per recipe, with the change against its baseline.
void print_phase_peaks(Output& output, const profiler::Comparison& comparison);

/// {"forward": bytes, ...} of a column; `null` for a phase that it does not have.
nlohmann::json phase_peaks_json(const profiler::ComparisonColumn& column);

}  // namespace app
