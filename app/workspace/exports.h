#pragma once

#include "app/workspace/document.h"
#include "app/workspace/jobs/job_queue.h"
#include "app/workspace/time_axis.h"
#include "profiler/charts/charts.h"
#include "profiler/tables/columns.h"
#include "profiler/view/programs/compare_view.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace app {

/// How a chart looks in its file.
struct ChartStyle {
    bool dark = false;
    double png_scale = 2;  // pixels per point
};

/// Charts and tables written off the frame thread, in the order they were asked for. The extension
/// chooses the format: SVG, PDF, PNG or HTML for charts, CSV, TSV or JSON for tables. What waits
/// when the window closes is still written.
class Exports {
public:
    void comparison(std::shared_ptr<const profiler::CompareView> view,
                    const std::filesystem::path& file, const ChartStyle& style);
    /// The visible part of the time axis.
    void timeline(const Selection& selection, const TimeAxis& time,
                  const std::filesystem::path& file, const ChartStyle& style);
    /// `make` runs off the frame thread and keeps alive what it reads.
    void table(std::function<profiler::DataTable()> make, const std::filesystem::path& file);

    /// The table as a text for the clipboard, which only the frame thread may fill.
    void copy(std::function<profiler::DataTable()> make,
              std::string (*to_text)(const profiler::DataTable&), const std::string& title);

    /// What was copied since the last call; empty: nothing.
    std::optional<std::string> take_copied() { return std::exchange(copied_, std::nullopt); }
    /// How the exports ended that have finished since the last call. An export to a file whose
    /// extension is unknown is refused at once.
    std::vector<Notice> take_notices();
    bool busy() const { return queue_.busy(); }

private:
    using Write =
        std::function<models::Result<void>(const profiler::Theme&, const profiler::ChartOptions&)>;
    void start(const std::filesystem::path& file, const ChartStyle& style, Write write);
    void refuse(std::string why);

    struct Done {
        std::string sentence;
        std::optional<std::string> copied = {};
    };
    JobQueue<Done> queue_{Waiting::kKeep};
    std::optional<std::string> copied_;
    std::vector<Notice> notices_;  // of exports that were refused
};

}  // namespace app
