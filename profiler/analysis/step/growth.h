#pragma once

#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Memory that grows from step to step: what is born in a step and outlives the next one.
//
//     step            0        1        2        3
//     born, freed     |--|     |--|     |--|     |--|      temporaries: nothing is kept
//                      |--------||-------||-------||--     gradients: freed in the next step
//                      |---------------------------------  kept: the line rises in each step
//                               |------------------------
//                                        |---------------
//
// A line keeps L(k) bytes after step k: those of its blocks that are born before the end of step k
// and still live at the end of step k + 1. It rises in step k if L(k) > L(k - 1). Behind the last
// whole step comes the failure or the end of the trace. Only whole steps count, so optimizer state,
// which is born in the first step, does not rise. Cost: one pass over the allocations.
namespace profiler {

/// A line of code that keeps more memory after each step, up to the last one.
struct GrowingLine {
    std::string line;  // as in a breakdown by line: "cases/train_leak.py:14 <module>"; without call
                       // stacks the op and its module
    std::string code;  // the text of that line; empty: not recorded
    int64_t bytes_per_step = 0;          // the mean over the steps in which it rises
    std::vector<int64_t> bytes_by_step;  // by how much it rises in each of those steps
    std::string held_by;  // Keepers::text_of its newest block that has some; empty: not recorded
    std::optional<int64_t> steps_until_full;  // see steps_until_full
};

/// In how many steps the steps' peak and so much growth fill the device, or the limit that the step
/// had; 0: memory ran out. None: nothing grows, or no size is known.
std::optional<int64_t> steps_until_full(const Trace& trace, const PeakReport& peak,
                                        int64_t bytes_per_step);

/// So many steps running a line rises before it is named.
inline constexpr std::size_t kFewestRises = 3;

/// The largest first. `steps_until_full` is of all of them together. `peak` is find_peak(trace).
/// Lines that keep less than a list of numbers does are left out.
std::vector<GrowingLine> growing_lines(const Trace& trace, const PeakReport& peak);

}  // namespace profiler
