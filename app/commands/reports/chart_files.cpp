#include "app/commands/reports/chart_files.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/charts/charts.h"
#include "profiler/trace/file/write_file.h"

#include <filesystem>
#include <functional>
#include <list>
#include <memory>

namespace app {
namespace {

namespace fs = std::filesystem;
using models::Result;
using namespace profiler;

constexpr int kTimelineColumns = 1200;  // one a point of the chart's default width

using Render = std::function<Result<std::string>(const ChartOptions&)>;

Result<void> write_chart(const fs::path& path, const Render& render) {
    const auto format = chart_format_of(path);
    if (!format) return tl::unexpected(format.error());
    const auto bytes = render({.format = *format});
    if (!bytes) return tl::unexpected(bytes.error());
    return write_file(path, *bytes);
}

struct NamedChart {
    std::string name;  // of its files, without their endings
    Render render;
};

Result<std::vector<std::string>> write_charts(const ChartsForm& form,
                                              const std::vector<NamedChart>& charts) {
    const auto formats = form.formats.empty() ? std::vector<std::string>{"svg"} : form.formats;
    std::vector<std::string> files;
    for (const auto& [name, render] : charts) {
        for (const std::string& format : formats) {
            const auto path = fs::path(form.folder) / (name + "." + format);
            if (auto ok = write_chart(path, render); !ok) return tl::unexpected(ok.error());
            files.push_back(path.string());
        }
    }
    return files;
}

/// What pictures call a trace: its recipe, else its file.
std::string label_of(const NamedTrace& named) {
    std::string recipe = describe_recipe(*named.trace);
    return recipe.empty() ? fs::path(named.file).stem().string() : recipe;
}

/// Puts the traces into the request of a view, which points into `steps`.
template <typename Request>
void add_traces(const std::vector<NamedTrace>& traces, std::list<StepIndex>& steps,
                Request& request) {
    for (const NamedTrace& named : traces) {
        request.names[steps.size()] = label_of(named);
        steps.emplace_back(*named.trace, named.report);
    }
    request.steps = {&steps.front(), steps.size() > 1 ? &steps.back() : nullptr};
    if (traces.size() < 2) return;
    request.alignment = std::make_shared<const Alignment>(
        align(*traces[0].trace, *traces[1].trace, TimeAlignment::kPhases));
}

}  // namespace

Result<void> check_formats(const ChartsForm& form) {
    if (form.formats.empty() || !form.folder.empty()) return {};
    return models::fail("--format is for charts: name their folder with --charts.");
}

Result<std::vector<std::string>> write_comparison_charts(const Comparison& comparison,
                                                         const ChartsForm& form) {
    const CompareView view = build_compare_view(comparison);
    return write_charts(form, {{"comparison", [&](const ChartOptions& options) {
                                    return render_comparison_chart(view, light_theme(), options);
                                }}});
}

Result<std::vector<std::string>> write_movement_charts(const MovementRequest& request,
                                                       const ChartsForm& form) {
    const Trace& trace = request.steps.a->trace();
    const MovementCaption caption{describe_run(trace), describe_source(trace)};
    std::vector<NamedChart> charts;
    const MovementView view = build_movement_view(request);
    if (!view.traces.front().dots.empty()) {
        charts.push_back({"movement-roofline", [&](const ChartOptions& options) {
                              return render_roofline_chart(view, caption, light_theme(), options);
                          }});
    }
    const bool is_logical = request.ops == MovementOps::kLogical;
    const auto workload = is_logical ? workload_of(trace) : std::nullopt;
    const MovementFlow flow = workload ? logical_flow(*workload) : movement_flow(trace);
    if (!flow.nodes.empty()) {
        charts.push_back({"movement-flow", [&](const ChartOptions& options) {
                              return render_flow_chart(flow, caption, light_theme(), options);
                          }});
    }
    return write_charts(form, charts);
}

Result<std::vector<std::string>> write_bench_charts(const std::vector<BenchRow>& rows,
                                                    const ChartsForm& form) {
    std::vector<NamedChart> charts;
    for (const BenchTable& table : bench_tables(rows)) {
        charts.push_back({fmt::format("bench-{}", name_of(table.kind)),
                          [&rows, kind = table.kind](const ChartOptions& options) {
                              return render_bar_chart(bench_chart(rows, kind), light_theme(),
                                                      options);
                          }});
    }
    return write_charts(form, charts);
}

Result<void> check_chart_file(const std::string& path) {
    const auto format = chart_format_of(path);
    if (!format) return tl::unexpected(format.error());
    return {};
}

Result<void> write_bar_chart(const BarChart& chart, const std::string& path) {
    return write_chart(path, [&](const ChartOptions& options) {
        return render_bar_chart(chart, light_theme(), options);
    });
}

Result<void> write_layouts_chart(const LayoutsView& view, const std::string& workload,
                                 const std::string& path) {
    return write_chart(path, [&](const ChartOptions& options) {
        return render_layouts_chart(view, workload, light_theme(), options);
    });
}

Result<void> write_timeline(const std::vector<NamedTrace>& traces, const std::string& format,
                            const std::string& path) {
    const auto parsed = parse_chart_format(format);
    if (!parsed) return tl::unexpected(parsed.error());
    std::list<StepIndex> steps;
    TimelineRequest request{.width_px = kTimelineColumns};
    add_traces(traces, steps, request);
    const TimeRange range = fit_timeline(request);
    request.start_ns = range.start_ns;
    request.end_ns = range.end_ns;
    return write_timeline_chart(build_timeline_view(request), light_theme(), {.format = *parsed},
                                path);
}

Result<std::string> render_page(const std::vector<NamedTrace>& traces) {
    for (const NamedTrace& named : traces) {
        if (has_recorded_step(*named.trace)) continue;
        return models::fail(
            "{} holds no recorded step, so there is no memory over time to show; name a trace "
            "that \"temposcope capture\" has finished.",
            named.file);
    }
    std::list<StepIndex> steps;
    PageRequest request;
    add_traces(traces, steps, request);
    return make_page(build_page_view(request));
}

}  // namespace app
