#pragma once

#include "profiler/trace/trace.h"

#include <set>
#include <string>
#include <vector>

namespace profiler {

/// A call that no other op is around, and that keeps something for backward.
struct SavingCall {
    std::string op;                // "aten::dropout"
    std::string module_path;       // that made it; empty: none
    std::set<std::string> savers;  // ops in it that keep something, or it itself: "aten::mul"
};

/// Those of a trace, in their order.
std::vector<SavingCall> saving_calls(const Trace& trace);

}  // namespace profiler
