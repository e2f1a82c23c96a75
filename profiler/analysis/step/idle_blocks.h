#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <string>

/// What a program holds for training that the recorded steps do not do: models that it trains
/// earlier or later, or that it never runs.
namespace profiler {

/// Parameters, gradients and optimizer states that live at the peak, and that no op of the trace
/// reads or writes.
CategoryBytes idle_at_peak(const Trace& trace, const PeakReport& peak);

/// "The recorded steps do not use 4.02 GiB of what lives at the peak: parameter 2.01 GiB, ...".
/// Empty: they use all.
std::string idle_sentence(const CategoryBytes& idle);

}  // namespace profiler
