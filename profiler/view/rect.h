#pragma once

/// Points and rectangles of pictures; y grows downwards.
namespace profiler {

struct Point {
    double x = 0;
    double y = 0;
};

struct Rect {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;

    double right() const { return x + width; }
    double bottom() const { return y + height; }
    double center_x() const { return x + width / 2; }
    double center_y() const { return y + height / 2; }

    /// Rectangles that only touch do not overlap.
    bool overlaps(const Rect& other) const {
        return x < other.right() && other.x < right() && y < other.bottom() && other.y < bottom();
    }
    /// Whether all of `inner` lies inside.
    bool contains(const Rect& inner) const {
        return inner.x >= x && inner.right() <= right() && inner.y >= y &&
               inner.bottom() <= bottom();
    }
    bool contains(Point point) const {
        return point.x >= x && point.x < right() && point.y >= y && point.y < bottom();
    }
};

/// The square around `center`, from it to each side `reach`.
inline Rect square_around(Point center, double reach) {
    return {center.x - reach, center.y - reach, 2 * reach, 2 * reach};
}

}  // namespace profiler
