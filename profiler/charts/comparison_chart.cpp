#include "profiler/charts/charts.h"
#include "profiler/charts/comparison_layout.h"
#include "profiler/charts/comparison_panels.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/charts/throughput_panel.h"
#include "profiler/trace/file/write_file.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace profiler {
namespace {

FigureText describe(const CompareView& view, const ChartOptions& options) {
    FigureText text;
    text.title =
        options.title.empty() ? "Memory, largest batch and throughput by recipe" : options.title;
    text.subtitle = view.workload;
    text.sentence = view.sentence;
    if (!view.source.empty()) {
        const bool has_changes = view.columns.size() > 1 && view.has_one_baseline;
        text.footer.push_back(view.source + (has_changes ? fmt::format(". Changes are against {}.",
                                                                       view.columns.front().recipe)
                                                         : std::string(".")));
    }
    for (const std::string& note : view.notes) text.footer.push_back("Note: " + note);
    text.footer.emplace_back(
        "Peak allocated: the most bytes in tensors at one time in the recorded steps. Saved: bytes "
        "that autograd holds from forward to backward. Drawn by Temposcope.");
    return text;
}

/// Draws the figure, at least `height` points high; returns the height it needs.
double draw_figure(Canvas& canvas, const CompareView& view, const Theme& theme,
                   const FigureText& text, double width, double height, double fixed_height) {
    const Flow flow{kMargin, kMargin - 6, width - 2 * kMargin};
    double y = draw_header(canvas, theme, text, flow) + 12;
    y = draw_category_legend(canvas, theme, view.categories, {flow.x, y, flow.width}) + 14;
    // The parts above and below the panels have the same height in every figure.
    const double panels_height = std::max(0.0, height - fixed_height);
    const ComparisonLayout layout =
        layout_comparison(canvas, view, {flow.x, y, flow.width, panels_height});
    draw_recipe_names(canvas, theme, view, layout);
    draw_memory_panel(canvas, theme, view, layout);
    draw_batch_panel(canvas, theme, view, layout);
    if (view.has_throughput) {
        draw_throughput_panel(canvas, theme, view, layout);
    } else {
        draw_rate_panel(canvas, theme, view, layout);
    }
    return draw_footer(canvas, theme, text, {flow.x, layout.bottom + 12, flow.width}) + 16;
}

}  // namespace

models::Result<std::string> render_comparison_chart(const CompareView& view, const Theme& theme,
                                                    const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (view.columns.empty()) {
        return models::fail("There is nothing to draw: the comparison has no recipes.");
    }
    const FigureText text = describe(view, options);
    double natural_height = 0;
    double natural_panels = 0;
    with_measuring_canvas([&](Canvas& canvas) {
        natural_height = draw_figure(canvas, view, theme, text, options.width, 0, 0);
        natural_panels =
            layout_comparison(canvas, view, {kMargin, 0, options.width - 2 * kMargin, 0}).bottom;
    });
    const double height = std::ceil(std::max(natural_height, options.height));
    const Page page{.width = options.width,
                    .height = height,
                    .png_scale = options.png_scale,
                    .paper = theme.plot,
                    .title = text.title,
                    .description = text.subtitle + ". " + text.sentence};
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        draw_figure(canvas, view, theme, text, options.width, height,
                    natural_height - natural_panels);
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, &view.table, theme);
}

models::Result<void> write_comparison_chart(const CompareView& view, const Theme& theme,
                                            const ChartOptions& options,
                                            const std::filesystem::path& path) {
    const auto bytes = render_comparison_chart(view, theme, options);
    if (!bytes) return tl::unexpected(bytes.error());
    return write_file(path, *bytes);
}

}  // namespace profiler
