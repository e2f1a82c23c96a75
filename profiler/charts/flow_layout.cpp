#include "profiler/charts/flow_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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
        const auto count = std::count_if(nodes.begin(), nodes.end(),
                                         [](const auto& column) { return !column.empty(); });
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

}  // namespace profiler
