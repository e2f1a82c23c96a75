#include "profiler/charts/flow_chart.h"

#include "profiler/charts/charts.h"
#include "profiler/charts/document.h"
#include "profiler/charts/figure.h"
#include "profiler/charts/html.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace profiler {
namespace {

constexpr double kNodeHeight = 25;
constexpr double kPitch = 41;
constexpr double kMostNodeWidth = 300;
constexpr double kMostLineWidth = 15;
constexpr double kLeastLineWidth = 0.8;
constexpr double kMostBulge = 88;  // of lines around the outside
constexpr int kCurvePoints = 28;
constexpr double kLabelledShare = 0.02;  // of the most words on one edge

enum Column : std::size_t { kForward, kAgain, kBackward, kNumColumns };
constexpr std::array<std::string_view, kNumColumns> kTitles{
    "Forward, downwards", "Forward again, downwards", "Backward, upwards"};

Column column_of(const MovementNode& node) {
    if (node.phase != PhaseKind::kBackward) return kForward;
    return node.runs_again ? kAgain : kBackward;
}

std::vector<Point> curve(Point from, Point from_control, Point to_control, Point to) {
    std::vector<Point> points;
    for (int i = 0; i <= kCurvePoints; ++i) {
        const double t = static_cast<double>(i) / kCurvePoints, u = 1 - t;
        const double a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t, d = t * t * t;
        points.push_back({a * from.x + b * from_control.x + c * to_control.x + d * to.x,
                          a * from.y + b * from_control.y + c * to_control.y + d * to.y});
    }
    return points;
}

/// Lays out one flow.
class FlowPlacer {
public:
    FlowPlacer(const MovementFlow& flow, const Rect& area) : flow_(flow), area_(area) {}

    FlowLayout place() {
        place_nodes();
        for (const MovementEdge& edge : flow_.edges)
            most_words_ = std::max(most_words_, edge.words);
        for (const MovementEdge& edge : flow_.edges) layout_.paths.push_back(path_of(edge));
        thin_out_labels();
        return std::move(layout_);
    }

private:
    void place_nodes() {
        std::array<std::vector<std::size_t>, kNumColumns> nodes;  // of each column
        for (std::size_t i = 0; i < flow_.nodes.size(); ++i) {
            std::vector<std::size_t>& column = nodes[column_of(flow_.nodes[i])];
            places_.push_back(column.size());
            column.push_back(i);
        }
        std::size_t longest = 1;
        for (const auto& column : nodes) longest = std::max(longest, column.size());
        const double height = static_cast<double>(longest) * kPitch;
        layout_.bottom = area_.y + height;
        layout_.nodes.resize(flow_.nodes.size());
        place_columns(nodes);
        for (const Column column : {kForward, kBackward}) {
            const double pitch =
                height / static_cast<double>(std::max<std::size_t>(nodes[column].size(), 1));
            for (std::size_t i = 0; i < nodes[column].size(); ++i) {
                const double place = (static_cast<double>(i) + 0.5) * pitch;
                // Backward runs upwards, beside the ops that it undoes.
                set_node(nodes[column][i], area_.y + (column == kForward ? place : height - place));
            }
        }
        place_repeated(nodes[kAgain]);
    }

    void place_columns(const std::array<std::vector<std::size_t>, kNumColumns>& nodes) {
        const auto count =
            std::ranges::count_if(nodes, [](const auto& column) { return !column.empty(); });
        // Room for the lines around the outside, and between the columns.
        const double outside = count == 1 ? 0.5 : count == 2 ? 0.24 : 0.19;
        const double share = count == 3 ? 0.25 : 0.28;
        node_width_ = std::min(kMostNodeWidth, area_.width * share);
        std::size_t done = 0;
        for (std::size_t c = 0; c < kNumColumns; ++c) {
            if (nodes[c].empty()) continue;
            const double along =
                count == 1 ? 0 : static_cast<double>(done++) / static_cast<double>(count - 1);
            column_x_[c] = area_.x + area_.width * (outside + along * (1 - 2 * outside));
            if (count > 1) layout_.titles.push_back({kTitles[c], column_x_[c]});
        }
    }

    void set_node(std::size_t node, double center_y) {
        layout_.nodes[node] = {column_x_[column_of(flow_.nodes[node])] - node_width_ / 2,
                               center_y - kNodeHeight / 2, node_width_, kNodeHeight};
    }

    /// Each beside the same call of forward; a call that forward did not make, below the one
    /// before.
    void place_repeated(const std::vector<std::size_t>& nodes) {
        using Call = std::pair<std::string_view, std::string_view>;  // name and module
        std::map<Call, std::vector<std::size_t>> first;
        for (std::size_t i = 0; i < flow_.nodes.size(); ++i) {
            const MovementNode& node = flow_.nodes[i];
            if (column_of(node) == kForward) first[{node.name, node.module}].push_back(i);
        }
        std::map<Call, std::size_t> done;
        double last_y = area_.y - kPitch / 2;
        for (const std::size_t i : nodes) {
            const Call call{flow_.nodes[i].name, flow_.nodes[i].module};
            const std::vector<std::size_t>& same = first[call];
            const std::size_t count = done[call]++;
            const double beside_y =
                count < same.size() ? layout_.nodes[same[count]].center_y() : last_y + kPitch;
            last_y = std::max(beside_y, last_y + kPitch);
            set_node(i, last_y);
        }
        layout_.bottom = std::max(layout_.bottom, last_y + kPitch / 2);
    }

    double width_of(int64_t words) const {
        const double share =
            static_cast<double>(words) / static_cast<double>(std::max<int64_t>(most_words_, 1));
        return std::max(kLeastLineWidth, kMostLineWidth * share);
    }

    FlowPath path_of(const MovementEdge& edge) const {
        FlowPath path;
        path.width = width_of(edge.words);
        path.has_label =
            static_cast<double>(edge.words) >= kLabelledShare * static_cast<double>(most_words_);
        const Column column = column_of(flow_.nodes[edge.from]);
        if (column != column_of(flow_.nodes[edge.to])) {
            between_columns(edge, path);
        } else if (places_[edge.to] == places_[edge.from] + 1) {
            to_the_next(edge, column != kBackward, path);
        } else {
            around_the_outside(edge, column != kBackward, path);
        }
        return path;
    }

    void between_columns(const MovementEdge& edge, FlowPath& path) const {
        const Rect &from = layout_.nodes[edge.from], &to = layout_.nodes[edge.to];
        const bool to_right = to.x > from.x;
        const double start = to_right ? from.right() : from.x;
        const double end = to_right ? to.x : to.right();
        const double middle = (start + end) / 2;
        path.kind = FlowPathKind::kSaved;
        path.points = curve({start, from.center_y()}, {middle, from.center_y()},
                            {middle, to.center_y()}, {end, to.center_y()});
        path.has_label &= to_right;
        path.label = {from.right() + 7, from.center_y() - path.width / 2 - 3};
    }

    void to_the_next(const MovementEdge& edge, bool down, FlowPath& path) const {
        const Rect &from = layout_.nodes[edge.from], &to = layout_.nodes[edge.to];
        path.points = {{from.center_x(), down ? from.bottom() : from.y},
                       {to.center_x(), down ? to.y : to.bottom()}};
        const double middle = (path.points[0].y + path.points[1].y) / 2;
        path.label = {from.center_x() + path.width / 2 + 5, middle + 3.5};
    }

    void around_the_outside(const MovementEdge& edge, bool at_left, FlowPath& path) const {
        const Rect &from = layout_.nodes[edge.from], &to = layout_.nodes[edge.to];
        path.kind = FlowPathKind::kSkip;
        const double x = at_left ? from.x : from.right();
        const double gap = std::abs(to.center_y() - from.center_y());
        const double bulge = (at_left ? -1 : 1) * std::min(kMostBulge, 16 + gap * 0.22);
        path.points = curve({x, from.center_y()}, {x + bulge * 1.33, from.center_y()},
                            {x + bulge * 1.33, to.center_y()}, {x, to.center_y()});
        path.has_label = false;
    }

    /// Of the lines that leave a node to the same side, only the widest has room for its label.
    void thin_out_labels() {
        std::map<std::pair<std::size_t, FlowPathKind>, std::size_t> widest;
        for (std::size_t i = 0; i < flow_.edges.size(); ++i) {
            FlowPath& path = layout_.paths[i];
            const auto [best, is_first] = widest.try_emplace({flow_.edges[i].from, path.kind}, i);
            if (is_first) continue;
            FlowPath& other = layout_.paths[best->second];
            if (path.width > other.width) best->second = i;
            (path.width > other.width ? other : path).has_label = false;
        }
    }

    const MovementFlow& flow_;
    const Rect area_;
    int64_t most_words_ = 0;
    double node_width_ = 0;
    std::array<double, kNumColumns> column_x_{};  // middles
    std::vector<std::size_t> places_;             // of each node in its column
    FlowLayout layout_;
};

}  // namespace

FlowLayout layout_flow(const MovementFlow& flow, const Rect& area) {
    return FlowPlacer(flow, area).place();
}

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
    const Color fill = color_of(theme, call_class_of(node.op_class));
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
    std::array<bool, kOpClassNames.size()> has_class{};
    for (const MovementNode& node : flow.nodes)
        has_class[static_cast<std::size_t>(node.op_class)] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < has_class.size(); ++i) {
        if (!has_class[i]) continue;
        const CallClass of = call_class_of(static_cast<OpClass>(i));
        entries.push_back({.name = std::string(label_of(of)),
                           .draw_mark = [&canvas, color = color_of(theme, of)](Point at) {
                               canvas.fill_rounded({at.x, at.y, 13, 13}, 3, color);
                           }});
    }
    entries.push_back({.name = "saved for backward",
                       .mark_width = 27,
                       .draw_mark =
                           [&](Point at) {
                               canvas.line({at.x, at.y + 6.5}, {at.x + 26, at.y + 6.5},
                                           {.color = colors.saved, .width = 6, .alpha = 0.42});
                           },
                       .space_before = 10});
    return draw_legend(canvas, theme, entries, place);
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
    const auto draw = [&](Canvas& canvas) {
        return draw_flow_figure(canvas, flow, theme, text, options.width);
    };
    const Page page = page_of(text, theme, options, measure_height(draw));
    const auto drawn = draw_page(page, options.format, draw);
    if (!drawn || options.format != ChartFormat::kHtml) return drawn;
    return make_html_page(*drawn, text, nullptr, theme);
}

}  // namespace profiler
