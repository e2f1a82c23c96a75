#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

/// What a program read from a simulated GPU that no kernel computed there, and what was assumed.
namespace profiler {

/// The reads of one line of the program.
struct ValueReadLine {
    std::string place;  // "moe/experts.py:24 forward"; "in backward" for a thread without Python
    std::string op;     // "nonzero"
    ValueReadKind kind = ValueReadKind::kCopy;
    int64_t count = 0;
    std::string answer;  // "zeros"
};

/// Those that decide over sizes or branches first, and of one kind the most frequent first.
std::vector<ValueReadLine> value_read_lines(const Trace& trace);

/// "The program read 12 values that the simulated GPU does not compute, as zeros: experts.py:24
/// main (nonzero, 12 times). Sizes that depend on them are wrong." Empty: it read none.
std::string value_read_sentence(const std::vector<ValueReadLine>& lines);
/// "Which experts get a token is not known: balanced routing was assumed at moe.py:31 forward
/// (topk, 24 times)." Empty: no choice of experts was assumed.
std::string assumption_sentence(const std::vector<ValueReadLine>& lines);

}  // namespace profiler
