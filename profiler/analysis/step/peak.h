#pragma once

#include "profiler/trace/trace.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// When a device holds the most memory, and what it holds then.
namespace profiler {

/// Bytes of some set of storages, per category.
using CategoryBytes = std::array<int64_t, kCategoryNames.size()>;

struct PeakReport {
    int64_t allocated_bytes = 0;  // maximum over time of the live requested bytes
    int64_t reserved_bytes = 0;   // maximum of the bytes in segments; on the CPU = allocated
    int64_t event = -1;           // the first allocator event at which the maximum is reached
    int64_t time_ns = -1;
    Id<Step> step;    // none: before or between recorded steps
    Id<Phase> phase;  // none: outside a phase
    Id<Op> op;        // the op whose allocation reached it
    CategoryBytes by_category{};
    std::vector<Id<Allocation>> live;  // allocations live at that event, largest first
};

/// The peak over the whole steps; if no step is whole, over all steps. Allocations that set-up and
/// warm-up left live count; moments before the first step do not. Without steps: the peak over the
/// whole trace. Where memory ran out, or the program ended without a whole step: over all that came
/// before. If the peak repeats, its first time.
PeakReport find_peak(const Trace& trace);

/// Allocations of a device, or of none, that live just after `event`, largest first.
std::vector<Id<Allocation>> live_at(const Trace& trace, int64_t event, Id<Device> device);

CategoryBytes bytes_by_category(const Trace& trace, std::span<const Id<Allocation>> blocks);

/// The most requested bytes that live at one time in the phases of each kind, over the steps of
/// find_peak; -1 for a kind that the trace does not have. In the order of PhaseKind. Two traces
/// that were recorded differently can be compared phase by phase. O(events log events).
using PhasePeaks = std::array<int64_t, kPhaseKindNames.size()>;

PhasePeaks find_phase_peaks(const Trace& trace);

}  // namespace profiler
