#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a trace could not see, or had to assume: the capture's own notes and what analysis finds
/// when it looks at the tables. Nothing imperfect is hidden.
namespace profiler {

/// What HealthItem::count counts.
enum class DiagnosticUnit : uint8_t {
    kTimes,  // how often it happened
    kSteps,
    kBytes
};

struct DiagnosticItem {
    std::string code;  // "incomplete_capture", stable
    Severity severity = Severity::kInfo;
    int64_t count = 0;
    std::string explanation;  // one sentence: what it means and what to do
    DiagnosticUnit unit = DiagnosticUnit::kTimes;
};

/// "1,204 times", "13,631,488 B", "2 steps"; empty where the count says nothing.
std::string count_text(const DiagnosticItem& item);

/// Whether the capture left a note of this code.
bool has_note(const Trace& trace, std::string_view code);

/// Errors first, then warnings, then information; the capture's notes before those found here.
std::vector<DiagnosticItem> report_diagnostics(const Trace& trace);

}  // namespace profiler
