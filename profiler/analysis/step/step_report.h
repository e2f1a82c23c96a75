#pragma once

#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/analysis/step/peak.h"

#include <memory>
#include <string>

/// What every report on a trace starts from. It takes a pass over all events, so each opened trace
/// computes it once and hands it to diagnostics, comparison and pictures.
namespace profiler {

/// Borrows text from the trace, which must outlive it.
struct StepReport {
    PeakReport peak;
    Ledger ledger;
    models::Result<ClosedFormCheck> closed_form;  // of a middle layer, or why there is none
};

StepReport report_step(const Trace& trace);

/// A trace and the file it came from.
struct NamedTrace {
    std::string file;
    std::shared_ptr<const Trace> trace;
    std::shared_ptr<const StepReport> report = nullptr;  // null: report_of computes it
};

/// The report that the trace carries, else a new report.
std::shared_ptr<const StepReport> report_of(const NamedTrace& named);

}  // namespace profiler
