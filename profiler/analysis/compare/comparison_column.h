#pragma once

#include "profiler/analysis/compare/comparison.h"

namespace profiler {

/// Fills in what the recorded step of a trace says.
void take_step(ComparisonColumn& column, const NamedTrace& named);

/// Fills in what a sweep says.
void take_sweep(ComparisonColumn& column, const Trace& trace);

}  // namespace profiler
