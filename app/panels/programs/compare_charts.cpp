#include "app/panels/programs/compare_charts.h"

#include "app/widgets/fonts.h"
#include "app/widgets/marks.h"
#include "app/widgets/plot.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace app {
namespace {

using profiler::CompareColumn;
using profiler::CompareView;
using profiler::PairMoment;
using profiler::PairView;

void segment_tooltip(const StackOwner& owner, const profiler::StackSegment& segment) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(owner.name);
    category_swatch(segment.category);
    text(profiler::label_of(segment.category));
    ImGui::SameLine(0, px(14));
    bold_text(segment.text);
    dim_text(profiler::format_exact_bytes(segment.size_bytes));
    dim_text(fmt::format("{} of {}",
                         profiler::format_percent(static_cast<double>(segment.size_bytes) /
                                                  static_cast<double>(owner.total_bytes)),
                         owner.total_text));
    if (owner.is_predicted) dim_text("predicted");
    ImGui::EndTooltip();
}

}  // namespace

// ---- what the charts share ------------------------------------------------------------------

void chart_title(std::string_view title, std::string_view subtitle, float width) {
    const float left = ImGui::GetCursorPosX();
    bold_text(fit_to(title, width));
    if (subtitle.empty()) return;
    ImGui::SameLine(0, px(8));
    const float room = left + width - ImGui::GetCursorPosX();
    std::string shown(subtitle);
    for (size_t comma = 0; text_width(shown) > room && comma != shown.npos;) {
        comma = shown.rfind(", ");
        if (comma != shown.npos) shown.resize(comma);
    }
    shown = fit_to(shown, room);
    dim_text(shown);
    if (shown != subtitle) ImGui::SetItemTooltip("%s", std::string(subtitle).c_str());
}

ImVec2 below_title(ImVec2 size) { return {size.x, size.y - ImGui::GetTextLineHeightWithSpacing()}; }

void chart_note(const char* id, std::string_view note, ImVec2 size) {
    const ScopedChild child(id, size);
    ImGui::Dummy({0, std::max(0.0F, size.y * 0.32F)});
    note_text(note);
}

std::string why_empty(const profiler::CompareView& view, const std::string& not_measured) {
    return view.no_plan_text.empty() ? not_measured : view.no_plan_text;
}

std::string memory_subtitle(const profiler::CompareView& view) {
    if (!view.has_peak) return "no file holds a recorded step";
    const bool has_predicted =
        std::any_of(view.columns.begin(), view.columns.end(),
                    [](const auto& column) { return column.memory_is_predicted; });
    return has_predicted ? "by category, pale: predicted" : "by category";
}

std::string max_batch_subtitle(const profiler::CompareView& view) {
    std::vector<std::string> parts;
    if (view.has_max_batch && !view.memory_limit_text.empty()) {
        parts.push_back("measured in " + view.memory_limit_text);
    }
    if (!view.planned_on.empty()) parts.emplace_back("pale: predicted");
    return fmt::to_string(fmt::join(parts, ", "));
}

int64_t largest_batch(const profiler::CompareView& view) {
    int64_t most = 0;
    for (const profiler::CompareColumn& column : view.columns) {
        most = std::max(most, column.largest_batch);
        if (column.planned) most = std::max(most, column.planned->max_batch_size.value_or(0));
    }
    return most;
}

bool is_swept(const profiler::CompareColumn& column) {
    return !column.curve.empty() || column.max_batch_size;
}

StackOwner owner_of(const profiler::CompareColumn& column) {
    return {column.recipe, column.peak_bytes, column.peak_text + " at the peak",
            column.memory_is_predicted, column.index};
}

bool draw_stack_segment(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                        const StackOwner& owner, const profiler::StackSegment& segment,
                        const Selection& selection, PanelEvents& events) {
    const bool pale = selection.category && *selection.category != segment.category;
    const ImVec2 size = lower_right - upper_left;
    if (size.x < 1 || size.y < 1) return pale;
    const auto fill = owner.is_predicted ? fill_predicted_category : fill_category;
    fill(draw, upper_left, lower_right, segment.category, pale ? 0.22F : 1.0F, px(7));
    if (!mouse_in(upper_left, lower_right)) return pale;
    draw->AddRect(upper_left, lower_right, palette().text, 0, px(1));
    segment_tooltip(owner, segment);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        events.selection.category = segment.category;
        events.traces.column = owner.column;
    }
    return pale;
}

void draw_segment_text(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                       const profiler::StackSegment& segment) {
    const float line = ImGui::GetTextLineHeight(), width = text_width(segment.text);
    const ImVec2 size = lower_right - upper_left;
    if (size.y <= line || size.x <= width + px(8)) return;
    const ImU32 fill = category_color(segment.category);
    text_on_plate(draw, {upper_left.x + (size.x - width) / 2, upper_left.y + (size.y - line) / 2},
                  segment.text, ink_on(fill), fill);
}

void max_batch_tooltip(const profiler::CompareColumn& column) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(column.recipe);
    if (is_swept(column)) labelled_value("measured", column.max_batch_text);
    if (column.planned) {
        labelled_value("predicted", profiler::max_batch_text(*column.planned));
        ImGui::PushTextWrapPos(em(26));
        for (const std::string& note :
             {column.planned->reason, profiler::other_limit_text(*column.planned)}) {
            if (!note.empty()) note_text(note);
        }
        ImGui::PopTextWrapPos();
    }
    ImGui::EndTooltip();
}

bool mouse_in(ImVec2 upper_left, ImVec2 lower_right) {
    return ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(upper_left, lower_right);
}

// ---- bars of all recipes --------------------------------------------------------------------

namespace {

constexpr double kBarWidth = 0.56;  // of a column's share of the axis

/// A bar of a plot in pixels.
struct PlotBar {
    float left = 0;
    float right = 0;

    float center() const { return std::round((left + right) / 2); }
};

/// Around `x` of the current plot, `width` wide on its axis, but never very wide on the screen.
PlotBar plot_bar(double x, double width) {
    const float left = ImPlot::PlotToPixels(x - width / 2, 0).x;
    const float right = ImPlot::PlotToPixels(x + width / 2, 0).x;
    const float cut = std::max(0.0F, (right - left - px(92)) / 2);
    return {std::round(left + cut), std::round(right - cut)};
}

/// Pixel of a value on the vertical axis of the current plot.
float plot_y(double value) { return std::round(ImPlot::PlotToPixels(0, value).y); }

/// Segments over each other, from 0 up.
void draw_stacked_bar(ImDrawList* draw, const PlotBar& bar, const StackOwner& owner,
                      const std::vector<profiler::StackSegment>& stack, const Selection& selection,
                      PanelEvents& events) {
    for (const profiler::StackSegment& segment : stack) {
        const ImVec2 upper{bar.left,
                           plot_y(static_cast<double>(segment.start_bytes + segment.size_bytes))};
        const ImVec2 lower{bar.right, plot_y(static_cast<double>(segment.start_bytes))};
        if (!draw_stack_segment(draw, upper, lower, owner, segment, selection, events)) {
            draw_segment_text(draw, upper, lower, segment);
        }
        // A thin gap between segments.
        if (lower.y - upper.y > 3) {
            draw->AddRectFilled(upper, {lower.x, upper.y + 1}, with_alpha(palette().plot, 0.5F));
        }
    }
}

/// The value above a bar, and below it the change from the baseline. Labels that are wider than
/// `room` are left out.
void bar_label(ImDrawList* draw, const PlotBar& bar, double value, float room,
               std::string_view text, const profiler::Change& change) {
    float y = plot_y(value) - px(3);
    // The line above `y`, smaller in a narrow column. What does not fit either is in the table.
    const auto add_line = [&](ImU32 color, std::string_view content) {
        for (const float size : {kTextSize, 0.88F * kTextSize, 0.76F * kTextSize}) {
            const ScopedFont bold(fonts().bold, size);
            const float width = text_width(content);
            if (width > room) continue;
            y -= ImGui::GetTextLineHeight();
            // Over the baseline's line.
            text_on_plate(draw, {bar.center() - width / 2, y}, content, color,
                          with_alpha(palette().plot, 0.85F), {2, 0});
            return;
        }
    };
    if (!change.empty()) add_line(tone_color(change.tone), change.text);
    add_line(palette().text, text);
}

/// A plot with recipe names on the horizontal axis and a value axis that starts at 0. Below the
/// names stand the batches, where they differ and `with_batch` is set.
bool begin_bar_plot(const char* id, const CompareView& view, ImVec2 size, profiler::AxisUnit unit,
                    double max_value, bool with_batch) {
    if (!ImPlot::BeginPlot(id, size, kPlainPlot | ImPlotFlags_NoInputs)) return false;
    const auto count = static_cast<double>(view.columns.size());
    ImPlot::SetupAxes(nullptr, nullptr,
                      kFixedAxis | ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks,
                      kFixedAxis);
    const float axis = em(unit == profiler::AxisUnit::kBytes ? 4.0F : 2.5F);
    const float column_px = (size.x - axis) / static_cast<float>(count) - px(4);
    std::vector<double> positions;
    std::vector<std::string> names;
    std::vector<const char*> labels;
    for (const CompareColumn& column : view.columns) {
        positions.push_back(static_cast<double>(column.index));
        names.push_back(fit_to(column.recipe, column_px));
        if (with_batch && !column.batch_text.empty()) names.back() += "\n" + column.batch_text;
    }
    for (const std::string& name : names) labels.push_back(name.c_str());
    ImPlot::SetupAxisTicks(ImAxis_X1, positions.data(), static_cast<int>(positions.size()),
                           labels.data());
    // Room above the highest bar for its value and its change.
    const double inside = std::max(em(6), size.y - em(2.4F));
    const double text_room = 2 * ImGui::GetTextLineHeight() + px(8);
    const double end = std::max(max_value / (1 - std::min(0.6, text_room / inside)), 1e-9);
    setup_ticks(ImAxis_Y1, unit, 0, end, size.y);
    ImPlot::SetupAxisLimits(ImAxis_X1, -0.6, count - 0.4, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, end, ImPlotCond_Always);
    ImPlot::SetupFinish();
    return true;
}

PlotBar bar_of(const CompareColumn& column) {
    return plot_bar(static_cast<double>(column.index), kBarWidth);
}

/// The distance between two bars, without a gap.
float label_room() { return ImPlot::PlotToPixels(1, 0).x - ImPlot::PlotToPixels(0, 0).x - px(4); }

void line_across(ImDrawList* draw, double value, ImU32 color) {
    const float left = ImPlot::GetPlotPos().x, y = plot_y(value) + 0.5F;
    draw_dashed_line(draw, {left, y}, {left + ImPlot::GetPlotSize().x, y}, color, px(1));
}

/// The baseline's value as a line across all bars, to compare with.
void baseline_mark(ImDrawList* draw, double value) {
    line_across(draw, value, with_alpha(palette().dim, 0.55F));
}

/// Whether a line stands for the peak of the first column: all steps compare with it, at one batch.
bool has_baseline_mark(const CompareView& view) {
    return view.has_one_baseline && view.columns.size() > 1 && view.columns[0].peak_bytes > 0 &&
           view.columns[0].batch_text.empty();
}

/// The memory that the steps had. It stands before the bars.
void limit_mark(ImDrawList* draw, int64_t limit_bytes) {
    const auto value = static_cast<double>(limit_bytes);
    line_across(draw, value, palette().bad);
    const std::string label = "limit " + profiler::format_bytes(limit_bytes);
    const float right = ImPlot::GetPlotPos().x + ImPlot::GetPlotSize().x;
    text_on_plate(draw, {right - text_width(label) - px(5), plot_y(value) + px(2)}, label,
                  palette().bad, with_alpha(palette().plot, 0.85F), {3, 0});
}

/// In place of a change: why there is none.
profiler::Change change_of_peak(const CompareColumn& column) {
    if (column.why_no_peak.empty()) return column.peak_change;
    return {.text = column.why_no_peak, .tone = profiler::Tone::kBad};
}

void draw_memory_bar(ImDrawList* draw, const CompareColumn& column, const Selection& selection,
                     PanelEvents& events) {
    const PlotBar bar = bar_of(column);
    draw_stacked_bar(draw, bar, owner_of(column), column.stack, selection, events);
    const auto peak = static_cast<double>(column.peak_bytes);
    if (column.is_cut_off) {
        draw_torn_edge(draw, {bar.left, plot_y(peak)}, {bar.right, plot_y(peak)}, {0, px(6)},
                       palette().plot);
    }
    bar_label(draw, bar, peak, label_room(), column.short_peak_text, change_of_peak(column));
}

/// The prediction as a pale bar; what a sweep measured as a solid, narrower one in front.
void draw_batch_bars(ImDrawList* draw, const CompareColumn& column, PanelEvents& events) {
    PlotBar bar = bar_of(column);
    const bool swept = is_swept(column);
    double highest = 0;
    if (column.planned) {
        highest = static_cast<double>(column.planned->max_batch_size.value_or(0));
        fill_predicted(draw, {bar.left, plot_y(highest)}, {bar.right, plot_y(0)},
                       recipe_color(column.color));
        if (swept) {
            const float cut = std::round((bar.right - bar.left) * 0.2F);
            bar = {bar.left + cut, bar.right - cut};
        }
    }
    if (swept) {
        const auto value = static_cast<double>(column.largest_batch);
        const ImVec2 upper{bar.left, plot_y(value)};
        fill_recipe(draw, upper, {bar.right, plot_y(0)}, column.color);
        if (!column.max_batch_size) {  // the sweep ended before it reached the maximum
            draw_torn_edge(draw, upper, {bar.right, upper.y}, {0, px(6)}, palette().plot);
        }
        highest = std::max(highest, value);
    }
    if (swept) {
        bar_label(draw, bar, highest, label_room(), column.max_batch_text, column.max_batch_change);
    } else if (column.planned) {
        bar_label(draw, bar, highest, label_room(), profiler::max_batch_text(*column.planned),
                  column.planned_max_batch_change);
    }
    if (!mouse_in({bar.left, plot_y(std::max(highest, 0.0)) - px(20)}, {bar.right, plot_y(0)}))
        return;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.traces.column = column.index;
    max_batch_tooltip(column);
}

}  // namespace

void draw_memory_chart(const CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events) {
    ImGui::BeginGroup();
    std::string subtitle = memory_subtitle(view);
    if (has_baseline_mark(view)) subtitle += ", grey dashes: " + view.columns[0].recipe;
    chart_title(profiler::kPeakAllocated, subtitle, size.x);
    if (!view.has_peak) {
        chart_note(
            "##no_memory",
            why_empty(view, "These files hold sweeps only; capture a step to see its memory."),
            below_title(size));
    } else if (begin_bar_plot("##memory", view, below_title(size), profiler::AxisUnit::kBytes,
                              static_cast<double>(view.max_peak_bytes), true)) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        if (has_baseline_mark(view)) {
            baseline_mark(draw, static_cast<double>(view.columns[0].peak_bytes));
        }
        for (const CompareColumn& column : view.columns) {
            if (column.peak_bytes <= 0 && !column.out_of_memory) continue;
            draw_memory_bar(draw, column, selection, events);
        }
        if (view.step_limit_bytes > 0) limit_mark(draw, view.step_limit_bytes);
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

void draw_max_batch_chart(const CompareView& view, ImVec2 size, PanelEvents& events) {
    ImGui::BeginGroup();
    const auto most = static_cast<double>(largest_batch(view));
    chart_title(profiler::kLargestBatch, most > 0 ? max_batch_subtitle(view) : "", size.x);
    if (most == 0) {
        chart_note("##no_batch", why_empty(view, view.no_max_batch_text), below_title(size));
    } else if (begin_bar_plot("##batch", view, below_title(size), profiler::AxisUnit::kCount, most,
                              false)) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        if (view.has_one_baseline && view.columns.size() > 1 && view.columns[0].max_batch_size) {
            baseline_mark(draw, static_cast<double>(*view.columns[0].max_batch_size));
        }
        for (const CompareColumn& column : view.columns) draw_batch_bars(draw, column, events);
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

// ---- bars of A and B ------------------------------------------------------------------------

namespace {

constexpr double kPairBarWidth = 0.34;  // of a moment's share of the axis
constexpr double kFromCenter = 0.2;     // to the middle of A's bar and of B's

double place_of(size_t moment, size_t trace) {
    return static_cast<double>(moment) + (trace == 0 ? -kFromCenter : kFromCenter);
}

/// Below each bar A or B, below the two the name of their moment.
void setup_moment_ticks(const PairView& view) {
    std::vector<double> places;
    std::vector<std::string> names;
    std::vector<const char*> labels;
    for (size_t i = 0; i < view.moments.size(); ++i) {
        places.insert(places.end(), {place_of(i, 0), static_cast<double>(i), place_of(i, 1)});
        names.insert(names.end(), {"A", "\n" + view.moments[i].title, "B"});
    }
    for (const std::string& name : names) labels.push_back(name.c_str());
    ImPlot::SetupAxisTicks(ImAxis_X1, places.data(), static_cast<int>(places.size()),
                           labels.data());
}

bool begin_pair_plot(const PairView& view, ImVec2 size) {
    if (!ImPlot::BeginPlot("##pair", size, kPlainPlot | ImPlotFlags_NoInputs)) return false;
    ImPlot::SetupAxes(nullptr, nullptr,
                      kFixedAxis | ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks,
                      kFixedAxis);
    setup_moment_ticks(view);
    const double text_room = 2 * ImGui::GetTextLineHeight() + px(8);
    const double inside = std::max(em(6), size.y - em(3.6F));
    const double end =
        static_cast<double>(view.max_bytes) / (1 - std::min(0.6, text_room / inside));
    setup_ticks(ImAxis_Y1, profiler::AxisUnit::kBytes, 0, end, size.y);
    ImPlot::SetupAxisLimits(ImAxis_X1, -0.55, static_cast<double>(view.moments.size()) - 0.45,
                            ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(end, 1.0), ImPlotCond_Always);
    ImPlot::SetupFinish();
    return true;
}

void draw_moment(ImDrawList* draw, const PairView& view, size_t index, const Selection& selection,
                 PanelEvents& events) {
    const PairMoment& moment = view.moments[index];
    const std::array looks{selection.look_a.name, selection.look_b.name};
    const float room =
        ImPlot::PlotToPixels(kPairBarWidth, 0).x - ImPlot::PlotToPixels(0, 0).x + px(8);
    for (size_t i = 0; i < moment.bars.size(); ++i) {
        const PairMoment::Bar& bar = moment.bars[i];
        const PlotBar place = plot_bar(place_of(index, i), kPairBarWidth);
        const StackOwner owner{.name = looks[i],
                               .total_bytes = bar.size_bytes,
                               .total_text = bar.text + ", " + moment.title,
                               .is_predicted = view.is_predicted[i]};
        draw_stacked_bar(draw, place, owner, bar.stack, selection, events);
        bar_label(draw, place, static_cast<double>(bar.size_bytes), room, bar.text,
                  i == 1 ? moment.change : profiler::Change());
    }
}

}  // namespace

void draw_pair_chart(const PairView& view, const Selection& selection, ImVec2 size,
                     PanelEvents& events) {
    ImGui::BeginGroup();
    chart_title("Memory of A and B", "at moments that compare, by category", size.x);
    if (begin_pair_plot(view, below_title(size))) {
        ImDrawList* draw = ImPlot::GetPlotDrawList();
        ImPlot::PushPlotClipRect();
        for (size_t i = 0; i < view.moments.size(); ++i) {
            draw_moment(draw, view, i, selection, events);
        }
        ImPlot::PopPlotClipRect();
        ImPlot::EndPlot();
    }
    ImGui::EndGroup();
}

}  // namespace app
