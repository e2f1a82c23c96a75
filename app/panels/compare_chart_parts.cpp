#include "app/panels/compare_chart_parts.h"

#include "app/widgets/hatch.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

void segment_tooltip(const profiler::CompareColumn& column, const profiler::StackSegment& segment) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(column.recipe);
    category_swatch(segment.category);
    text(profiler::label_of(segment.category));
    ImGui::SameLine(0, px(14));
    bold_text(segment.text);
    dim_text(profiler::format_exact_bytes(segment.size_bytes));
    dim_text(fmt::format("{} of {} at the peak",
                         profiler::format_percent(static_cast<double>(segment.size_bytes) /
                                                  static_cast<double>(column.peak_bytes)),
                         column.peak_text));
    ImGui::EndTooltip();
}

}  // namespace

void chart_title(std::string_view title, std::string_view subtitle, float width) {
    const float left = ImGui::GetCursorPosX();
    bold_text(fit_to(title, width));
    if (subtitle.empty()) return;
    ImGui::SameLine(0, px(8));
    dim_text(fit_to(subtitle, left + width - ImGui::GetCursorPosX()));
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

std::string max_batch_subtitle(const profiler::CompareView& view) {
    std::string text = view.has_max_batch && !view.memory_limit_text.empty()
                           ? "sequences within " + view.memory_limit_text
                           : "sequences";
    if (!view.planned_on.empty()) text += ", hatched: predicted for " + view.planned_on;
    return text;
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

bool draw_stack_segment(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                        const profiler::CompareColumn& column,
                        const profiler::StackSegment& segment, const Selection& selection,
                        PanelEvents& events) {
    const bool pale = selection.category && *selection.category != segment.category;
    const ImVec2 size = lower_right - upper_left;
    if (size.x < 1 || size.y < 1) return pale;
    fill_category(draw, upper_left, lower_right, segment.category, pale ? 0.22F : 1.0F, px(7));
    if (!mouse_in(upper_left, lower_right)) return pale;
    draw->AddRect(upper_left, lower_right, palette().text, 0, px(1));
    segment_tooltip(column, segment);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        events.category = segment.category;
        events.column = column.index;
    }
    return pale;
}

void draw_segment_text(ImDrawList* draw, ImVec2 upper_left, ImVec2 lower_right,
                       const profiler::StackSegment& segment) {
    const float line = ImGui::GetTextLineHeight(), width = text_width(segment.text);
    const ImVec2 size = lower_right - upper_left;
    if (size.y <= line || size.x <= width + px(8)) return;
    const ImU32 fill = category_color(segment.category);
    const ImVec2 corner{std::round(upper_left.x + (size.x - width) / 2),
                        std::round(upper_left.y + (size.y - line) / 2)};
    draw->AddRectFilled({corner.x - px(3), corner.y}, {corner.x + width + px(3), corner.y + line},
                        fill, px(3));
    draw->AddText(corner, ink_on(fill), segment.text.c_str());
}

void max_batch_tooltip(const profiler::CompareColumn& column) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(column.recipe);
    if (is_swept(column)) labelled_value("measured", column.max_batch_text);
    if (column.planned) labelled_value("predicted", column.planned->max_batch_text);
    if (column.planned && !column.planned->why.empty()) {
        ImGui::PushTextWrapPos(em(26));
        note_text(column.planned->why);
        ImGui::PopTextWrapPos();
    }
    ImGui::EndTooltip();
}

bool mouse_in(ImVec2 upper_left, ImVec2 lower_right) {
    return ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(upper_left, lower_right);
}

}  // namespace app
