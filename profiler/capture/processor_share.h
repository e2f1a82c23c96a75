#pragma once

#include "profiler/trace/trace.h"

#include <chrono>
#include <string>

namespace profiler {

/// Processor time of this process over wall time, between calls of `begin` and `end`.
///
/// A training step always has at least one thread with work, so an idle machine gives it 1 or more.
/// With several threads the share can be 1 on a busy machine, too: the measure may report a busy
/// machine as idle, never an idle one as busy.
class ProcessorShare {
public:
    void begin();
    void end();
    /// 1 where nothing was measured.
    double share() const { return wall_.count() > 0 ? processor_s_ / wall_.count() : 1; }

private:
    std::chrono::steady_clock::time_point start_;
    double start_processor_s_ = 0;
    std::chrono::duration<double> wall_{0};
    double processor_s_ = 0;
};

/// The sentence for a measurement while something else used the processors; empty if nothing did.
std::string busy_machine_note(double share);

/// Adds a kMachineBusy note, once, if the share is so small that step times do not mean much.
void note_busy_machine(Trace& trace, double share);

}  // namespace profiler
