#include "app/commands/reports/page_file.h"

#include "app/commands/reports/chart_files.h"
#include "profiler/analysis/recorded_step.h"
#include "profiler/charts/page.h"

#include <memory>

namespace app {
namespace {

using namespace profiler;

LedgerSource ledger_of(const NamedTrace& named, const StepReport& report) {
    return {&report.ledger, report.closed_form ? &*report.closed_form : nullptr,
            named.trace->run().num_layers};
}

}  // namespace

models::Result<std::string> render_page(const std::vector<NamedTrace>& traces) {
    std::vector<std::unique_ptr<MemoryCurve>> curves;
    std::vector<std::shared_ptr<const StepReport>> reports;
    PageRequest request;
    for (const NamedTrace& named : traces) {
        if (!has_recorded_step(*named.trace)) {
            return models::fail(
                "{} holds no recorded step, so there is no memory over time to show; name a trace "
                "that \"temposcope capture\" has finished.",
                named.file);
        }
        curves.push_back(std::make_unique<MemoryCurve>(*named.trace));
        reports.push_back(report_of(named));
        request.sources.push_back({.timeline = {named.trace.get(), curves.back().get(),
                                                &reports.back()->peak, label_of(named)},
                                   .ledger = ledger_of(named, *reports.back())});
    }
    if (traces.size() > 1) {
        request.alignment = std::make_shared<const Alignment>(
            align(*traces[0].trace, *traces[1].trace, TimeAlignment::kPhases));
    }
    return make_page(build_page_view(request));
}

}  // namespace app
