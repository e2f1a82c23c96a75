#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/view/theme.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// What every figure has around its plots: title, legend, axes, notes. Functions that take a `Flow`
/// start at its y and return the y at which they end. Drawn on a measuring canvas, they give the
/// height of the page.
namespace profiler {

inline constexpr double kMargin = 28;
inline constexpr double kLabelSize = 11;
inline constexpr double kTextSize = 12;

struct FigureText {
    std::string title;
    std::string subtitle;             // the workload
    std::string sentence;             // what a reader should take away
    std::vector<std::string> footer;  // source, notes, definitions
};

struct Flow {
    double x = 0;
    double y = 0;
    double width = 0;
};

double draw_header(Canvas& canvas, const Theme& theme, const FigureText& text, const Flow& flow);
double draw_footer(Canvas& canvas, const Theme& theme, const FigureText& text, const Flow& flow);

/// A mark with its name.
struct LegendEntry {
    std::string name;
    double mark_width = 13;
    std::function<void(Point corner)> draw_mark = {};  // 13 high; empty: the name alone, dim
    double space_before = 0;                           // what tells it from the entry before
};
LegendEntry marker_entry(Canvas& canvas, Marker marker, Color color, std::string_view name);
/// Side by side, in as many lines as they need; names of more than `most_name_width` are shortened.
double draw_legend(Canvas& canvas, const Theme& theme, const std::vector<LegendEntry>& entries,
                   const Flow& flow, double most_name_width = 1e9);
double draw_category_legend(Canvas& canvas, const Theme& theme,
                            const std::vector<Category>& categories, const Flow& flow);

/// A category's fill with its hatch.
void draw_category_rect(Canvas& canvas, const Theme& theme, Category category, const Rect& rect,
                        double alpha = 1);
void draw_outline(Canvas& canvas, const Rect& rect, const LineStyle& style);

/// Bold title and dim remark above a plot; `baseline` is the title's. Draws the first remark that
/// fits, so give them from long to short.
void draw_panel_title(Canvas& canvas, const Theme& theme, Point baseline, double width,
                      std::string_view title, std::initializer_list<std::string_view> remarks);

/// Grid lines with labels: below the plot for x, to its left for y.
void draw_x_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double start, double end);
void draw_y_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double end);

/// An arrow whose tip ends `gap` before `to`.
void draw_arrow(Canvas& canvas, Point from, Point to, double gap, const LineStyle& style);

/// Says why a panel is empty, in its place.
void draw_empty_panel(Canvas& canvas, const Theme& theme, const Rect& plot, std::string_view text);

}  // namespace profiler
