#include "app/commands/reports/page_file.h"

#include "app/commands/reports/chart_files.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/charts/page.h"

#include <list>
#include <memory>

namespace app {

using namespace profiler;

models::Result<std::string> render_page(const std::vector<NamedTrace>& traces) {
    std::list<StepIndex> steps;
    PageRequest request;
    for (const NamedTrace& named : traces) {
        if (!has_recorded_step(*named.trace)) {
            return models::fail(
                "{} holds no recorded step, so there is no memory over time to show; name a trace "
                "that \"temposcope capture\" has finished.",
                named.file);
        }
        request.names[steps.size()] = label_of(named);
        steps.emplace_back(*named.trace, named.report);
    }
    request.steps = {&steps.front(), steps.size() > 1 ? &steps.back() : nullptr};
    if (traces.size() > 1) {
        request.alignment = std::make_shared<const Alignment>(
            align(*traces[0].trace, *traces[1].trace, TimeAlignment::kPhases));
    }
    return make_page(build_page_view(request));
}

}  // namespace app
