#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <vector>

/// What a rank communicates in a step.
namespace profiler {

/// The collectives of one kind in one communicator.
struct CollectiveTotal {
    CollectiveKind kind = CollectiveKind::kOther;
    Id<Communicator> communicator;
    int64_t count = 0;
    int64_t in_bytes = 0;
    int64_t out_bytes = 0;
    int64_t size_bytes = 0;  // of each collective the larger of both, as nccl-tests counts it
    int64_t time_ns = 0;     // the sum of all, also of those side by side; 0: not known
};

/// The step of each collective of the rank that figures are of. Invalid: it is outside of them, or
/// the trace has no phases.
std::vector<Id<Step>> steps_of_collectives(const Trace& trace);

/// Of each collective, whether it is one of the step (of the trace, if it has no steps or phases),
/// and of the rank that figures are of.
std::vector<bool> are_in(const Trace& trace, Id<Step> step);

/// Whether the times of the trace say what communication costs. Modelled ones do where all ranks do
/// the same. What a stage of a pipeline waits for the one before takes the traces of all stages
/// (pipeline_time.h).
bool knows_communication(const Trace& trace);

/// Whether the rank sends to another one, or receives from it, as stages of a pipeline do.
bool is_stage(const Trace& trace);

/// The largest first, of the step; of the whole trace if it has no steps or phases.
std::vector<CollectiveTotal> collectives_of(const Trace& trace, Id<Step> step);

}  // namespace profiler
