#include "profiler/analysis/step/step_report.h"

namespace profiler {

StepReport report_step(const Trace& trace) {
    PeakReport peak = find_peak(trace);
    Ledger ledger = build_ledger(trace, peak);
    auto closed_form = check_against_closed_form(trace, ledger);
    return {std::move(peak), std::move(ledger), std::move(closed_form)};
}

std::shared_ptr<const StepReport> report_of(const NamedTrace& named) {
    return named.report ? named.report : std::make_shared<StepReport>(report_step(*named.trace));
}

}  // namespace profiler
