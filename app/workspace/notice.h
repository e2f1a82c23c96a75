#pragma once

#include "profiler/trace/trace.h"

#include <string>

namespace app {

/// A sentence that the user must see once: a file that does not open, a capture that ended.
struct Notice {
    profiler::Severity severity = profiler::Severity::kInfo;
    std::string text;
};

}  // namespace app
