#include "app/panels/programs/compare_chart_parts.h"

#include "app/widgets/fonts.h"
#include "app/widgets/hatch.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/text_plate.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

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

float PlotBar::center() const { return std::round((left + right) / 2); }

PlotBar plot_bar(double x, double width) {
    const float left = ImPlot::PlotToPixels(x - width / 2, 0).x;
    const float right = ImPlot::PlotToPixels(x + width / 2, 0).x;
    const float cut = std::max(0.0F, (right - left - px(92)) / 2);
    return {std::round(left + cut), std::round(right - cut)};
}

float plot_y(double value) { return std::round(ImPlot::PlotToPixels(0, value).y); }

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

}  // namespace app
