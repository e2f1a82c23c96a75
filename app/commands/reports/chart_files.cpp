#include "app/commands/reports/chart_files.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/charts/charts.h"
#include "profiler/trace/file/write_file.h"

#include <filesystem>
#include <list>
#include <memory>

namespace app {
namespace {

using namespace profiler;

constexpr int kTimelineColumns = 1200;  // one a point of the chart's default width

models::Result<void> make_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error && std::filesystem::is_directory(folder, error)) return {};
    return models::fail("The folder {} cannot be made ({}): choose another place with --charts.",
                        folder, error ? error.message() : "a file has that name");
}

/// Draws one chart in each format and adds the names of the files to `written`.
template <typename Render>
models::Result<void> write_in_formats(const std::string& stem, const std::string& folder,
                                      const std::vector<std::string>& formats,
                                      std::vector<std::string>& written, const Render& render) {
    for (const std::string& name : formats) {
        const auto format = parse_chart_format(name);
        if (!format) return tl::unexpected(format.error());
        const auto bytes = render(ChartOptions{.format = *format});
        if (!bytes) return tl::unexpected(bytes.error());
        const auto path = std::filesystem::path(folder) / (stem + "." + name);
        if (auto ok = write_file(path, *bytes); !ok) return ok;
        written.push_back(path.string());
    }
    return {};
}

}  // namespace

std::vector<std::string> formats_or_svg(const std::vector<std::string>& formats) {
    return formats.empty() ? std::vector<std::string>{"svg"} : formats;
}

std::string label_of(const NamedTrace& named) {
    std::string recipe = profiler::describe_recipe(*named.trace);
    return recipe.empty() ? std::filesystem::path(named.file).stem().string() : recipe;
}

models::Result<std::vector<std::string>> write_comparison_charts(
    const Comparison& comparison, const std::string& folder,
    const std::vector<std::string>& formats) {
    if (auto ok = make_folder(folder); !ok) return tl::unexpected(ok.error());
    const CompareView view = build_compare_view(comparison);
    std::vector<std::string> written;
    for (const std::string& name : formats) {
        const auto format = parse_chart_format(name);
        if (!format) return tl::unexpected(format.error());
        const auto path = std::filesystem::path(folder) / ("comparison." + name);
        const auto done = write_comparison_chart(view, light_theme(), {.format = *format}, path);
        if (!done) return tl::unexpected(done.error());
        written.push_back(path.string());
    }
    return written;
}

models::Result<std::vector<std::string>> write_movement_charts(
    const MovementChartsRequest& request) {
    if (auto ok = make_folder(request.folder); !ok) return tl::unexpected(ok.error());
    const Trace& trace = request.view.steps.a->trace();
    const MovementCaption caption{describe_run(trace), describe_source(trace)};
    std::vector<std::string> written;
    const MovementView view = build_movement_view(request.view);
    if (!view.traces.front().dots.empty()) {
        auto ok = write_in_formats("movement-roofline", request.folder, request.formats, written,
                                   [&](const auto& options) {
                                       return render_roofline_chart(view, caption, light_theme(),
                                                                    options);
                                   });
        if (!ok) return tl::unexpected(ok.error());
    }
    const bool is_logical = request.view.ops == MovementOps::kLogical;
    const auto workload = is_logical ? workload_of(trace) : std::nullopt;
    const MovementFlow flow = workload ? logical_flow(*workload) : movement_flow(trace);
    if (!flow.nodes.empty()) {
        auto ok = write_in_formats(
            "movement-flow", request.folder, request.formats, written, [&](const auto& options) {
                return render_flow_chart(flow, caption, light_theme(), options);
            });
        if (!ok) return tl::unexpected(ok.error());
    }
    return written;
}

models::Result<std::vector<std::string>> write_bench_charts(
    const std::vector<BenchRow>& rows, const std::string& folder,
    const std::vector<std::string>& formats) {
    if (auto ok = make_folder(folder); !ok) return tl::unexpected(ok.error());
    std::vector<std::string> written;
    for (const BenchTable& table : bench_tables(rows)) {
        const BarChart chart = bench_chart(rows, table.kind);
        const std::string stem = fmt::format("bench-{}", name_of(table.kind));
        auto ok = write_in_formats(stem, folder, formats, written, [&](const auto& options) {
            return render_bar_chart(chart, light_theme(), options);
        });
        if (!ok) return tl::unexpected(ok.error());
    }
    return written;
}

models::Result<void> check_chart_file(const std::string& path) {
    const auto format = chart_format_of(path);
    if (!format) return tl::unexpected(format.error());
    return {};
}

models::Result<void> write_bar_chart(const BarChart& chart, const std::string& path) {
    const auto format = chart_format_of(path);
    if (!format) return tl::unexpected(format.error());
    const auto bytes = render_bar_chart(chart, light_theme(), {.format = *format});
    if (!bytes) return tl::unexpected(bytes.error());
    return write_file(path, *bytes);
}

models::Result<void> write_timeline(const std::vector<NamedTrace>& traces,
                                    const std::string& format, const std::string& path) {
    const auto parsed = parse_chart_format(format);
    if (!parsed) return tl::unexpected(parsed.error());
    std::list<StepIndex> steps;
    TimelineRequest request{.width_px = kTimelineColumns};
    for (const NamedTrace& named : traces) {
        request.names[steps.size()] = label_of(named);
        steps.emplace_back(*named.trace, named.report);
    }
    request.steps = {&steps.front(), steps.size() > 1 ? &steps.back() : nullptr};
    if (traces.size() > 1) {
        request.alignment = std::make_shared<const Alignment>(
            align(*traces[0].trace, *traces[1].trace, TimeAlignment::kPhases));
    }
    const TimeRange range = fit_timeline(request);
    request.start_ns = range.start_ns;
    request.end_ns = range.end_ns;
    return write_timeline_chart(build_timeline_view(request), light_theme(), {.format = *parsed},
                                path);
}

}  // namespace app
