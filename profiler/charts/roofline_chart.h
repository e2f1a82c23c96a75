#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/charts/figure.h"
#include "profiler/view/kernels/movement_view.h"

#include <array>
#include <cstddef>
#include <optional>

/// The roofline, the same in the window and on a page:
///
///     legend of classes and phases
///     flop/s |          ________ roof
///            |        /    ● name
///            |      / ●→●
///            |    /             (●→● an op of A, and what it became in B)
///            |_____________________ flop per byte
namespace profiler {

/// A dot of trace 0 (A) or 1 (B).
struct RooflineDotId {
    std::size_t trace = 0;
    std::size_t dot = 0;

    friend bool operator==(const RooflineDotId&, const RooflineDotId&) = default;
};

/// A rectangle on the axes of the roofline.
struct RooflineBox {
    double low_x = 0, high_x = 0;
    double low_y = 0, high_y = 0;

    bool contains(const MovementDot& dot) const {
        return dot.x >= low_x && dot.x <= high_x && dot.y >= low_y && dot.y <= high_y;
    }
};

/// What the picture shows besides the view.
struct RooflineOverlay {
    std::size_t most_names = 40;
    Color color_b = {};                                       // of the arrows from A's dots to B's
    std::optional<RooflineBox> box = {};                      // ops outside of it are pale
    std::array<std::optional<std::size_t>, 2> selected = {};  // rows of A and B
    std::optional<RooflineDotId> hovered = {};
};

/// Where values and dots lie: both axes are logarithmic. Borrows the view.
class RooflineMap {
public:
    RooflineMap(const MovementView& view, const Rect& plot) : view_(view), plot_(plot) {}

    double x(double flop_per_byte) const;
    double y(double flop_per_s) const;
    Point at(const MovementDot& dot) const { return {x(dot.x), y(dot.y)}; }
    double radius_of(const MovementDot& dot) const;
    /// The smallest dot within `reach` of a point, since it may lie on a large one.
    std::optional<RooflineDotId> dot_at(Point point, double reach) const;
    /// The rectangle with these corners.
    RooflineBox box_between(Point a, Point b) const;

    const MovementView& view() const { return view_; }
    const Rect& plot() const { return plot_; }

private:
    const MovementView& view_;
    Rect plot_;
};

double draw_roofline_legend(Canvas& canvas, const Theme& theme, const MovementView& view,
                            const Flow& flow);

/// What the labels of the axes leave of `area`.
Rect roofline_plot(const Rect& area);

/// Axes, roof, dots, arrows and names.
void draw_roofline(Canvas& canvas, const Theme& theme, const RooflineMap& map,
                   const RooflineOverlay& overlay);

}  // namespace profiler
