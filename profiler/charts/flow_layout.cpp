#include "profiler/charts/flow_layout.h"

#include <algorithm>
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

bool is_forward(const MovementNode& node) { return node.phase != PhaseKind::kBackward; }

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
        const auto num_forward = static_cast<std::size_t>(
            std::count_if(flow_.nodes.begin(), flow_.nodes.end(), is_forward));
        const std::size_t num_backward = flow_.nodes.size() - num_forward;
        const double height =
            static_cast<double>(std::max<std::size_t>(std::max(num_forward, num_backward), 1)) *
            kPitch;
        const bool has_two = num_forward > 0 && num_backward > 0;
        layout_.forward_x = area_.x + area_.width * (has_two ? 0.24 : 0.5);
        layout_.backward_x = area_.x + area_.width * (has_two ? 0.76 : 0.5);
        layout_.bottom = area_.y + height;
        const double width = std::min(kMostNodeWidth, area_.width * 0.28);
        std::size_t forward = 0, backward = 0;
        for (const MovementNode& node : flow_.nodes) {
            const bool down = is_forward(node);
            const double pitch = height / static_cast<double>(std::max<std::size_t>(
                                              down ? num_forward : num_backward, 1));
            // Backward runs upwards, beside the ops that it undoes.
            const double place = down ? static_cast<double>(forward++) + 0.5
                                      : static_cast<double>(num_backward - backward++) - 0.5;
            const double x = down ? layout_.forward_x : layout_.backward_x;
            layout_.nodes.push_back(
                {x - width / 2, area_.y + place * pitch - kNodeHeight / 2, width, kNodeHeight});
        }
    }

    double width_of(int64_t words) const {
        const double share =
            static_cast<double>(words) / static_cast<double>(std::max<int64_t>(most_words_, 1));
        return std::max(kLeastLineWidth, kMostLineWidth * share);
    }

    FlowPath path_of(const MovementEdge& edge) const {
        const Rect &from = layout_.nodes[edge.from], &to = layout_.nodes[edge.to];
        const bool from_forward = is_forward(flow_.nodes[edge.from]);
        const bool to_forward = is_forward(flow_.nodes[edge.to]);
        FlowPath path;
        path.width = width_of(edge.words);
        path.has_label =
            static_cast<double>(edge.words) >= kLabelledShare * static_cast<double>(most_words_);
        if (from_forward != to_forward) {
            path.kind = FlowPathKind::kSaved;
            const double middle = (from.right() + to.x) / 2;
            path.points = curve({from.right(), from.center_y()}, {middle, from.center_y()},
                                {middle, to.center_y()}, {to.x, to.center_y()});
            path.label = {from.right() + 7, from.center_y() - path.width / 2 - 3};
        } else if (edge.to == edge.from + 1) {
            const bool down = from_forward;
            path.points = {{from.center_x(), down ? from.bottom() : from.y},
                           {to.center_x(), down ? to.y : to.bottom()}};
            const double middle = (path.points[0].y + path.points[1].y) / 2;
            path.label = {from.center_x() + path.width / 2 + 5, middle + 3.5};
        } else {
            path.kind = FlowPathKind::kSkip;
            const double side = from_forward ? -1 : 1;
            const double x = from_forward ? from.x : from.right();
            const double gap = std::abs(to.center_y() - from.center_y());
            const double bulge = side * std::min(kMostBulge, 16 + gap * 0.22);
            path.points = curve({x, from.center_y()}, {x + bulge * 1.33, from.center_y()},
                                {x + bulge * 1.33, to.center_y()}, {x, to.center_y()});
            path.has_label = false;
        }
        return path;
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
    FlowLayout layout_;
};

}  // namespace

FlowLayout layout_flow(const MovementFlow& flow, const Rect& area) {
    return FlowPlacer(flow, area).place();
}

}  // namespace profiler
