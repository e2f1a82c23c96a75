#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/text.h"
#include "profiler/trace/units.h"
#include "profiler/view/place_labels.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

constexpr double kAxisWidth = 66;
constexpr double kPlotHeight = 190;
constexpr double kDifferenceHeight = 96;
constexpr double kPlotTitleHeight = 40;

struct TimeAxis {
    Rect plot;
    double start_ns = 0;
    double end_ns = 1;

    double x(double time_ns) const {
        const double t = (time_ns - start_ns) / (end_ns - start_ns);
        return plot.x + std::clamp(t, 0.0, 1.0) * plot.width;
    }
};

/// The outline of a step function over the columns, from `base(i)` up to `top(i)`. Equal neighbours
/// are joined, which makes files much smaller.
template <typename Base, typename Top>
std::vector<Point> step_outline(const TimelineTrace& trace, const TimeAxis& axis, Base base,
                                Top top) {
    std::vector<Point> upper;
    std::vector<Point> lower;
    const auto add = [](std::vector<Point>& line, double x0, double x1, double y) {
        if (!line.empty() && line.back().y == y) {
            line.back().x = x1;
            return;
        }
        line.push_back({x0, y});
        line.push_back({x1, y});
    };
    for (std::size_t i = 0; i < trace.column_count(); ++i) {
        const double x0 = axis.x(trace.edge_ns[i]);
        const double x1 = axis.x(trace.edge_ns[i + 1]);
        add(upper, x0, x1, top(i));
        add(lower, x0, x1, base(i));
    }
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    return upper;
}

void draw_phases(Canvas& canvas, const Theme& theme, const TimelineTrace& trace,
                 const TimeAxis& axis) {
    const TextStyle style{.size = kLabelSize, .color = theme.dim_text, .align = 0.5};
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const PhaseBand& band = trace.phases[i];
        const double x0 = axis.x(band.start_ns);
        const double x1 = axis.x(band.end_ns);
        if (static_cast<int>(band.kind) % 2 == 0) {
            canvas.fill({x0, axis.plot.y, x1 - x0, axis.plot.height}, theme.text, 0.045);
        }
        canvas.line({x0, axis.plot.y - 5}, {x0, axis.plot.bottom()},
                    {.color = theme.text, .width = 0.8, .alpha = 0.18});
        const std::string label = std::string(name_of(band.kind));
        if (canvas.measure(label, style) + 6 < x1 - x0) {
            canvas.text({(x0 + x1) / 2, axis.plot.y - 6}, label, style);
        }
    }
}

void draw_layers(Canvas& canvas, const Theme& theme, const TimelineView& view,
                 const TimelineTrace& trace, const TimeAxis& axis, double end_bytes) {
    const auto y = [&](double bytes) {
        return axis.plot.bottom() - bytes / end_bytes * axis.plot.height;
    };
    const std::vector<double>* below = nullptr;
    for (const Category category : view.categories) {
        const std::vector<double>& tops = trace.top_bytes[static_cast<std::size_t>(category)];
        const auto outline = step_outline(
            trace, axis, [&](std::size_t i) { return y(below ? (*below)[i] : 0); },
            [&](std::size_t i) { return y(tops[i]); });
        const Color fill = color_of(theme, category);
        canvas.polygon(outline, fill);
        canvas.hatch(std::span<const Point>(outline), hatch_of(category), ink_on(fill), 0.2);
        below = &tops;
    }
    if (!trace.has_reserved) return;
    std::vector<Point> reserved;
    for (std::size_t i = 0; i < trace.column_count(); ++i) {
        reserved.push_back({axis.x(trace.edge_ns[i]), y(trace.reserved_bytes[i])});
        reserved.push_back({axis.x(trace.edge_ns[i + 1]), y(trace.reserved_bytes[i])});
    }
    canvas.polyline(reserved, {.color = theme.text, .width = 1.2, .alpha = 0.8, .dashed = true});
}

void draw_peak(Canvas& canvas, const Theme& theme, const TimelineTrace& trace, const TimeAxis& axis,
               double end_bytes) {
    for (const PeakMarker& peak : trace.peaks) {
        const auto y = [&](int64_t bytes) {
            return axis.plot.bottom() - static_cast<double>(bytes) / end_bytes * axis.plot.height;
        };
        const Point at{axis.x(peak.time_ns), y(peak.bytes)};
        if (peak.uneven_bytes > 0) {  // a range, as an error bar
            const double top = y(peak.uneven_bytes);
            const LineStyle style{.color = theme.text, .width = 1.6};
            canvas.line(at, {at.x, top}, style);
            canvas.line({at.x - 4, top}, {at.x + 4, top}, style);
        }
        const TextStyle style{.size = kLabelSize, .weight = Weight::kBold, .color = theme.text};
        const double width = canvas.measure(peak.text, style) + 12;
        const double top = at.y - 17, right = at.x + 8, left = at.x - 8 - width;
        const LabelWish wish{.size = {width, 17},
                             .places = {{right, top}, {left, top}, {right, at.y}, {left, at.y}}};
        if (const auto plate = place_label(wish, {.frame = axis.plot})) {
            canvas.fill_rounded(*plate, 3, theme.plot, 0.88);
            canvas.text({plate->x + 6, plate->y + 12.5}, peak.text, style);
        }
        canvas.ring(at, 3.5, {.color = theme.text, .width = 1.6});
    }
}

std::vector<Tick> time_ticks(const TimeAxis& axis) {
    return make_ticks(AxisUnit::kTime, axis.start_ns, axis.end_ns,
                      std::max(2, static_cast<int>(axis.plot.width) / 90));
}

void draw_trace(Canvas& canvas, const Theme& theme, const TimelineView& view,
                const TimelineTrace& trace, const TimeAxis& axis) {
    const int ticks = std::max(3, static_cast<int>(axis.plot.height) / 40);
    const double end_bytes = axis_end(AxisUnit::kBytes, view.max_bytes, 0.12, ticks);
    const TextStyle bold{.size = 13, .weight = Weight::kBold, .color = theme.text};
    const double width = canvas.text({axis.plot.x, axis.plot.y - 24}, trace.name, bold);
    canvas.text({axis.plot.x + width + 10, axis.plot.y - 24}, trace.summary,
                {.size = kTextSize, .color = theme.dim_text});
    draw_y_axis(canvas, theme, axis.plot, make_ticks(AxisUnit::kBytes, 0, end_bytes, ticks),
                end_bytes);
    draw_x_axis(canvas, theme, axis.plot, time_ticks(axis), axis.start_ns, axis.end_ns);
    draw_phases(canvas, theme, trace, axis);
    draw_layers(canvas, theme, view, trace, axis, end_bytes);
    draw_peak(canvas, theme, trace, axis, end_bytes);
}

void draw_difference(Canvas& canvas, const Theme& theme, const TimelineView& view,
                     const TimeAxis& axis) {
    const auto [least, most] = std::ranges::minmax_element(view.difference_bytes);
    const double margin = std::max(view.max_difference_bytes * 0.12, 1.0);
    const double low = std::min(*least, 0.0) - margin;
    const double high = std::max(*most, 0.0) + margin;
    const auto y = [&](double bytes) {
        return axis.plot.bottom() - (bytes - low) / (high - low) * axis.plot.height;
    };
    canvas.text({axis.plot.x, axis.plot.y - 8},
                fmt::format("Difference: {} minus {}", view.traces[1].name, view.traces[0].name),
                {.size = 13, .weight = Weight::kBold, .color = theme.text});
    const TextStyle label{.size = kLabelSize, .color = theme.dim_text, .align = 1};
    for (const Tick& tick : make_ticks(AxisUnit::kBytes, low, high, 5)) {
        canvas.line({axis.plot.x, y(tick.value)}, {axis.plot.right(), y(tick.value)},
                    {.color = theme.text, .alpha = tick.value == 0 ? 0.5 : 0.1});
        canvas.text({axis.plot.x - 7, y(tick.value) + 4},
                    tick.value > 0 ? "+" + tick.label : tick.label, label);
    }
    const auto fill = [&](auto part, Color color) {
        const auto outline = step_outline(
            view.traces[0], axis, [&](std::size_t) { return y(0); },
            [&](std::size_t i) { return y(part(view.difference_bytes[i])); });
        canvas.polygon(outline, color, 0.85);
    };
    fill([](double bytes) { return std::min(bytes, 0.0); }, theme.good);
    fill([](double bytes) { return std::max(bytes, 0.0); }, theme.bad);
    draw_x_axis(canvas, theme, axis.plot, time_ticks(axis), axis.start_ns, axis.end_ns);
}

/// The figure in words, for search and screen readers.
std::string summarize(const TimelineView& view) {
    std::string summary;
    for (const TimelineTrace& trace : view.traces) {
        if (!summary.empty()) summary += "; ";
        summary += fmt::format("{}: {}", trace.name, trace.summary);
    }
    return summary;
}

/// "B needs 1.40 GiB (12 %) less memory than A."
std::string saving_of(const TimelineView& view) {
    if (view.traces.size() < 2) return {};
    const TimelineTrace& a = view.traces[0];
    const TimelineTrace& b = view.traces[1];
    if (a.peaks.empty() || b.peaks.empty() || a.peaks[0].bytes <= 0) return {};
    const int64_t saved_bytes = a.peaks[0].bytes - b.peaks[0].bytes;
    if (saved_bytes == 0) return fmt::format("{} and {} have the same peak.", a.name, b.name);
    const double share = static_cast<double>(saved_bytes) / static_cast<double>(a.peaks[0].bytes);
    return fmt::format("{} needs {} ({:.1f} %) {} memory at its peak than {}.", b.name,
                       format_bytes(std::abs(saved_bytes)), std::abs(share) * 100,
                       saved_bytes > 0 ? "less" : "more", a.name);
}

FigureText describe(const TimelineView& view, const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? "Memory over time" : options.title;
    text.subtitle = view.workload;
    text.sentence = saving_of(view);
    for (const std::string& origin : view.origin) text.footer.push_back(capitalized(origin) + ".");
    if (view.traces.size() > 1 && view.alignment != TimeAlignment::kTime) {
        const bool by_phases = view.alignment == TimeAlignment::kPhases;
        text.footer.push_back(fmt::format(
            "The time axis is the one of {}; {} is stretched to its {}.", view.traces[0].name,
            view.traces[1].name, by_phases ? "phases and modules" : "blocks"));
    }
    if (!view.alignment_note.empty()) text.footer.push_back(view.alignment_note);
    for (const std::string& note : view.notes) text.footer.push_back("Note: " + note + ".");
    const bool has_reserved = std::ranges::any_of(view.traces, &TimelineTrace::has_reserved);
    text.footer.push_back(fmt::format(
        "Each column shows the moment at which its total is highest.{} Drawn by Temposcope.",
        has_reserved ? " Dashed: reserved by the allocator, where it differs." : ""));
    return text;
}

struct Drawn {
    double height = 0;
    std::vector<Rect> plots;  // of the traces
};

Drawn draw_figure(Canvas& canvas, const TimelineView& view, const Theme& theme,
                  const FigureText& text, double width, double extra_height) {
    Drawn drawn;
    const Flow flow{kMargin, kMargin - 6, width - 2 * kMargin};
    double y = draw_header(canvas, theme, text, flow) + 12;
    y = draw_category_legend(canvas, theme, view.categories, {flow.x, y, flow.width}) + 8;
    const std::vector<double>& edges = view.traces[0].edge_ns;
    TimeAxis axis{
        {flow.x + kAxisWidth, 0, flow.width - kAxisWidth - 8, 0}, edges.front(), edges.back()};
    for (const TimelineTrace& trace : view.traces) {
        axis.plot.y = y + kPlotTitleHeight;
        axis.plot.height = kPlotHeight + extra_height / static_cast<double>(view.traces.size());
        draw_trace(canvas, theme, view, trace, axis);
        drawn.plots.push_back(axis.plot);
        y = axis.plot.bottom() + 26;
    }
    if (!view.difference_bytes.empty()) {
        axis.plot.y = y + 20;
        axis.plot.height = kDifferenceHeight;
        draw_difference(canvas, theme, view, axis);
        y = axis.plot.bottom() + 26;
    }
    drawn.height = draw_footer(canvas, theme, text, {flow.x, y + 6, flow.width}) + 16;
    return drawn;
}

/// Bytes of a category in each column: its layer without the layers below.
std::vector<double> bytes_of(const TimelineTrace& trace, const TimelineView& view,
                             std::size_t layer) {
    const auto& tops = trace.top_bytes[static_cast<std::size_t>(view.categories[layer])];
    std::vector<double> bytes(tops.begin(), tops.end());
    if (layer == 0) return bytes;
    const auto& below = trace.top_bytes[static_cast<std::size_t>(view.categories[layer - 1])];
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] -= below[i];
    return bytes;
}

std::vector<HoverPlot> hover_plots(const TimelineView& view, const std::vector<Rect>& places) {
    std::vector<HoverPlot> plots;
    for (std::size_t i = 0; i < view.traces.size(); ++i) {
        const TimelineTrace& trace = view.traces[i];
        HoverPlot plot{.title = trace.name, .place = places[i], .edge_ns = &trace.edge_ns};
        plot.rows.push_back({"total", trace.allocated_bytes});
        for (std::size_t layer = view.categories.size(); layer-- > 0;) {
            plot.rows.push_back(
                {std::string(label_of(view.categories[layer])), bytes_of(trace, view, layer)});
        }
        if (trace.has_reserved) plot.rows.push_back({"reserved", trace.reserved_bytes});
        plots.push_back(std::move(plot));
    }
    return plots;
}

/// What is allocated at the peak of each trace, by category, and the change from the first.
TextTable peak_table(const TimelineView& view) {
    TextTable table{.columns = {{"At the peak"}}};
    std::vector<std::size_t> peaks;
    for (const TimelineTrace& trace : view.traces) {
        table.columns.push_back({trace.name, Align::kRight, "bytes allocated at the peak"});
        const auto highest = std::ranges::max_element(trace.allocated_bytes);
        peaks.push_back(static_cast<std::size_t>(highest - trace.allocated_bytes.begin()));
    }
    if (view.traces.size() > 1) table.columns.push_back({"Change", Align::kRight});
    const auto add = [&](std::string name, const auto& bytes_at_peak) {
        std::vector<std::string> row{std::move(name)};
        std::vector<double> bytes;
        for (std::size_t i = 0; i < view.traces.size(); ++i) {
            bytes.push_back(bytes_at_peak(view.traces[i])[peaks[i]]);
            row.push_back(format_bytes(std::llround(bytes.back())));
        }
        if (bytes.size() > 1) {
            const auto change = std::llround(bytes[1] - bytes[0]);
            row.push_back((change > 0 ? "+" : "") + format_bytes(change));
        }
        table.rows.push_back(std::move(row));
    };
    for (std::size_t layer = view.categories.size(); layer-- > 0;) {
        add(std::string(label_of(view.categories[layer])),
            [&](const TimelineTrace& trace) { return bytes_of(trace, view, layer); });
    }
    add("total", [](const TimelineTrace& trace) { return trace.allocated_bytes; });
    return table;
}

}  // namespace

models::Result<std::string> render_timeline_chart(const TimelineView& view, const Theme& theme,
                                                  const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (view.traces.empty() || view.traces[0].column_count() == 0) {
        return models::fail("There is nothing to draw: the time window is empty.");
    }
    const FigureText text = describe(view, options);
    const double natural_height = measure_height([&](Canvas& canvas) {
        return draw_figure(canvas, view, theme, text, options.width, 0).height;
    });
    Page page = page_of(text, theme, options, natural_height);
    page.description = summarize(view);
    std::vector<Rect> plots;
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        plots = draw_figure(canvas, view, theme, text, options.width, page.height - natural_height)
                    .plots;
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    const TextTable table = peak_table(view);
    return make_html_page(*drawn, text, &table, theme, hover_plots(view, plots));
}

models::Result<void> write_timeline_chart(const TimelineView& view, const Theme& theme,
                                          const ChartOptions& options,
                                          const std::filesystem::path& path) {
    const auto bytes = render_timeline_chart(view, theme, options);
    if (!bytes) return tl::unexpected(bytes.error());
    return write_file(path, *bytes);
}

}  // namespace profiler
