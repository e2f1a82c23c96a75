#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>

namespace profiler {

/// The most requested bytes that live at one time in the phases of each kind, over all recorded
/// steps; -1 for a kind that the trace does not have. In the order of PhaseKind. Two traces that
/// were recorded differently can be compared phase by phase. O(events log events).
using PhasePeaks = std::array<int64_t, kPhaseKindNames.size()>;

PhasePeaks find_phase_peaks(const Trace& trace);

}  // namespace profiler
