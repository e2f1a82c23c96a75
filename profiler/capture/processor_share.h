#pragma once

#include "profiler/trace/trace.h"

#include <chrono>

namespace profiler {

/// How much of the time between `begin` and `end` this process ran: at least one of its threads
/// always has something to do, so that a machine of its own gives it 1 or more. (With many threads
/// it may be 1 on a shared machine too: what is called busy is busy, not the other way round.)
class ProcessorShare {
public:
    void begin();
    void end();
    double share() const { return wall_.count() > 0 ? processor_s_ / wall_.count() : 1; }

private:
    std::chrono::steady_clock::time_point start_;
    double start_processor_s_ = 0;
    std::chrono::duration<double> wall_{0};
    double processor_s_ = 0;
};

/// Adds a kMachineBusy note, once, where the share is too small for times to be the workload's.
void note_busy_machine(Trace& trace, double share);

}  // namespace profiler
