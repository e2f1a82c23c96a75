#pragma once

#include "models/config/result.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/view/kernels/bench_view.h"
#include "profiler/view/kernels/movement_view.h"

#include <string>
#include <string_view>
#include <vector>

/// Charts that commands write.
namespace app {

/// The formats that a command was given, or svg.
std::vector<std::string> formats_or_svg(const std::vector<std::string>& formats);
inline constexpr std::string_view kFormatWithoutCharts =
    "--format is that of charts: name their folder with --charts.";

/// What pictures call a trace: its recipe, else its file.
std::string label_of(const profiler::NamedTrace& named);

/// Writes `comparison.FORMAT` for each format into the folder, which is made; returns the files.
models::Result<std::vector<std::string>> write_comparison_charts(
    const profiler::Comparison& comparison, const std::string& folder,
    const std::vector<std::string>& formats);

struct MovementChartsRequest {
    profiler::MovementRequest view;  // of one trace
    std::string folder;
    std::vector<std::string> formats;
};
/// Writes `movement-roofline.FORMAT` and `movement-flow.FORMAT` for each format into the folder,
/// which is made; returns the files. What has nothing to draw is left out.
models::Result<std::vector<std::string>> write_movement_charts(
    const MovementChartsRequest& request);

/// Writes `bench-layer.FORMAT` and so on: a chart for each kind of benchmark among the rows, in
/// each format. Makes the folder; returns the files.
models::Result<std::vector<std::string>> write_bench_charts(
    const std::vector<profiler::BenchRow>& rows, const std::string& folder,
    const std::vector<std::string>& formats);

/// Errors: the ending of the file is no format of charts.
models::Result<void> check_chart_file(const std::string& path);
models::Result<void> write_bar_chart(const profiler::BarChart& chart, const std::string& path);

/// Memory over time of one trace, or of two above each other on aligned phases.
models::Result<void> write_timeline(const std::vector<profiler::NamedTrace>& traces,
                                    const std::string& format, const std::string& path);

}  // namespace app
