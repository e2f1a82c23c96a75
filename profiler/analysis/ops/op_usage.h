#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// What the ops of a step run on the device and what they take for themselves.
namespace profiler {

/// Launches of one kernel, or copies of one kind, by the ops of one row.
struct OpKernel {
    std::string_view name;
    int64_t num_launches = 0;
    int64_t device_ns = 0;
};

/// The calls of one op in one phase that launched something or took scratch.
struct OpUsage {
    std::string_view op;
    PhaseKind phase = PhaseKind::kForward;
    int64_t num_calls = 0;
    int64_t device_ns = 0;          // of its kernels and copies; see has_host_times
    int64_t scratch_bytes = 0;      // the most that one call held
    std::vector<OpKernel> kernels;  // longest first
};

/// The last step, by op and phase, longest first. A kernel counts for the innermost op that
/// launched it. Scratch is what a call allocates, itself or through the calls in it, and frees
/// again itself. Texts belong to the trace.
std::vector<OpUsage> op_usage(const Trace& trace);

/// Whether the times are those of the host: in files of other tools where no device ran anything.
bool has_host_times(const Trace& trace);

}  // namespace profiler
