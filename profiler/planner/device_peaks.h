#pragma once

#include "profiler/analysis/ops/movement.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/trace/trace.h"

#include <string>
#include <vector>

/// Peaks of the card on which a step ran, for rooflines.
namespace profiler {

/// The row of the catalogue for the device of a trace; null: there is none.
const Gpu* gpu_of_trace(const Trace& trace, const std::vector<Gpu>& gpus);

struct PeaksOfTrace {
    DevicePeaks peaks;               // without a name: no card is known
    bool fit_its_times = false;      // it ran on this card, as far as that is known
    std::vector<std::string> notes;  // why figures are missing, or what they mix
};

/// The peaks of `chosen` at the precision of the trace; without it those of the trace's own device.
PeaksOfTrace peaks_of_trace(const Trace& trace, const std::vector<Gpu>& gpus,
                            const Gpu* chosen = nullptr);

}  // namespace profiler
