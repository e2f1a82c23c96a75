#pragma once

#include "profiler/trace/trace.h"

#include <filesystem>
#include <string>

namespace app {

/// A sentence that the user must see once: a file that does not open, a capture that ended.
struct Notice {
    profiler::Severity severity = profiler::Severity::kInfo;
    std::string text;
    std::filesystem::path reload = {};  // the user may read this file again; empty: none
};

}  // namespace app
