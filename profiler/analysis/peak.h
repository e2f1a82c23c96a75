#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <vector>

/// When a device holds the most memory, and what it holds then.
namespace profiler {

/// Bytes per category; sums over any set of storages.
using CategoryBytes = std::array<int64_t, kCategoryNames.size()>;

struct PeakReport {
    int64_t allocated_bytes = 0;  // maximum over time of the live requested bytes
    int64_t reserved_bytes = 0;   // maximum of the segments held; = allocated on the CPU
    int64_t event = -1;           // the first allocator event at which the maximum is reached
    int64_t time_ns = -1;
    Id<Step> step;    // none: before or between recorded steps
    Id<Phase> phase;  // none: outside a phase
    Id<Op> op;        // the op whose allocation reached it
    CategoryBytes by_category{};
    std::vector<Id<Allocation>> live;  // what lives at that event, largest first
};

/// Over the recorded steps (what set-up and warm-up did before is not looked at, but what they
/// left alive counts). The whole trace when it has no steps. The first time when the peak repeats.
PeakReport find_peak(const Trace& trace);

/// Allocations live just after `event`, largest first.
std::vector<Id<Allocation>> live_at(const Trace& trace, int64_t event);

}  // namespace profiler
