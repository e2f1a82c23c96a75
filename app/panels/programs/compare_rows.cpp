#include "app/panels/programs/compare_charts.h"

#include "app/widgets/imgui_canvas.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/charts/figure.h"
#include "profiler/view/axis.h"
#include "profiler/view/place_labels.h"
#include "profiler/view/quantity_names.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::BarSlot;
using profiler::BarValue;
using profiler::CompareColumn;
using profiler::CompareView;
using profiler::Rect;
using profiler::TextStyle;

constexpr double kMarkWidth = 15;  // before a name
constexpr double kValueGap = 6;    // between a bar and its value

/// Bars of all rows that start at the same x. Lengths are points of the canvas.
struct Lane {
    double left = 0;  // from the left edge of the chart
    double width = 0;
    double end = 1;  // value at the right edge
    profiler::AxisUnit unit = profiler::AxisUnit::kBytes;

    /// Of a row that begins at the left edge of the chart.
    BarSlot slot(const Rect& row) const {
        return {.area = {row.x + left, row.y, width, row.height}, .end = end};
    }
};

struct RowsLayout {
    double name_width = 0;
    Lane memory;
    Lane batch;
    float row_height = 0;   // in pixels
    float list_height = 0;  // visible part of the rows
};

BarValue memory_value(const CompareColumn& column) {
    std::string value = column.peak_text;
    if (!column.batch_text.empty()) value += " at " + column.batch_text;
    return {value, column.peak_change};
}

TextStyle name_style() {
    return {.size = profiler::kTextSize,
            .weight = profiler::Weight::kBold,
            .color = current_theme().text};
}

/// Baseline of text in the middle of a bar.
double middle_of(const Rect& bar) { return bar.center_y() + profiler::kTextSize * 0.36; }

RowsLayout lay_out(ImGuiCanvas& canvas, const CompareView& view, ImVec2 size) {
    RowsLayout layout;
    const float line = ImGui::GetTextLineHeight();
    const auto count = static_cast<float>(view.columns.size());
    layout.list_height = std::max(line, size.y - 2 * ImGui::GetTextLineHeightWithSpacing() - px(4));
    layout.row_height = std::floor(
        std::clamp(layout.list_height / std::max(count, 1.0F), line + px(6), 2.4F * line));
    double longest = 0;
    for (const CompareColumn& column : view.columns) {
        longest = std::max(longest, canvas.measure(column.recipe, name_style()));
    }
    // A scroll bar takes its room whether it is there or not, so that rows do not jump.
    const double width = canvas.points(size.x - ImGui::GetStyle().ScrollbarSize - px(4));
    const double most_name = std::max(canvas.points(em(8)), width * 0.26);
    layout.name_width = std::min(longest + kMarkWidth + 12, most_name);
    const double gap = 15, room = width - layout.name_width - gap;
    layout.memory = {.left = layout.name_width, .width = room * 0.64};
    layout.batch = {.left = layout.name_width + layout.memory.width + gap,
                    .width = room * 0.36,
                    .unit = profiler::AxisUnit::kCount};
    constexpr double kLabelGap = 9;
    layout.memory.end =
        profiler::fit_bar_axis(view, layout.memory.width, kLabelGap, [&](const CompareColumn& c) {
            return profiler::LabelledBar{static_cast<double>(c.peak_bytes),
                                         profiler::measure_value(canvas, memory_value(c))};
        });
    layout.batch.end =
        profiler::fit_bar_axis(view, layout.batch.width, kLabelGap, [&](const CompareColumn& c) {
            return profiler::LabelledBar{profiler::largest_batch(c),
                                         profiler::measure_value(canvas, profiler::batch_value(c))};
        });
    return layout;
}

std::vector<profiler::Tick> ticks_of(const Lane& lane) {
    constexpr double kPointsPerTick = 71;
    return profiler::make_ticks(lane.unit, 0, lane.end,
                                std::max(2, static_cast<int>(lane.width / kPointsPerTick)));
}

void draw_lane_ground(ImGuiCanvas& canvas, const Lane& lane, const Rect& rows) {
    const BarSlot slot = lane.slot(rows);
    canvas.fill(slot.area, current_theme().plot);
    for (const profiler::Tick& tick : ticks_of(lane)) {
        const double x = slot.bar(tick.value).right();
        canvas.line({x, rows.y}, {x, rows.bottom()},
                    {.color = current_theme().dim_text, .width = 0.8, .alpha = 0.22});
    }
}

/// Labels of the ticks in the line below a lane.
void draw_lane_axis(ImGuiCanvas& canvas, const Lane& lane, const Rect& line) {
    constexpr double kMargin = 3;
    const TextStyle style{.size = profiler::kLabelSize, .color = current_theme().dim_text};
    const BarSlot slot = lane.slot(line);
    const std::vector<profiler::Tick> ticks = ticks_of(lane);
    std::vector<profiler::LabelWish> wishes;
    for (const profiler::Tick& tick : ticks) {
        const double width = canvas.measure(tick.label, style) + 2 * kMargin;
        const double x = slot.bar(tick.value).right();
        wishes.push_back(
            profiler::in_rows({x - width / 2, line.y}, 1, {width, line.height}, slot.area));
    }
    const auto places = profiler::place_labels(wishes, {.frame = slot.area});
    for (size_t i = 0; i < ticks.size(); ++i) {
        if (!places[i]) continue;
        canvas.text({places[i]->x + kMargin, line.y + profiler::kLabelSize}, ticks[i].label, style);
    }
}

// ---- rows -----------------------------------------------------------------------------------

void draw_name(ImGuiCanvas& canvas, const CompareColumn& column, const Rect& row,
               const RowsLayout& layout, PanelEvents& events) {
    const ScopedId id(static_cast<int>(column.index));
    const double width = layout.name_width - 7;
    ImGui::SetCursorScreenPos(canvas.to_screen({row.x, row.y}));
    if (ImGui::InvisibleButton("##name", {canvas.pixels(width), canvas.pixels(row.height)})) {
        events.traces.column = column.index;
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip) && ImGui::BeginTooltip()) {
        ImGui::PushTextWrapPos(em(32));
        bold_text(column.recipe);
        for (const std::string& file : column.files) note_text(file);
        ImGui::PopTextWrapPos();
        ImGui::EndTooltip();
    }
    canvas.marker(profiler::recipe_marker(column.color), {row.x + 6, row.center_y()}, 3.6,
                  profiler::recipe_color(current_theme(), column.color));
    const std::string name =
        profiler::fit_label(column.recipe, width - kMarkWidth, canvas.measurer(name_style()));
    canvas.text({row.x + kMarkWidth, middle_of(row)}, name, name_style());
}

void draw_memory_bar(ImGuiCanvas& canvas, const CompareColumn& column, const BarSlot& slot,
                     const Selection& selection, PanelEvents& events) {
    if (column.peak_bytes <= 0 && !column.out_of_memory) return;
    draw_stacked_bar(canvas, slot, owner_of(column), column.stack, selection, events);
    const auto peak = static_cast<double>(column.peak_bytes);
    if (column.is_cut_off) profiler::draw_torn_edge(canvas, current_theme(), slot, peak);
    profiler::draw_value(canvas, current_theme(),
                         {slot.bar(peak).right() + kValueGap, middle_of(slot.area)},
                         memory_value(column));
}

void draw_batch_row(ImGuiCanvas& canvas, const CompareColumn& column, const BarSlot& slot,
                    PanelEvents& events) {
    if (!profiler::is_swept(column) && !column.planned) return;
    profiler::draw_batch_bar(canvas, current_theme(), column, slot);
    const double end = slot.bar(profiler::largest_batch(column)).right();
    profiler::draw_value(canvas, current_theme(), {end + kValueGap, middle_of(slot.area)},
                         profiler::batch_value(column));
    read_batch_mouse(canvas, slot.area, column, events);
}

/// Titles above the lanes. A lane without data says why.
void draw_titles(const ImGuiCanvas& canvas, const CompareView& view, const RowsLayout& layout) {
    const float left = ImGui::GetCursorPosX();
    ImGui::SetCursorPosX(left + canvas.pixels(layout.memory.left));
    chart_title(profiler::kPeakAllocated, memory_subtitle(view),
                canvas.pixels(layout.memory.width));
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + canvas.pixels(layout.batch.left));
    const bool empty = largest_batch(view) == 0;
    const std::string why = why_empty(view, view.no_max_batch_text);
    chart_title(profiler::kLargestBatch, empty ? why : max_batch_subtitle(view),
                canvas.pixels(layout.batch.width));
    if (empty) ImGui::SetItemTooltip("%s", why.c_str());
}

void draw_rows(const CompareView& view, const RowsLayout& layout, const Selection& selection,
               PanelEvents& events) {
    ImGuiCanvas canvas(ImGui::GetWindowDrawList());
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const auto count = static_cast<int>(view.columns.size());
    const float height = layout.row_height * static_cast<float>(count);
    const Rect rows = canvas.to_canvas(corner, {0, height});
    draw_lane_ground(canvas, layout.memory, rows);
    draw_lane_ground(canvas, layout.batch, rows);
    const float scroll = ImGui::GetScrollY();
    const int first = std::clamp(static_cast<int>(scroll / layout.row_height), 0, count);
    const int last = std::clamp(
        static_cast<int>((scroll + layout.list_height) / layout.row_height) + 1, first, count);
    const float bar = std::max(ImGui::GetTextLineHeight() + px(1),
                               std::floor(std::min(layout.row_height * 0.72F, em(1.9F))));
    for (int i = first; i < last; ++i) {
        const float top = corner.y + layout.row_height * static_cast<float>(i) +
                          std::floor((layout.row_height - bar) / 2);
        const Rect row = canvas.to_canvas({corner.x, top}, {0, bar});
        const CompareColumn& column = view.columns[static_cast<size_t>(i)];
        draw_name(canvas, column, row, layout, events);
        draw_memory_bar(canvas, column, layout.memory.slot(row), selection, events);
        draw_batch_row(canvas, column, layout.batch.slot(row), events);
    }
    ImGui::SetCursorScreenPos(corner);
    ImGui::Dummy({1, height});
}

}  // namespace

void draw_compare_rows(const CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events) {
    ImGui::BeginGroup();
    ImGuiCanvas canvas(ImGui::GetWindowDrawList());
    const RowsLayout layout = lay_out(canvas, view, size);
    draw_titles(canvas, view, layout);
    {
        const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
        const ScopedChild child("##rows", {size.x, layout.list_height});
        if (child) draw_rows(view, layout, selection, events);
    }
    const Rect line =
        canvas.to_canvas(ImGui::GetCursorScreenPos(), {0, ImGui::GetTextLineHeight()});
    if (view.has_peak) draw_lane_axis(canvas, layout.memory, line);
    if (largest_batch(view) > 0) draw_lane_axis(canvas, layout.batch, line);
    ImGui::Dummy({size.x, ImGui::GetTextLineHeight()});
    ImGui::EndGroup();
}

}  // namespace app
