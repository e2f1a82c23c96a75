#pragma once

#include "profiler/charts/canvas.h"
#include "profiler/view/programs/compare_view.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Bars of recipes, in rows and in columns: memory stacked by category, and the largest batch. They
/// look the same in the window and in the comparison figure.
namespace profiler {

// ---- where bars lie -------------------------------------------------------------------------

/// The place of one bar: from its base line to the end of the axis.
struct BarSlot {
    Rect area;
    double end = 1;         // value at the end of the axis
    bool grows_up = false;  // in a column; else to the right

    Rect part(double from, double to) const;
    Rect bar(double value) const { return part(0, value); }
    /// The slot without `share` of its thickness at each side.
    BarSlot thinner(double share) const;
};

/// Of a stacked bar: a rectangle for each segment.
std::vector<Rect> segment_rects(const BarSlot& slot, const std::vector<StackSegment>& stack);

/// A bar that grows to the right, and the width of its label behind it.
struct LabelledBar {
    double value = 0;
    double label_width = 0;
};
/// The least end of the axis that leaves every bar room for its label inside the plot. A label
/// makes its bar no shorter than `least_share` of the plot.
double fit_bar_axis(std::span<const LabelledBar> bars, double plot_width, double label_gap,
                    double least_share);
/// The same of a bar for each recipe.
double fit_bar_axis(const CompareView& view, double plot_width, double label_gap,
                    const std::function<LabelledBar(const CompareColumn&)>& bar);

// ---- what bars look like --------------------------------------------------------------------

struct StackStyle {
    bool is_predicted = false;            // pale, with an outline
    std::optional<Category> picked = {};  // the others are pale
};

/// A stacked bar whose segments lie in `rects`, with their bytes where they fit.
void draw_stack(Canvas& canvas, const Theme& theme, std::span<const StackSegment> stack,
                std::span<const Rect> rects, const StackStyle& style);

/// A bar in the recipe's colour, with its pattern where recipes share a colour.
void draw_recipe_bar(Canvas& canvas, const Theme& theme, const Rect& bar, std::size_t index);

/// Teeth in the end of a bar whose true length nobody knows: it is longer.
void draw_torn_edge(Canvas& canvas, const Theme& theme, const BarSlot& slot, double value);

/// The largest batch: the prediction as a pale bar; what a sweep measured as a solid one, narrower
/// if it stands before a pale one, and with a torn edge if the sweep found no maximum.
void draw_batch_bar(Canvas& canvas, const Theme& theme, const CompareColumn& column,
                    const BarSlot& slot);

// ---- what bars say --------------------------------------------------------------------------

/// Whether a sweep says something about the maximum batch of this recipe.
bool is_swept(const CompareColumn& column);
/// The largest batch, measured or predicted; 0: none is known.
double largest_batch(const CompareColumn& column);

/// "3.20 GiB" in bold, then a change like "−12 %".
struct BarValue {
    std::string text;
    Change change;
    bool is_predicted = false;  // dim
};
BarValue batch_value(const CompareColumn& column);

Color tone_color(const Theme& theme, Tone tone);
/// Returns the width.
double draw_value(Canvas& canvas, const Theme& theme, Point baseline, const BarValue& value);
double measure_value(Canvas& canvas, const BarValue& value);

}  // namespace profiler
