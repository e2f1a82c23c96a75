#pragma once

#include "profiler/view/rect.h"

#include <optional>
#include <span>
#include <vector>

/// Where the labels of a picture stand, so that none covers another one.
///
///     const std::vector<LabelWish> wishes{beside_dot(at, radius + 4, {width, 14})};
///     const auto places = place_labels(wishes, {.frame = plot, .taken = {legend}});
///     if (places[0]) draw(*places[0]);
///
/// A label without a free place is left out: a tooltip or a table has its text.
namespace profiler {

struct LabelSize {
    double width = 0;
    double height = 0;
};

struct LabelWish {
    LabelSize size;
    std::vector<Point> places = {};  // upper left corners, the best first
    bool may_cover_dots = false;  // where no place is clear of them, it takes the one with fewest
};

struct LabelLine {
    Point from;
    Point to;
};

/// What labels keep clear of.
struct LabelRoom {
    Rect frame;                         // each label lies inside
    std::vector<Rect> taken = {};       // no label covers a part of these
    std::vector<Rect> dots = {};        // nor of these, unless it may
    std::vector<LabelLine> lines = {};  // no label lies across one
};

/// The rectangle of each label, in the order of the wishes; none: it has no place. An earlier wish
/// chooses first.
std::vector<std::optional<Rect>> place_labels(std::span<const LabelWish> wishes,
                                              const LabelRoom& room);
/// The same of one label.
std::optional<Rect> place_label(const LabelWish& wish, const LabelRoom& room);

// ---- wishes ---------------------------------------------------------------------------------

/// Around a dot, `gap` from its middle: right, left, then the corners, then above and below.
LabelWish beside_dot(Point dot, double gap, LabelSize size);

/// Above a point, line by line higher up, else below it; `gap` is the distance from the point. The
/// label is moved sideways into the frame.
LabelWish above_point(Point point, double gap, LabelSize size, const Rect& frame);

/// Right of a point, else left of it, on its height. The label is moved up or down into the frame.
LabelWish right_or_left(Point point, double gap, LabelSize size, const Rect& frame);

/// From `corner` to the right, line by line lower. The label is moved sideways into the frame.
LabelWish in_rows(Point corner, int num_rows, LabelSize size, const Rect& frame);

}  // namespace profiler
