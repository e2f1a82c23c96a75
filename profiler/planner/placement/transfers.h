#pragma once

#include "profiler/planner/step/communication.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <unordered_map>

/// What each kernel of NCCL moves, and for how long.
namespace profiler {

struct Transfer {
    double time_ns = 0;
    bool leaves_node = false;
};

/// By kernel. A kernel carries its own collective and the communicator's next collectives without a
/// kernel: grouped sends and receives, which run both ways at once.
std::unordered_map<int64_t, Transfer> transfers_of(const Trace& trace,
                                                   const CommunicationModel& model);

}  // namespace profiler
