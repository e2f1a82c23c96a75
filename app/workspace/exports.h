#pragma once

#include "app/workspace/job_queue.h"
#include "app/workspace/notice.h"
#include "app/workspace/time_axis.h"
#include "profiler/charts/charts.h"
#include "profiler/view/compare_view.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace app {

/// Charts written off the frame thread, in the order they were asked for. The extension chooses the
/// format: SVG, PDF, PNG or HTML. Charts that wait when the window closes are still written.
class Exports {
public:
    /// Errors: the extension is not a chart format.
    models::Result<void> comparison(std::shared_ptr<const profiler::CompareView> view,
                                    const std::filesystem::path& file, bool dark);
    /// The visible part of the time axis.
    models::Result<void> timeline(const Selection& selection, const TimeAxis& time,
                                  const std::filesystem::path& file, bool dark);

    /// How the exports ended that have finished since the last call.
    std::vector<Notice> take_notices();
    bool busy() const { return queue_.busy(); }

private:
    using Write =
        std::function<models::Result<void>(const profiler::Theme&, const profiler::ChartOptions&)>;
    models::Result<void> start(const std::filesystem::path& file, bool dark, Write write);

    JobQueue<std::string> queue_{Waiting::kKeep};
};

}  // namespace app
