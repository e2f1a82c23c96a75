#pragma once

#include "profiler/trace/trace.h"

#include <string>
#include <string_view>

/// Says in words what failed: the same words in every command, chart and panel.
namespace profiler {

/// Where memory ran out, as far as the trace knows it. Texts belong to the trace, and may hold
/// anything that a file can hold.
struct FailurePlace {
    std::string line;  // "train.py:14": the innermost line of the program in the call stack
    std::string_view code;
    std::string_view module_path;
    std::string_view op;
};
FailurePlace place_of(const Trace& trace, const Failure& failure);

/// Whether a request for memory failed that the program knows of. What torch absorbs is none: cuDNN
/// tries algorithms until the workspace of one fits.
inline bool lacked_memory(const Failure& failure) {
    return failure.requested_bytes >= 0 && failure.outcome != FailureOutcome::kAbsorbed;
}
/// The request for memory that ended the program. None: there was none, or something else did.
Id<Failure> fatal_out_of_memory(const Trace& trace);
/// Whether memory ran out for good: such a request, or a note of a step that was captured
/// (kRanOutOfMemory).
bool ran_out_of_memory(const Trace& trace);

/// "Out of memory at train.py:14 in step 1: 5.59 GiB asked, 3.02 GiB free of 38.9 GiB." or "The
/// program ended with ValueError in step 2."; of an error that did not end the program, also what
/// became of it. Printable.
std::string failure_sentence(const Trace& trace, Id<Failure> failure);
/// The sentence of the last error that the program caught, with the number of all; empty: none.
std::string caught_sentence(const Trace& trace);

}  // namespace profiler
