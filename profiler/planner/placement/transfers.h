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

/// By kernel. A kernel does the work of its collective and of those after it that have none and
/// speak in the same communicator: a group of sends and receives, which run both ways at once.
std::unordered_map<int64_t, Transfer> transfers_of(const Trace& trace,
                                                   const CommunicationModel& model);

}  // namespace profiler
