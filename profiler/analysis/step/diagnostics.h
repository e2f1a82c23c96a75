#pragma once

#include "profiler/trace/trace.h"
#include "profiler/trace/trace_notes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What is missing from a trace or had to be assumed: the diagnostics that the capture wrote, and
/// what analysis finds in the tables. Nothing imperfect is hidden.
namespace profiler {

struct StepReport;

/// What DiagnosticItem::count counts.
enum class DiagnosticUnit : uint8_t {
    kTimes,  // how often it happened
    kSteps,
    kEvents,
    kPercent,
    kBytes
};

struct DiagnosticItem {
    std::string code;  // "incomplete_capture"; does not change between versions
    Severity severity = Severity::kInfo;
    int64_t count = 0;
    std::string explanation;  // one sentence: what it means and what to do
    DiagnosticUnit unit = DiagnosticUnit::kTimes;
};

/// "1,204 times", "13,631,488 B", "2 steps"; empty when the count is 0.
std::string count_text(const DiagnosticItem& item);

/// Why the step did not fit into memory (kRanOutOfMemory, kStepDoesNotFit, or the failure that
/// ended the program); empty: it did.
std::string why_out_of_memory(const Trace& trace);

/// Errors first, then warnings, then information; the trace's own before those found here.
/// `report` is report_step(trace).
std::vector<DiagnosticItem> report_diagnostics(const Trace& trace, const StepReport& report);

}  // namespace profiler
