#include "profiler/charts/cairo_canvas.h"

#include "profiler/charts/fonts.h"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <numbers>

namespace profiler {
namespace {

using std::numbers::pi;

class ScopedState {
public:
    explicit ScopedState(cairo_t* cairo) : cairo_(cairo) { cairo_save(cairo_); }
    ~ScopedState() { cairo_restore(cairo_); }
    ScopedState(const ScopedState&) = delete;
    ScopedState& operator=(const ScopedState&) = delete;

private:
    cairo_t* cairo_;
};

void trace_rounded(cairo_t* cairo, const Rect& r, double radius) {
    radius = std::min({radius, r.width / 2, r.height / 2});
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, r.right() - radius, r.y + radius, radius, -pi / 2, 0);
    cairo_arc(cairo, r.right() - radius, r.bottom() - radius, radius, 0, pi / 2);
    cairo_arc(cairo, r.x + radius, r.bottom() - radius, radius, pi / 2, pi);
    cairo_arc(cairo, r.x + radius, r.y + radius, radius, pi, 3 * pi / 2);
    cairo_close_path(cairo);
}

}  // namespace

CairoCanvas::CairoCanvas(cairo_t* cairo) : cairo_(cairo) {
    // Positions of letters must not depend on the resolution: no hinting, exact advances.
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(cairo_, options);
    cairo_font_options_destroy(options);
    cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
}

void CairoCanvas::set_color(Color color, double alpha) {
    cairo_set_source_rgba(cairo_, color.r / 255.0, color.g / 255.0, color.b / 255.0, alpha);
}

void CairoCanvas::trace(std::span<const Point> points) {
    cairo_new_path(cairo_);
    for (const Point& p : points) cairo_line_to(cairo_, p.x, p.y);
}

void CairoCanvas::stroke(const LineStyle& style) {
    const ScopedState state(cairo_);
    set_color(style.color, style.alpha);
    cairo_set_line_width(cairo_, style.width);
    cairo_set_line_cap(cairo_, style.round_ends ? CAIRO_LINE_CAP_ROUND : CAIRO_LINE_CAP_BUTT);
    constexpr std::array<double, 2> kDashes{4, 3};
    if (style.dashed) cairo_set_dash(cairo_, kDashes.data(), static_cast<int>(kDashes.size()), 0);
    cairo_stroke(cairo_);
}

void CairoCanvas::fill_rounded(const Rect& rect, double radius, Color color, double alpha) {
    set_color(color, alpha);
    if (radius > 0) {
        trace_rounded(cairo_, rect, radius);
    } else {
        cairo_rectangle(cairo_, rect.x, rect.y, rect.width, rect.height);
    }
    cairo_fill(cairo_);
}

void CairoCanvas::polygon(std::span<const Point> points, Color color, double alpha) {
    set_color(color, alpha);
    trace(points);
    cairo_close_path(cairo_);
    cairo_fill(cairo_);
}

void CairoCanvas::disc(Point center, double radius, Color color) {
    set_color(color, 1);
    cairo_new_path(cairo_);
    cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * pi);
    cairo_fill(cairo_);
}

void CairoCanvas::ring(Point center, double radius, const LineStyle& style) {
    cairo_new_path(cairo_);
    cairo_arc(cairo_, center.x, center.y, radius, 0, 2 * pi);
    stroke(style);
}

void CairoCanvas::polyline(std::span<const Point> points, const LineStyle& style) {
    trace(points);
    stroke(style);
}

void CairoCanvas::stroke_inside(std::span<const Point> area, std::span<const Segment> lines,
                                const LineStyle& style) {
    const ScopedState state(cairo_);
    trace(area);
    cairo_close_path(cairo_);
    cairo_clip(cairo_);
    for (const Segment& line : lines) {
        cairo_move_to(cairo_, line.from.x, line.from.y);
        cairo_line_to(cairo_, line.to.x, line.to.y);
    }
    stroke(style);
}

void CairoCanvas::set_font(const TextStyle& style) {
    cairo_set_font_face(cairo_, chart_font(style.weight));
    cairo_set_font_size(cairo_, style.size);
}

double CairoCanvas::measure_text(const std::string& text, const TextStyle& style) {
    set_font(style);
    cairo_text_extents_t extents;
    cairo_text_extents(cairo_, text.c_str(), &extents);
    return extents.x_advance;
}

void CairoCanvas::show_text(Point start, const std::string& text, double, const TextStyle& style) {
    set_font(style);
    set_color(style.color, 1);
    cairo_move_to(cairo_, start.x, start.y);
    cairo_show_text(cairo_, text.c_str());
    cairo_new_path(cairo_);
}

}  // namespace profiler
