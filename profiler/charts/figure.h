#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/theme.h"

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
double draw_category_legend(Canvas& canvas, const Theme& theme,
                            const std::vector<Category>& categories, const Flow& flow);

/// A category's fill with its hatch.
void draw_category_rect(Canvas& canvas, const Theme& theme, Category category, const Rect& rect);

/// Bold title and dim remark above a plot; `baseline` is the title's. Draws the first remark that
/// fits, so give them from long to short.
void draw_panel_title(Canvas& canvas, const Theme& theme, Point baseline, double width,
                      std::string_view title, std::initializer_list<std::string_view> remarks);

/// Grid lines with labels: below the plot for x, to its left for y.
void draw_x_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double start, double end);
void draw_y_axis(Canvas& canvas, const Theme& theme, const Rect& plot,
                 const std::vector<Tick>& ticks, double end);

/// Says why a panel is empty, in its place.
void draw_empty_panel(Canvas& canvas, const Theme& theme, const Rect& plot, std::string_view text);

Color tone_color(const Theme& theme, Tone tone);

/// "3.20 GiB" in bold, then a change like "−12 %". Returns the width.
double draw_value(Canvas& canvas, const Theme& theme, Point baseline, std::string_view value,
                  const Change& change);
double measure_value(Canvas& canvas, std::string_view value, const Change& change);

}  // namespace profiler
