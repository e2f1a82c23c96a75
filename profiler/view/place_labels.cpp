#include "profiler/view/place_labels.h"

#include <algorithm>
#include <array>

namespace profiler {
namespace {

/// Whether a part of the line lies inside of the rectangle. Cuts the line at each edge in turn
/// (Liang and Barsky).
bool crosses(const LabelLine& line, const Rect& rect) {
    const Point way{line.to.x - line.from.x, line.to.y - line.from.y};
    double first = 0, last = 1;  // shares of the line
    const auto cut = [&](double along, double room) {
        if (along == 0) return room > 0;
        const double share = room / along;
        if (along < 0) first = std::max(first, share);
        if (along > 0) last = std::min(last, share);
        return first < last;
    };
    return cut(-way.x, line.from.x - rect.x) && cut(way.x, rect.right() - line.from.x) &&
           cut(-way.y, line.from.y - rect.y) && cut(way.y, rect.bottom() - line.from.y);
}

bool is_free(const Rect& label, const LabelRoom& room, std::span<const Rect> placed) {
    constexpr double kRounding = 0.01;  // of a label that was moved to the edge of the frame
    const Rect frame{room.frame.x - kRounding, room.frame.y - kRounding,
                     room.frame.width + 2 * kRounding, room.frame.height + 2 * kRounding};
    const auto covers = [&](const Rect& other) { return label.overlaps(other); };
    return frame.contains(label) && std::ranges::none_of(room.taken, covers) &&
           std::ranges::none_of(placed, covers) &&
           std::ranges::none_of(room.lines,
                                [&](const LabelLine& line) { return crosses(line, label); });
}

std::optional<Rect> place_beside(const LabelWish& wish, const LabelRoom& room,
                                 std::span<const Rect> placed) {
    std::optional<Rect> best;
    std::ptrdiff_t fewest = 0;  // dots that the best place covers
    for (const Point& corner : wish.places) {
        const Rect label{corner.x, corner.y, wish.size.width, wish.size.height};
        if (!is_free(label, room, placed)) continue;
        const std::ptrdiff_t covered =
            std::ranges::count_if(room.dots, [&](const Rect& dot) { return label.overlaps(dot); });
        if (covered == 0) return label;
        if (!wish.may_cover_dots || (best && covered >= fewest)) continue;
        best = label;
        fewest = covered;
    }
    return best;
}

/// The nearest start of `length` that lies within the frame; at its start if it is too long.
double moved_into(double start, double length, double frame_start, double frame_length) {
    return std::clamp(start, frame_start,
                      std::max(frame_start, frame_start + frame_length - length));
}

}  // namespace

std::vector<std::optional<Rect>> place_labels(std::span<const LabelWish> wishes,
                                              const LabelRoom& room) {
    std::vector<std::optional<Rect>> labels;
    std::vector<Rect> placed;
    for (const LabelWish& wish : wishes) {
        labels.push_back(place_beside(wish, room, placed));
        if (labels.back()) placed.push_back(*labels.back());
    }
    return labels;
}

std::optional<Rect> place_label(const LabelWish& wish, const LabelRoom& room) {
    return place_beside(wish, room, {});
}

LabelWish beside_dot(Point dot, double gap, LabelSize size) {
    constexpr double kDiagonal = 0.7;  // of the gap, to each side
    struct Side {
        double left, up;  // shares of the label that lie left of and above the dot
        double x, y;      // direction of the gap
    };
    constexpr std::array<Side, 8> kSides{{{0, 0.5, 1, 0},
                                          {1, 0.5, -1, 0},
                                          {0, 1, kDiagonal, -kDiagonal},
                                          {1, 1, -kDiagonal, -kDiagonal},
                                          {0, 0, kDiagonal, kDiagonal},
                                          {1, 0, -kDiagonal, kDiagonal},
                                          {0.5, 1, 0, -1},
                                          {0.5, 0, 0, 1}}};
    LabelWish wish{.size = size};
    for (const Side& side : kSides) {
        wish.places.push_back({dot.x - side.left * size.width + side.x * gap,
                               dot.y - side.up * size.height + side.y * gap});
    }
    return wish;
}

LabelWish above_point(Point point, double gap, LabelSize size, const Rect& frame) {
    constexpr int kMostSteps = 8;
    LabelWish wish{.size = size};
    const double x = moved_into(point.x - size.width / 2, size.width, frame.x, frame.width);
    for (int i = 1; i <= kMostSteps; ++i) {
        wish.places.push_back({x, point.y - gap - i * size.height});
    }
    for (int i = 0; i < kMostSteps; ++i) {
        wish.places.push_back({x, point.y + gap + i * size.height});
    }
    return wish;
}

LabelWish right_or_left(Point point, double gap, LabelSize size, const Rect& frame) {
    const double y = moved_into(point.y - size.height / 2, size.height, frame.y, frame.height);
    return {.size = size, .places = {{point.x + gap, y}, {point.x - gap - size.width, y}}};
}

LabelWish in_rows(Point corner, int num_rows, LabelSize size, const Rect& frame) {
    LabelWish wish{.size = size};
    const double x = moved_into(corner.x, size.width, frame.x, frame.width);
    for (int row = 0; row < num_rows; ++row) {
        wish.places.push_back({x, corner.y + row * size.height});
    }
    return wish;
}

}  // namespace profiler
