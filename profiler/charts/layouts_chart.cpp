#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace profiler {
namespace {

constexpr double kLeftSpace = 44;
constexpr double kPanelHeight = 210;
constexpr double kAbovePanel = 40;  // title
constexpr double kBelowPanel = 74;  // orders, times, names
constexpr double kMostSlowdown = 30;
constexpr double kTickWidth = 9;

FigureText describe(const LayoutsView& view, const std::string& workload,
                    const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? "Dimension orders of an encoder layer" : options.title;
    text.subtitle = workload;
    text.sentence = view.sentence;
    text.footer.push_back(
        fmt::format("{}, median of {} rounds, fp32.", view.device, view.num_rounds));
    text.footer.emplace_back(
        "A column is an op, a short line one of its configurations, as far up as it takes longer "
        "than the op's fastest one. The path joins the chosen ones, copies included; below them "
        "are the layout that each writes, bold where torch writes another, and its time.");
    text.footer.emplace_back(fmt::format(
        "{} configurations. b sequence, j token, k attended token, h head, p element of a head, "
        "i hidden, u MLP, c query, key or value. Drawn by Temposcope.",
        format_count(view.num_configurations)));
    return text;
}

/// Columns of one pass over a logarithmic axis of slowdowns.
class PassPanel {
public:
    PassPanel(const LayoutsView& view, bool is_backward, const Rect& plot) : plot_(plot) {
        for (const LayoutsViewRow& row : view.rows) {
            if (row.is_backward == is_backward) rows_.push_back(&row);
        }
    }
    const std::vector<const LayoutsViewRow*>& rows() const { return rows_; }
    const Rect& plot() const { return plot_; }
    double column_width() const { return plot_.width / static_cast<double>(rows_.size()); }
    double x(std::size_t column) const {
        return plot_.x + column_width() * (static_cast<double>(column) + 0.5);
    }
    double y(double slowdown) const {
        const double share =
            std::log(std::clamp(slowdown, 1.0, kMostSlowdown)) / std::log(kMostSlowdown);
        return plot_.bottom() - 8 - (plot_.height - 16) * share;
    }

private:
    Rect plot_;
    std::vector<const LayoutsViewRow*> rows_;
};

void draw_slowdown_axis(Canvas& canvas, const Theme& theme, const PassPanel& panel) {
    const LineStyle grid{.color = theme.text, .width = 1, .alpha = theme.is_dark ? 0.09 : 0.11};
    const TextStyle label{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    for (const double slowdown : {1.0, 2.0, 5.0, 10.0, 30.0}) {
        const double y = panel.y(slowdown);
        canvas.line({panel.plot().x, y}, {panel.plot().right(), y}, grid);
        canvas.text({panel.plot().x - 7, y + 4}, fmt::format("{:g} x", slowdown), label);
    }
}

void draw_configurations(Canvas& canvas, const Theme& theme, const PassPanel& panel) {
    for (std::size_t i = 0; i < panel.rows().size(); ++i) {
        const LayoutsViewRow& row = *panel.rows()[i];
        const Color color = color_of(theme, call_class_of(row.op_class));
        const double alpha = row.all_ns.size() > 100 ? 0.18 : 0.4;
        for (const double time_ns : row.all_ns) {
            const double y = panel.y(time_ns / row.best_ns);
            canvas.line({panel.x(i) - kTickWidth, y}, {panel.x(i) + kTickWidth, y},
                        {.color = color, .width = 1.4, .alpha = alpha});
        }
    }
}

void draw_path(Canvas& canvas, const Theme& theme, const PassPanel& panel) {
    std::vector<Point> path;
    for (std::size_t i = 0; i < panel.rows().size(); ++i) {
        const LayoutsViewRow& row = *panel.rows()[i];
        path.push_back({panel.x(i), panel.y((row.time_ns + row.copies_ns) / row.best_ns)});
    }
    canvas.polyline(path, {.color = theme.text, .width = 2, .round_ends = true});
    for (std::size_t i = 0; i < path.size(); ++i) {
        const LayoutsViewRow& row = *panel.rows()[i];
        if (row.torch_ns) {
            canvas.ring({panel.x(i), panel.y(*row.torch_ns / row.best_ns)}, 5.5,
                        {.color = theme.text, .width = 1.4, .alpha = 0.75});
        }
        canvas.disc(path[i], 4.6, theme.plot);
        canvas.disc(path[i], 3.4, theme.text);
    }
}

/// Names stand in two rows in turn, so that long ones do not touch.
void draw_columns_text(Canvas& canvas, const Theme& theme, const PassPanel& panel) {
    for (std::size_t i = 0; i < panel.rows().size(); ++i) {
        const LayoutsViewRow& row = *panel.rows()[i];
        const bool differs = !row.torch_written.empty() && row.torch_written != row.written;
        const double y = panel.plot().bottom() + 15;
        canvas.text({panel.x(i), y}, row.written,
                    {.size = kLabelSize,
                     .weight = differs ? Weight::kBold : Weight::kRegular,
                     .color = theme.text,
                     .align = 0.5});
        const TextStyle dim{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
        const auto time_ns = static_cast<int64_t>(row.time_ns + row.copies_ns);
        canvas.text({panel.x(i), y + 14}, format_duration(time_ns), dim);
        canvas.text({panel.x(i), y + (i % 2 == 0 ? 30 : 44)}, row.op, dim);
    }
}

double draw_layouts_legend(Canvas& canvas, const Theme& theme, const Flow& flow) {
    std::vector<LegendEntry> entries;
    for (const OpClass op_class :
         {OpClass::kContraction, OpClass::kNormalization, OpClass::kElementWise}) {
        const CallClass of = call_class_of(op_class);
        entries.push_back({.name = std::string(label_of(of)),
                           .mark_width = 2 * kTickWidth,
                           .draw_mark = [&canvas, color = color_of(theme, of)](Point at) {
                               canvas.line({at.x, at.y + 6}, {at.x + 2 * kTickWidth, at.y + 6},
                                           {.color = color, .width = 3});
                           }});
    }
    entries.push_back(
        {.name = "chosen, with its copies", .mark_width = 11, .draw_mark = [&](Point at) {
             canvas.disc({at.x + 6, at.y + 6}, 3.6, theme.text);
         }});
    entries.push_back({.name = "torch's orders", .mark_width = 11, .draw_mark = [&](Point at) {
                           canvas.ring({at.x + 6, at.y + 6}, 5.5,
                                       {.color = theme.text, .width = 1.4, .alpha = 0.75});
                       }});
    return draw_legend(canvas, theme, entries, flow);
}

double draw_layouts(Canvas& canvas, const LayoutsView& view, const Theme& theme,
                    const FigureText& text, double width) {
    const double inner = width - 2 * kMargin;
    double y = draw_header(canvas, theme, text, {kMargin, 20, inner}) + 12;
    y = draw_layouts_legend(canvas, theme, {kMargin, y, inner}) + 8;
    for (const bool is_backward : {false, true}) {
        const PassPanel panel(
            view, is_backward,
            {kMargin + kLeftSpace, y + kAbovePanel, inner - kLeftSpace, kPanelHeight});
        if (panel.rows().empty()) continue;
        draw_panel_title(canvas, theme, {kMargin, y + 14}, inner,
                         is_backward ? "Backward" : "Forward",
                         {"time over the op's fastest configuration"});
        draw_slowdown_axis(canvas, theme, panel);
        draw_configurations(canvas, theme, panel);
        draw_path(canvas, theme, panel);
        draw_columns_text(canvas, theme, panel);
        y = panel.plot().bottom() + kBelowPanel;
    }
    return draw_footer(canvas, theme, text, {kMargin, y, inner}) + 16;
}

}  // namespace

models::Result<std::string> render_layouts_chart(const LayoutsView& view,
                                                 const std::string& workload, const Theme& theme,
                                                 const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (view.rows.empty()) return models::fail("There is nothing to draw: no op was measured.");
    const FigureText text = describe(view, workload, options);
    const auto draw = [&](Canvas& canvas) {
        return draw_layouts(canvas, view, theme, text, options.width);
    };
    const Page page = page_of(text, theme, options, measure_height(draw));
    const auto drawn = draw_page(page, options.format, draw);
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, &view.table, theme);
}

}  // namespace profiler
