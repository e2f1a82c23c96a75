#include "app/panels/programs/compare_charts.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/charts/figure.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace app {
namespace {

using profiler::CompareColumn;
using profiler::CompareView;
using profiler::PairMoment;
using profiler::PairView;

/// Whether the mouse is over this part of the current window.
bool mouse_in(const ImGuiCanvas& canvas, const profiler::Rect& rect) {
    return ImGui::IsWindowHovered() &&
           ImGui::IsMouseHoveringRect(canvas.to_screen({rect.x, rect.y}),
                                      canvas.to_screen({rect.right(), rect.bottom()}));
}

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

void max_batch_tooltip(const CompareColumn& column) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(column.recipe);
    if (profiler::is_swept(column)) labelled_value("measured", column.max_batch_text);
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

StackOwner owner_of(const profiler::CompareColumn& column) {
    return {column.recipe, column.peak_bytes, column.peak_text + " at the peak",
            column.memory_is_predicted, column.index};
}

void draw_stacked_bar(ImGuiCanvas& canvas, const profiler::BarSlot& slot, const StackOwner& owner,
                      const std::vector<profiler::StackSegment>& stack, const Selection& selection,
                      PanelEvents& events) {
    const std::vector<profiler::Rect> rects = profiler::segment_rects(slot, stack);
    profiler::draw_stack(canvas, current_theme(), stack, rects,
                         {.is_predicted = owner.is_predicted, .picked = selection.category});
    for (size_t i = 0; i < stack.size(); ++i) {
        if (!mouse_in(canvas, rects[i])) continue;
        profiler::draw_outline(canvas, rects[i], {.color = current_theme().text});
        segment_tooltip(owner, stack[i]);
        if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) continue;
        events.selection.category = stack[i].category;
        events.traces.column = owner.column;
    }
}

void read_batch_mouse(const ImGuiCanvas& canvas, const profiler::Rect& area,
                      const CompareColumn& column, PanelEvents& events) {
    if (!mouse_in(canvas, area)) return;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.traces.column = column.index;
    max_batch_tooltip(column);
}

// ---- columns --------------------------------------------------------------------------------

namespace {

/// What a plot of columns shows: places 0, 1, ... from left to right, values from 0 upwards.
struct ColumnAxes {
    profiler::AxisUnit unit = profiler::AxisUnit::kBytes;
    double most = 0;  // the highest value
    double num_places = 1;
    double name_lines = 1;  // below the plot
};

/// Columns beside each other over their names. Takes `size` of the window.
class ColumnPlot {
public:
    ColumnPlot(ImGuiCanvas& canvas, ImVec2 size, const ColumnAxes& setup);

    /// The column in the middle of a place, `width` of a place wide, but never very wide.
    profiler::BarSlot slot(double place, double width) const;
    /// The value above a column, and below it the change from the baseline. A line that is wider
    /// than `width` of a place is smaller, or else left out: the table has it.
    void label(double place, double width, double value, std::string_view text,
               const profiler::Change& change);
    void name(double place, double width, std::string_view text, int line = 0);
    /// A dashed line through all columns, with its name at the right.
    void line_across(double value, profiler::Color color, double alpha, std::string_view name);

private:
    double place_width() const { return plot_.width / num_places_; }
    double x(double place) const { return plot_.x + (place + 0.5) * place_width(); }
    void text_on_plate(profiler::Point center_baseline, std::string_view text,
                       const profiler::TextStyle& style);

    ImGuiCanvas& canvas_;
    profiler::Rect plot_;
    double num_places_ = 1;
    double end_ = 1;  // value at the upper edge
};

constexpr double kNameLine = 14;

ColumnPlot::ColumnPlot(ImGuiCanvas& canvas, ImVec2 size, const ColumnAxes& setup)
    : canvas_(canvas), num_places_(setup.num_places) {
    constexpr double kTextRoom = 40;  // above the highest column: its value and its change
    constexpr double kPointsPerTick = 26;
    const profiler::Rect area = canvas.to_canvas(ImGui::GetCursorScreenPos(), size);
    ImGui::Dummy(size);
    plot_ = {area.x, area.y + 4, area.width,
             std::max(40.0, area.height - 4 - kNameLine * setup.name_lines - 4)};
    end_ = std::max(setup.most / (1 - std::min(0.6, kTextRoom / plot_.height)), 1e-9);
    const auto ticks = profiler::make_ticks(
        setup.unit, 0, end_, std::clamp(static_cast<int>(plot_.height / kPointsPerTick), 3, 64));
    double labels = 0;
    for (const profiler::Tick& tick : ticks) {
        const double width = canvas.measure(tick.label, {.size = profiler::kLabelSize});
        labels = std::max(labels, width + 8);
    }
    plot_.x += labels;
    plot_.width = std::max(1.0, plot_.width - labels);
    canvas.fill(plot_, current_theme().plot);
    profiler::draw_y_axis(canvas, current_theme(), plot_, ticks, end_);
    profiler::draw_outline(canvas, plot_, {.color = current_theme().border});
}

profiler::BarSlot ColumnPlot::slot(double place, double width) const {
    constexpr double kMostWidth = 78;
    const double shown = std::min(width * place_width(), kMostWidth);
    return {.area = {x(place) - shown / 2, plot_.y, shown, plot_.height},
            .end = end_,
            .grows_up = true};
}

void ColumnPlot::text_on_plate(profiler::Point center_baseline, std::string_view text,
                               const profiler::TextStyle& style) {
    const double width = canvas_.measure(text, style) + 4;
    canvas_.fill_rounded(
        {center_baseline.x - width / 2, center_baseline.y - style.size, width, 1.25 * style.size},
        3, current_theme().plot, 0.85);
    canvas_.text(center_baseline, text, style);
}

void ColumnPlot::label(double place, double width, double value, std::string_view text,
                       const profiler::Change& change) {
    double y = slot(place, width).bar(value).y - 6;
    const auto add_line = [&](profiler::Color color, std::string_view content) {
        for (const double size : {12.5, 11.0, 9.5}) {
            const profiler::TextStyle style{
                .size = size, .weight = profiler::Weight::kBold, .color = color, .align = 0.5};
            if (canvas_.measure(content, style) > width * place_width()) continue;
            text_on_plate({x(place), y}, content, style);
            y -= 1.25 * size;
            return;
        }
    };
    const profiler::Theme& theme = current_theme();
    const bool is_toned =
        change.tone == profiler::Tone::kGood || change.tone == profiler::Tone::kBad;
    if (!change.empty()) {
        add_line(is_toned ? profiler::tone_color(theme, change.tone) : theme.text, change.text);
    }
    add_line(theme.text, text);
}

void ColumnPlot::name(double place, double width, std::string_view text, int line) {
    const profiler::TextStyle style{
        .size = profiler::kLabelSize, .color = current_theme().dim_text, .align = 0.5};
    const std::string shown =
        profiler::fit_label(text, width * place_width(), canvas_.measurer(style));
    canvas_.text({x(place), plot_.bottom() + kNameLine * (line + 1)}, shown, style);
}

void ColumnPlot::line_across(double value, profiler::Color color, double alpha,
                             std::string_view name) {
    if (value > end_) return;
    const double y = plot_.bottom() - value / end_ * plot_.height;
    canvas_.line({plot_.x, y}, {plot_.right(), y},
                 {.color = color, .width = 1, .alpha = alpha, .dashed = true});
    const profiler::TextStyle style{.size = profiler::kLabelSize, .color = color, .align = 0.5};
    if (name.empty()) return;
    text_on_plate({plot_.right() - canvas_.measure(name, style) / 2 - 5, y + 12}, name, style);
}

// ---- columns of all recipes -----------------------------------------------------------------

constexpr double kColumnWidth = 0.56;  // of a column's place
constexpr double kLabelWidth = 0.97;

/// Below the columns, with the batches where they differ.
void draw_recipe_names(ColumnPlot& plot, const CompareView& view, bool with_batch) {
    for (const CompareColumn& column : view.columns) {
        const auto place = static_cast<double>(column.index);
        plot.name(place, kLabelWidth, column.recipe);
        if (with_batch) plot.name(place, kLabelWidth, column.batch_text, 1);
    }
}

/// The baseline's value as a line across all columns, to compare with.
void draw_baseline(ColumnPlot& plot, int64_t value) {
    plot.line_across(static_cast<double>(value), current_theme().dim_text, 0.55, {});
}

/// Whether a line stands for the peak of the first column: all steps compare with it, at one batch.
bool has_baseline_mark(const CompareView& view) {
    return view.has_one_baseline && view.columns.size() > 1 && view.columns[0].peak_bytes > 0 &&
           view.columns[0].batch_text.empty();
}

/// In place of a change: why there is none.
profiler::Change change_of_peak(const CompareColumn& column) {
    if (column.why_no_peak.empty()) return column.peak_change;
    return {.text = column.why_no_peak, .tone = profiler::Tone::kBad};
}

void draw_memory_column(ImGuiCanvas& canvas, ColumnPlot& plot, const CompareColumn& column,
                        const Selection& selection, PanelEvents& events) {
    const auto place = static_cast<double>(column.index);
    const auto peak = static_cast<double>(column.peak_bytes);
    const profiler::BarSlot slot = plot.slot(place, kColumnWidth);
    draw_stacked_bar(canvas, slot, owner_of(column), column.stack, selection, events);
    if (column.is_cut_off) profiler::draw_torn_edge(canvas, current_theme(), slot, peak);
    plot.label(place, kLabelWidth, peak, column.short_peak_text, change_of_peak(column));
}

void draw_batch_column(ImGuiCanvas& canvas, ColumnPlot& plot, const CompareColumn& column,
                       PanelEvents& events) {
    if (!profiler::is_swept(column) && !column.planned) return;
    const auto place = static_cast<double>(column.index);
    const double value = profiler::largest_batch(column);
    const profiler::BarValue said = profiler::batch_value(column);
    const profiler::BarSlot slot = plot.slot(place, kColumnWidth);
    profiler::draw_batch_bar(canvas, current_theme(), column, slot);
    plot.label(place, kLabelWidth, value, said.text, said.change);
    constexpr double kAbove = 17;  // its label
    const profiler::Rect bar = slot.bar(value);
    read_batch_mouse(canvas, {bar.x, bar.y - kAbove, bar.width, bar.height + kAbove}, column,
                     events);
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
    } else {
        const bool with_batch =
            std::ranges::any_of(view.columns, [](const auto& c) { return !c.batch_text.empty(); });
        ImGuiCanvas canvas(ImGui::GetWindowDrawList());
        ColumnPlot plot(canvas, below_title(size),
                        {.unit = profiler::AxisUnit::kBytes,
                         .most = static_cast<double>(view.max_peak_bytes),
                         .num_places = static_cast<double>(view.columns.size()),
                         .name_lines = with_batch ? 2.0 : 1.0});
        draw_recipe_names(plot, view, with_batch);
        if (has_baseline_mark(view)) draw_baseline(plot, view.columns[0].peak_bytes);
        for (const CompareColumn& column : view.columns) {
            if (column.peak_bytes <= 0 && !column.out_of_memory) continue;
            draw_memory_column(canvas, plot, column, selection, events);
        }
        if (view.step_limit_bytes > 0) {
            plot.line_across(static_cast<double>(view.step_limit_bytes), current_theme().bad, 1,
                             "limit " + profiler::format_bytes(view.step_limit_bytes));
        }
    }
    ImGui::EndGroup();
}

void draw_max_batch_chart(const CompareView& view, ImVec2 size, PanelEvents& events) {
    ImGui::BeginGroup();
    const auto most = static_cast<double>(largest_batch(view));
    chart_title(profiler::kLargestBatch, most > 0 ? max_batch_subtitle(view) : "", size.x);
    if (most == 0) {
        chart_note("##no_batch", why_empty(view, view.no_max_batch_text), below_title(size));
    } else {
        ImGuiCanvas canvas(ImGui::GetWindowDrawList());
        ColumnPlot plot(canvas, below_title(size),
                        {.unit = profiler::AxisUnit::kCount,
                         .most = most,
                         .num_places = static_cast<double>(view.columns.size())});
        draw_recipe_names(plot, view, /*with_batch=*/false);
        if (view.has_one_baseline && view.columns.size() > 1 && view.columns[0].max_batch_size) {
            draw_baseline(plot, *view.columns[0].max_batch_size);
        }
        for (const CompareColumn& column : view.columns) {
            draw_batch_column(canvas, plot, column, events);
        }
    }
    ImGui::EndGroup();
}

// ---- columns of A and B ---------------------------------------------------------------------

namespace {

constexpr double kPairColumnWidth = 0.34;  // of a moment's place
constexpr double kPairLabelWidth = 0.4;
constexpr double kFromCenter = 0.2;  // to the middle of A's column and of B's

/// Below each column A or B, below the two the name of their moment.
void draw_moment(ImGuiCanvas& canvas, ColumnPlot& plot, const PairView& view, size_t index,
                 const Selection& selection, PanelEvents& events) {
    const PairMoment& moment = view.moments[index];
    const std::array names{selection.label_a.name, selection.label_b.name};
    plot.name(static_cast<double>(index), 1, moment.title, 1);
    for (size_t i = 0; i < moment.bars.size(); ++i) {
        const PairMoment::Bar& bar = moment.bars[i];
        const double place = static_cast<double>(index) + (i == 0 ? -kFromCenter : kFromCenter);
        const StackOwner owner{.name = names[i],
                               .total_bytes = bar.size_bytes,
                               .total_text = bar.text + ", " + moment.title,
                               .is_predicted = view.is_predicted[i]};
        plot.name(place, kPairLabelWidth, i == 0 ? "A" : "B");
        draw_stacked_bar(canvas, plot.slot(place, kPairColumnWidth), owner, bar.stack, selection,
                         events);
        plot.label(place, kPairLabelWidth, static_cast<double>(bar.size_bytes), bar.text,
                   i == 1 ? moment.change : profiler::Change());
    }
}

}  // namespace

void draw_pair_chart(const PairView& view, const Selection& selection, ImVec2 size,
                     PanelEvents& events) {
    ImGui::BeginGroup();
    chart_title("Memory of A and B", "at moments that compare, by category", size.x);
    ImGuiCanvas canvas(ImGui::GetWindowDrawList());
    ColumnPlot plot(canvas, below_title(size),
                    {.unit = profiler::AxisUnit::kBytes,
                     .most = static_cast<double>(view.max_bytes),
                     .num_places = static_cast<double>(view.moments.size()),
                     .name_lines = 2});
    for (size_t i = 0; i < view.moments.size(); ++i) {
        draw_moment(canvas, plot, view, i, selection, events);
    }
    ImGui::EndGroup();
}

}  // namespace app
