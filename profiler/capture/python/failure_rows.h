#pragma once

#include "profiler/trace/trace.h"

#include <string_view>

/// What became of a program whose request for memory was refused.
namespace profiler {

struct FailureEnd {
    FailureOutcome outcome = FailureOutcome::kEnded;
    std::string_view error;    // its class
    std::string_view message;  // its text
};

/// Completes the newest failure, unless it is complete: a refused request counts as absorbed until
/// then. If an error ended the program and no refused request explains it, `here` becomes its row.
/// A request explains no error any more once a step has come to its end after it.
void end_failure(const FailureEnd& end, const Failure& here, Trace& trace);

}  // namespace profiler
