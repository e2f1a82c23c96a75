#pragma once

#include "models/config/result.h"
#include "profiler/view/kernels/bench_view.h"
#include "profiler/view/kernels/layouts_view.h"
#include "profiler/view/kernels/movement_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/page_view.h"
#include "profiler/view/theme.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Figures for papers, pull requests and reports: the pictures of the window as files, drawn
/// without a display.
///
///     const CompareView view = build_compare_view(comparison);
///     const ChartOptions options{.format = ChartFormat::kPdf};
///     write_comparison_chart(view, light_theme(), options, "comparison.pdf");
///
/// The layout uses fonts inside the program, so it depends neither on installed fonts nor on the
/// locale, and the same input gives the same bytes. Text can be selected and searched in PDF, SVG
/// and HTML. PDF embeds the font. SVG names Roboto and fallbacks, and fixes the width of each text.
/// HTML is one page with the SVG inline and the numbers as a table that sorts; it loads nothing. A
/// file is written beside its final name and renamed when complete.
namespace profiler {

enum class ChartFormat : uint8_t { kSvg, kPdf, kPng, kHtml };
inline constexpr std::array<std::string_view, 4> kChartFormatNames{"svg", "pdf", "png", "html"};

constexpr std::string_view name_of(ChartFormat f) {
    return kChartFormatNames[static_cast<std::size_t>(f)];
}
/// "svg", "pdf", "png", "html", in any case. Errors: another name; lists these.
models::Result<ChartFormat> parse_chart_format(std::string_view name);
/// By the path's extension. Errors: none, or an unknown one.
models::Result<ChartFormat> chart_format_of(const std::filesystem::path& path);

struct ChartOptions {
    ChartFormat format = ChartFormat::kSvg;
    double width = 1200;   // points (1/72 inch in PDF, CSS pixels in SVG), 640 to 8000
    double height = 0;     // 0: what the content asks for; else at least that
    double png_scale = 2;  // PNG pixels per point, 0.25 to 8
    std::string title;     // empty: a default one
};

/// Memory, maximum batch and throughput side by side. Each recipe has a row with its peak stacked
/// by category, the bytes saved for backward as a thin bar below, and its largest batch. Its
/// throughput is a curve over the batch. Panels say so if the files hold no sweep.
/// Errors: nothing to compare; sizes out of range; a path that cannot be written.
models::Result<void> write_comparison_chart(const CompareView& view, const Theme& theme,
                                            const ChartOptions& options,
                                            const std::filesystem::path& path);

/// One or two traces above each other on one time axis, and their difference. `view` gives the time
/// window and the level of detail; build it with about `options.width` columns.
/// Errors: as above.
models::Result<void> write_timeline_chart(const TimelineView& view, const Theme& theme,
                                          const ChartOptions& options,
                                          const std::filesystem::path& path);

/// What a figure of data movement says beside its picture.
struct MovementCaption {
    std::string workload;  // "bert-large, 24 layers, ..., tempo"
    std::string source;    // "predicted (NVIDIA T4)"
};

/// The roofline of trace A of the view: a dot for each op, its area by time.
/// Errors: as above.
models::Result<std::string> render_roofline_chart(const MovementView& view,
                                                  const MovementCaption& caption,
                                                  const Theme& theme, const ChartOptions& options);

/// The data flow of one layer: forward down the left, backward up the right, lines as wide as the
/// words that flow.
/// Errors: as above.
models::Result<std::string> render_flow_chart(const MovementFlow& flow,
                                              const MovementCaption& caption, const Theme& theme,
                                              const ChartOptions& options);

/// The configurations of each op of an encoder layer, and the path through them: a panel each for
/// forward and backward. `workload` names the layer.
/// Errors: as above.
models::Result<std::string> render_layouts_chart(const LayoutsView& view,
                                                 const std::string& workload, const Theme& theme,
                                                 const ChartOptions& options);
/// Benchmarks: the bars of each series in panels beside each other, which share their groups.
/// Errors: nothing to draw; sizes out of range.
models::Result<std::string> render_bar_chart(const BarChart& chart, const Theme& theme,
                                             const ChartOptions& options);

/// The same, as the bytes of the file.
models::Result<std::string> render_comparison_chart(const CompareView& view, const Theme& theme,
                                                    const ChartOptions& options);
models::Result<std::string> render_timeline_chart(const TimelineView& view, const Theme& theme,
                                                  const ChartOptions& options);

/// One page for a browser that draws memory over time, the blocks and the ledger, and that zooms,
/// sorts and filters. It loads nothing: script and style are inside (assets/page/), and its
/// Content-Security-Policy lets only these run. Data is JSON whose texts cannot end their element.
/// The same view gives the same bytes.
std::string make_page(const PageView& view);

}  // namespace profiler
