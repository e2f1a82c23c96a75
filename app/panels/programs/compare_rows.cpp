#include "app/panels/programs/compare_charts.h"

#include "app/widgets/fonts.h"
#include "app/widgets/marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/view/axis.h"
#include "profiler/view/quantity_names.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::CompareColumn;
using profiler::CompareView;

/// A column of bars that start at the same x.
struct Lane {
    float left = 0;  // from the left edge of the chart
    float width = 0;
    double end = 1;  // value at the right edge
    profiler::AxisUnit unit = profiler::AxisUnit::kBytes;

    float length_of(double value) const {
        return std::round(static_cast<float>(value / end) * width);
    }
};

struct RowsLayout {
    float name_width = 0;
    Lane memory;
    Lane batch;
    float row_height = 0;
    float list_height = 0;  // visible part of the rows
    bool scrolls = false;
};

/// What stands right of a bar: the value, and its change from the baseline.
struct BarText {
    std::string value;
    const profiler::Change* change = nullptr;
    bool predicted = false;

    float width() const {
        const ScopedFont bold(fonts().bold);
        const float gap = change && !change->empty() ? px(7) + text_width(change->text) : 0;
        return text_width(value) + gap + px(10);
    }
};

BarText memory_text(const CompareColumn& column) {
    std::string value = column.peak_text;
    if (!column.batch_text.empty()) value += " at " + column.batch_text;
    return {value, &column.peak_change};
}

BarText batch_text(const CompareColumn& column) {
    if (is_swept(column) || !column.planned) {
        return {column.max_batch_text, &column.max_batch_change};
    }
    return {profiler::max_batch_text(*column.planned), &column.planned_max_batch_change, true};
}

double batch_of(const CompareColumn& column) {
    const int64_t planned = column.planned ? column.planned->max_batch_size.value_or(0) : 0;
    return static_cast<double>(std::max(column.largest_batch, planned));
}

/// The least end of the axis that leaves the text right of each bar inside the lane.
template <typename ValueOf, typename TextOf>
double fit_axis(const CompareView& view, float width, ValueOf value_of, TextOf text_of) {
    double end = 0;
    for (const CompareColumn& column : view.columns) {
        const float room = std::max(width - text_of(column).width(), width * 0.2F);
        end = std::max(end, value_of(column) * static_cast<double>(width / room));
    }
    return end > 0 ? end : 1;
}

float longest_name(const CompareView& view) {
    const ScopedFont bold(fonts().bold);
    float width = 0;
    for (const CompareColumn& column : view.columns) {
        width = std::max(width, text_width(column.recipe));
    }
    return width;
}

float mark_width() { return em(1.2F); }

RowsLayout lay_out(const CompareView& view, ImVec2 size) {
    RowsLayout layout;
    const float line = ImGui::GetTextLineHeight();
    const auto count = static_cast<float>(view.columns.size());
    layout.list_height = std::max(line, size.y - 2 * ImGui::GetTextLineHeightWithSpacing() - px(4));
    layout.row_height = std::floor(
        std::clamp(layout.list_height / std::max(count, 1.0F), line + px(6), 2.4F * line));
    layout.scrolls = layout.row_height * count > layout.list_height + 1;
    // A scroll bar takes its room whether it is there or not, so that rows do not jump.
    const float width = size.x - ImGui::GetStyle().ScrollbarSize - px(4);
    layout.name_width =
        std::min(longest_name(view) + mark_width() + px(14), std::max(em(8), width * 0.26F));
    const float gap = px(18), room = width - layout.name_width - gap;
    layout.memory = {.left = layout.name_width, .width = std::floor(room * 0.64F)};
    layout.batch = {.left = layout.name_width + layout.memory.width + gap,
                    .width = std::floor(room * 0.36F),
                    .unit = profiler::AxisUnit::kCount};
    layout.memory.end = fit_axis(
        view, layout.memory.width,
        [](const CompareColumn& c) { return static_cast<double>(c.peak_bytes); }, memory_text);
    layout.batch.end = fit_axis(view, layout.batch.width, batch_of, batch_text);
    return layout;
}

std::vector<profiler::Tick> ticks_of(const Lane& lane) {
    const int count = std::max(2, static_cast<int>(lane.width / px(84)));
    return profiler::make_ticks(lane.unit, 0, lane.end, count);
}

void draw_lane_ground(ImDrawList* draw, const Lane& lane, float left, float top, float bottom) {
    const float x = left + lane.left;
    draw->AddRectFilled({x, top}, {x + lane.width, bottom}, palette().plot);
    for (const profiler::Tick& tick : ticks_of(lane)) {
        const float at = x + lane.length_of(tick.value);
        draw->AddRectFilled({at, top}, {at + 1, bottom}, with_alpha(palette().dim, 0.22F));
    }
}

/// Labels of the ticks under a lane.
void draw_lane_axis(ImDrawList* draw, const Lane& lane, ImVec2 corner) {
    float free_from = corner.x + lane.left - em(2);
    for (const profiler::Tick& tick : ticks_of(lane)) {
        const float width = text_width(tick.label);
        const float at = corner.x + lane.left + lane.length_of(tick.value);
        const float x =
            std::clamp(at - width / 2, corner.x + lane.left,
                       std::max(corner.x + lane.left, corner.x + lane.left + lane.width - width));
        if (x < free_from) continue;
        draw->AddText({std::round(x), corner.y}, palette().dim, tick.label.c_str());
        free_from = x + width + px(8);
    }
}

void draw_bar_text(ImDrawList* draw, const BarText& bar, ImVec2 at) {
    const ScopedFont bold(fonts().bold);
    draw->AddText(at, bar.predicted ? palette().dim : palette().text, bar.value.c_str());
    if (!bar.change || bar.change->empty()) return;
    at.x += text_width(bar.value) + px(7);
    draw->AddText(at, tone_color(bar.change->tone), bar.change->text.c_str());
}

/// Where the bars of one row lie.
struct Row {
    float left = 0;  // of the chart
    float top = 0;   // of the bar
    float bottom = 0;
    float text_y = 0;
};

void draw_name(const CompareColumn& column, const Row& row, const RowsLayout& layout,
               PanelEvents& events) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const ScopedId id(static_cast<int>(column.index));
    const float width = layout.name_width - px(8);
    ImGui::SetCursorScreenPos({row.left, row.top});
    if (ImGui::InvisibleButton("##name", {width, std::max(1.0F, row.bottom - row.top)})) {
        events.traces.column = column.index;
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip) && ImGui::BeginTooltip()) {
        ImGui::PushTextWrapPos(em(32));
        bold_text(column.recipe);
        for (const std::string& file : column.files) note_text(file);
        ImGui::PopTextWrapPos();
        ImGui::EndTooltip();
    }
    draw_recipe_marker(draw, {row.left + em(0.5F), std::round((row.top + row.bottom) / 2)}, px(4),
                       column.color);
    const ScopedFont bold(fonts().bold);
    const std::string name = fit_to(column.recipe, width - mark_width());
    draw->AddText({row.left + mark_width(), row.text_y}, palette().text, name.c_str());
}

void draw_memory_bar(const CompareColumn& column, const Row& row, const Lane& lane,
                     const Selection& selection, PanelEvents& events) {
    if (column.peak_bytes <= 0 && !column.out_of_memory) return;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float x = row.left + lane.left;
    for (const profiler::StackSegment& segment : column.stack) {
        const ImVec2 upper{x + lane.length_of(static_cast<double>(segment.start_bytes)), row.top};
        const ImVec2 lower{
            x + lane.length_of(static_cast<double>(segment.start_bytes + segment.size_bytes)),
            row.bottom};
        if (!draw_stack_segment(draw, upper, lower, owner_of(column), segment, selection, events)) {
            draw_segment_text(draw, upper, lower, segment);
        }
        if (lower.x - upper.x > 3) {  // a thin gap between segments
            draw->AddRectFilled({lower.x - 1, upper.y}, lower, with_alpha(palette().plot, 0.5F));
        }
    }
    const float end = x + lane.length_of(static_cast<double>(column.peak_bytes));
    if (column.is_cut_off) {
        draw_torn_edge(draw, {end, row.top}, {end, row.bottom}, {-px(6), 0}, palette().plot);
    }
    draw_bar_text(draw, memory_text(column), {end + px(6), row.text_y});
}

/// The prediction as a pale bar; what a sweep measured as a solid, narrower one in front.
void draw_batch_bar(const CompareColumn& column, const Row& row, const Lane& lane,
                    PanelEvents& events) {
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float x = row.left + lane.left;
    const bool swept = is_swept(column);
    float cut = 0;
    if (column.planned && column.planned->max_batch_size.value_or(0) > 0) {
        const auto value = static_cast<double>(*column.planned->max_batch_size);
        fill_predicted(draw, {x, row.top}, {x + lane.length_of(value), row.bottom},
                       recipe_color(column.color));
        cut = std::round((row.bottom - row.top) * 0.2F);
    }
    if (swept) {
        const float end = x + lane.length_of(static_cast<double>(column.largest_batch));
        const float top = row.top + cut, bottom = row.bottom - cut;
        fill_recipe(draw, {x, top}, {end, bottom}, column.color);
        if (!column.max_batch_size) {  // the sweep ended before it reached the maximum
            draw_torn_edge(draw, {end, top}, {end, bottom}, {-px(6), 0}, palette().plot);
        }
    }
    if (!swept && !column.planned) return;
    const float end = x + lane.length_of(batch_of(column));
    draw_bar_text(draw, batch_text(column), {end + px(6), row.text_y});
    if (!mouse_in({x, row.top}, {x + lane.width, row.bottom})) return;
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) events.traces.column = column.index;
    max_batch_tooltip(column);
}

/// Titles above the lanes. A lane without data says why.
void draw_titles(const CompareView& view, const RowsLayout& layout) {
    const float left = ImGui::GetCursorPosX();
    ImGui::SetCursorPosX(left + layout.memory.left);
    chart_title(profiler::kPeakAllocated, memory_subtitle(view), layout.memory.width);
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + layout.batch.left);
    const bool empty = largest_batch(view) == 0;
    const std::string why = why_empty(view, view.no_max_batch_text);
    chart_title(profiler::kLargestBatch, empty ? why : max_batch_subtitle(view),
                layout.batch.width);
    if (empty) ImGui::SetItemTooltip("%s", why.c_str());
}

void draw_rows(const CompareView& view, const RowsLayout& layout, const Selection& selection,
               PanelEvents& events) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const auto count = static_cast<int>(view.columns.size());
    const float height = layout.row_height * static_cast<float>(count);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw_lane_ground(draw, layout.memory, corner.x, corner.y, corner.y + height);
    draw_lane_ground(draw, layout.batch, corner.x, corner.y, corner.y + height);
    const float scroll = ImGui::GetScrollY();
    const int first = std::clamp(static_cast<int>(scroll / layout.row_height), 0, count);
    const int last = std::clamp(
        static_cast<int>((scroll + layout.list_height) / layout.row_height) + 1, first, count);
    const float bar = std::max(ImGui::GetTextLineHeight() + px(1),
                               std::floor(std::min(layout.row_height * 0.72F, em(1.9F))));
    for (int i = first; i < last; ++i) {
        const float top = corner.y + layout.row_height * static_cast<float>(i) +
                          std::floor((layout.row_height - bar) / 2);
        const Row row{corner.x, top, top + bar,
                      std::round(top + (bar - ImGui::GetTextLineHeight()) / 2)};
        const CompareColumn& column = view.columns[static_cast<size_t>(i)];
        draw_name(column, row, layout, events);
        draw_memory_bar(column, row, layout.memory, selection, events);
        draw_batch_bar(column, row, layout.batch, events);
    }
    ImGui::SetCursorScreenPos(corner);
    ImGui::Dummy({1, height});
}

}  // namespace

void draw_compare_rows(const CompareView& view, const Selection& selection, ImVec2 size,
                       PanelEvents& events) {
    ImGui::BeginGroup();
    const RowsLayout layout = lay_out(view, size);
    draw_titles(view, layout);
    {
        const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
        const ScopedChild child("##rows", {size.x, layout.list_height});
        if (child) draw_rows(view, layout, selection, events);
    }
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (view.has_peak) draw_lane_axis(draw, layout.memory, corner);
    if (largest_batch(view) > 0) draw_lane_axis(draw, layout.batch, corner);
    ImGui::Dummy({size.x, ImGui::GetTextLineHeight()});
    ImGui::EndGroup();
}

}  // namespace app
