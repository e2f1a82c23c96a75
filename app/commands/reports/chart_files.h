#pragma once

#include "models/config/result.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/view/kernels/bench_view.h"
#include "profiler/view/kernels/layouts_view.h"
#include "profiler/view/kernels/movement_view.h"

#include <string>
#include <vector>

/// Charts that commands write.
namespace app {

/// What --charts and --format say.
struct ChartsForm {
    std::string folder;                // empty: no charts
    std::vector<std::string> formats;  // empty: svg
};
/// Errors: formats without a folder.
models::Result<void> check_formats(const ChartsForm& form);

// A chart in each format: `comparison.svg`. The folder is made. They return the files.

models::Result<std::vector<std::string>> write_comparison_charts(
    const profiler::Comparison& comparison, const ChartsForm& form);

/// `movement-roofline.svg` and `movement-flow.svg`, of one trace. What has nothing to draw is left
/// out.
models::Result<std::vector<std::string>> write_movement_charts(
    const profiler::MovementRequest& request, const ChartsForm& form);

/// `bench-layer.svg` and so on: a chart for each kind of benchmark among the rows.
models::Result<std::vector<std::string>> write_bench_charts(
    const std::vector<profiler::BenchRow>& rows, const ChartsForm& form);

// One chart, in the format that its file's ending names.

/// Errors: the ending of the file is no format of charts.
models::Result<void> check_chart_file(const std::string& path);
models::Result<void> write_bar_chart(const profiler::BarChart& chart, const std::string& path);
/// `workload` names the layer.
models::Result<void> write_layouts_chart(const profiler::LayoutsView& view,
                                         const std::string& workload, const std::string& path);

// One trace, or two on aligned phases.

/// Memory over time, of two traces above each other.
models::Result<void> write_timeline(const std::vector<profiler::NamedTrace>& traces,
                                    const std::string& format, const std::string& path);

/// The page for a browser. Errors: a file holds no memory over time.
models::Result<std::string> render_page(const std::vector<profiler::NamedTrace>& traces);

}  // namespace app
