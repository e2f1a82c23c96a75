#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

/// What a trace could not see, or had to assume: the capture's own notes and what analysis finds
/// when it looks at the tables. Nothing imperfect is hidden.
namespace profiler {

struct HealthItem {
    std::string code;  // "incomplete_capture", stable
    Severity severity = Severity::kInfo;
    int64_t count = 0;
    std::string explanation;  // one sentence: what it means and what to do
};

/// Errors first, then warnings, then information; the capture's notes before those found here.
std::vector<HealthItem> report_health(const Trace& trace);

}  // namespace profiler
