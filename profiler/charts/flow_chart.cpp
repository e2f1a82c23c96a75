#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/flow_layout.h"
#include "profiler/charts/html.h"
#include "profiler/trace/units.h"
#include "profiler/view/kernels/op_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

namespace profiler {
namespace {

constexpr std::size_t kMostNodes = 400;  // of one layer; a page would be too high

/// "25.8 Gflop, 1293 a word": what the paper writes beside each op.
std::string figures_of(const MovementWork& work) {
    if (work.flop <= 0) return "no arithmetic";
    const std::string amount = format_amount(static_cast<double>(work.flop), "flop");
    if (work.words() <= 0) return amount;
    const double ratio = static_cast<double>(work.flop) / static_cast<double>(work.words());
    return fmt::format("{}, {} a word", amount,
                       ratio < 9.95 ? fmt::format("{:.2g}", ratio) : fmt::format("{:.0f}", ratio));
}

std::vector<std::string> labels_of(const MovementFlow& flow) {
    std::vector<MovementRow> rows;
    OpLabels labels;
    for (const MovementNode& node : flow.nodes) {
        MovementRow row;
        row.name = node.name;
        row.module = node.module;
        row.call = node.call;
        labels.add(row);
        rows.push_back(std::move(row));
    }
    std::vector<std::string> texts;
    for (const MovementRow& row : rows) texts.push_back(labels.label_of(row));
    return texts;
}

FigureText describe_flow(const MovementFlow& flow, const MovementCaption& caption,
                         const ChartOptions& options) {
    FigureText text;
    text.title = options.title.empty() ? "Data flow of a layer" : options.title;
    text.subtitle = caption.workload;
    MovementWork sum;
    for (const MovementNode& node : flow.nodes) sum += node.work;
    text.sentence = fmt::format("{}: {}.",
                                flow.layer >= 0 ? fmt::format("Layer {}", flow.layer)
                                                : std::string("Logical ops of one layer"),
                                sum_text(sum));
    if (!caption.source.empty() && flow.layer >= 0) text.footer.push_back(caption.source + ".");
    text.footer.emplace_back(
        "Lines: as wide as the words (elements) that one op writes and the other reads, with their "
        "number. Beside an op: its flop, and flop for each word in or out. After Ivanov et al., "
        "arXiv 2007.00072, Figure 1. Drawn by Temposcope.");
    return text;
}

struct FlowColors {
    Color next;
    Color skip;
    Color saved;
};

void draw_path(Canvas& canvas, const FlowPath& path, const FlowColors& colors) {
    const bool is_saved = path.kind == FlowPathKind::kSaved;
    const Color color = is_saved                           ? colors.saved
                        : path.kind == FlowPathKind::kSkip ? colors.skip
                                                           : colors.next;
    canvas.polyline(path.points, {.color = color,
                                  .width = path.width,
                                  .alpha = is_saved                           ? 0.42
                                           : path.kind == FlowPathKind::kNext ? 0.75
                                                                              : 0.4});
}

void draw_node(Canvas& canvas, const Theme& theme, const MovementNode& node,
               const std::string& label, const Rect& rect) {
    const Color fill = color_of(theme, activity_class_of(node.op_class));
    canvas.fill_rounded({rect.x - 1.5, rect.y - 1.5, rect.width + 3, rect.height + 3}, 6,
                        theme.plot);
    canvas.fill_rounded(rect, 5, fill, 0.2);
    canvas.fill_rounded({rect.x, rect.y, 6, rect.height}, 3, fill);
    const std::string figures = figures_of(node.work);
    const TextStyle dim{.size = 10, .color = theme.dim_text, .align = 1};
    const double width = canvas.measure(figures, dim);
    const TextStyle name{.size = kLabelSize, .color = theme.text};
    canvas.text({rect.x + 13, rect.center_y() + 4},
                fit_label(label, rect.width - width - 28, canvas.measurer(name)), name);
    canvas.text({rect.right() - 8, rect.center_y() + 3.5}, figures, dim);
}

double draw_flow_legend(Canvas& canvas, const Theme& theme, const MovementFlow& flow,
                        const FlowColors& colors, const Flow& place) {
    const TextStyle style{.size = kTextSize, .color = theme.text};
    double x = place.x;
    std::array<bool, kOpClassNames.size()> has_class{};
    for (const MovementNode& node : flow.nodes)
        has_class[static_cast<std::size_t>(node.op_class)] = true;
    for (std::size_t i = 0; i < has_class.size(); ++i) {
        if (!has_class[i]) continue;
        const ActivityClass of = activity_class_of(static_cast<OpClass>(i));
        canvas.fill_rounded({x, place.y + 2, 13, 13}, 3, color_of(theme, of));
        x += 19 + canvas.text({x + 19, place.y + 12.5}, label_of(of), style) + 18;
    }
    x += 10;
    canvas.line({x, place.y + 8.5}, {x + 26, place.y + 8.5},
                {.color = colors.saved, .width = 6, .alpha = 0.42});
    canvas.text({x + 33, place.y + 12.5}, "saved for backward", style);
    return place.y + 18;
}

double draw_flow_figure(Canvas& canvas, const MovementFlow& flow, const Theme& theme,
                        const FigureText& text, double width) {
    const double inner = width - 2 * kMargin;
    const FlowColors colors{.next = mix(theme.plot, theme.text, 0.45),
                            .skip = theme.dim_text,
                            .saved = color_of(theme, Category::kActivation)};
    double y = draw_header(canvas, theme, text, {kMargin, 20, inner}) + 12;
    y = draw_flow_legend(canvas, theme, flow, colors, {kMargin, y, inner}) + 30;
    const FlowLayout layout = layout_flow(flow, {kMargin, y, inner, 0});
    const TextStyle title{.size = 13, .weight = Weight::kBold, .color = theme.text, .align = 0.5};
    for (const FlowColumnTitle& column : layout.titles) {
        canvas.text({column.x, y - 8}, column.text, title);
    }
    for (const FlowPathKind kind :
         {FlowPathKind::kSkip, FlowPathKind::kSaved, FlowPathKind::kNext}) {
        for (const FlowPath& path : layout.paths) {
            if (path.kind == kind) draw_path(canvas, path, colors);
        }
    }
    const std::vector<std::string> labels = labels_of(flow);
    for (std::size_t i = 0; i < flow.nodes.size(); ++i) {
        draw_node(canvas, theme, flow.nodes[i], labels[i], layout.nodes[i]);
    }
    const TextStyle words{.size = 9.5, .color = theme.text};
    for (std::size_t i = 0; i < layout.paths.size(); ++i) {
        const FlowPath& path = layout.paths[i];
        if (!path.has_label) continue;
        const std::string label = format_amount(static_cast<double>(flow.edges[i].words));
        canvas.fill_rounded(
            {path.label.x - 2, path.label.y - 8.5, canvas.measure(label, words) + 4, 11}, 2,
            theme.plot, 0.75);
        canvas.text(path.label, label, words);
    }
    return draw_footer(canvas, theme, text, {kMargin, layout.bottom + 16, inner}) + 16;
}

}  // namespace

models::Result<std::string> render_flow_chart(const MovementFlow& flow,
                                              const MovementCaption& caption, const Theme& theme,
                                              const ChartOptions& options) {
    if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
    if (flow.nodes.empty()) {
        return models::fail("There is nothing to draw: no op of a layer has counted work.");
    }
    if (flow.nodes.size() > kMostNodes) {
        return models::fail("A layer of {} ops is too large to draw: {} fit on a page.",
                            flow.nodes.size(), kMostNodes);
    }
    const FigureText text = describe_flow(flow, caption, options);
    double height = 0;
    with_measuring_canvas([&](Canvas& canvas) {
        height = draw_flow_figure(canvas, flow, theme, text, options.width);
    });
    const Page page{.width = options.width,
                    .height = std::ceil(std::max(height, options.height)),
                    .png_scale = options.png_scale,
                    .paper = theme.plot,
                    .title = text.title,
                    .description = text.subtitle + ". " + text.sentence};
    const auto drawn = draw_page(page, options.format, [&](Canvas& canvas) {
        draw_flow_figure(canvas, flow, theme, text, options.width);
    });
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, nullptr, theme);
}

}  // namespace profiler
