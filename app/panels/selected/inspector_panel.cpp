#include "app/panels/selected/inspector_panel.h"

#include "app/panels/selected/inspector_calls.h"
#include "app/panels/selected/inspector_range.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace app {
namespace {

// ---- chips ----------------------------------------------------------------------------------

/// Where a line of chips begins and ends on the screen.
struct ChipLine {
    float left = 0;
    float right = 0;
};

/// A label in a frame with a small x behind it. Chips flow into the next line. Returns true when
/// the x was clicked.
bool draw_chip(const ChipLine& line, const char* id, std::string_view label) {
    const ScopedId scope(id);
    const float x_width = text_width(ICON_XMARK) + px(8);
    const float room = line.right - line.left;
    const std::string shown = fit_to(label, std::min(em(13), room - x_width - px(16)));
    const float width = text_width(shown) + x_width + px(12);
    const ImVec2 size{width, ImGui::GetTextLineHeight() + px(6)};
    ImGui::SameLine(0, px(4));
    if (ImGui::GetCursorScreenPos().x + width > line.right) ImGui::NewLine();
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(corner, corner + size, with_alpha(palette().accent, 0.18F), px(4));
    draw->AddText({corner.x + px(7), corner.y + px(3)}, palette().text, shown.c_str());
    ImGui::Dummy({width - x_width, size.y});
    if (shown != label) {
        ImGui::SetItemTooltip("%.*s", static_cast<int>(std::min<size_t>(label.size(), 300)),
                              label.data());
    }
    ImGui::SameLine(0, 0);
    const bool clicked = ImGui::InvisibleButton("###remove", {x_width, size.y});
    const bool hovered = ImGui::IsItemHovered();
    ImGui::SetItemTooltip("Remove from the selection");
    draw->AddText({corner.x + width - x_width + px(2), corner.y + px(3)},
                  hovered ? palette().text : palette().dim, ICON_XMARK);
    return clicked;
}

std::string range_label(const profiler::TimeRange& range) {
    const double length_ns = std::clamp(range.end_ns - range.start_ns, 0.0, 0x1p62);
    return profiler::format_duration(std::llround(length_ns));
}

std::string layers_label(const profiler::LayerRange& layers) {
    if (layers.count() == 1) return fmt::format("layer {}", layers.first);
    return fmt::format("layers {} to {}", layers.first, layers.last);
}

std::string moment_label(double moment_ns) {
    return "at " + profiler::format_duration(std::llround(std::clamp(moment_ns, -0x1p62, 0x1p62)));
}

void draw_step_button(const Workspace& workspace, const char* label, const char* tip, int direction,
                      PanelEvents& events) {
    const ScopedDisabled disabled(!workspace.can_step_selection(direction));
    if (ImGui::Button(label)) events.selection.history_step = direction;
    ImGui::SetItemTooltip("%s", tip);
}

void draw_chips(const Workspace& workspace, PanelEvents& events) {
    const Selection& selection = workspace.selection();
    const ScopedFont small(fonts().text, kSmallSize);
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(5), px(3)});
    const float left = ImGui::GetCursorScreenPos().x;
    const ChipLine line{left, left + ImGui::GetContentRegionAvail().x};
    draw_step_button(workspace, ICON_ARROW_LEFT "###back", "The selection before (Alt + Left)", -1,
                     events);
    ImGui::SameLine(0, px(2));
    draw_step_button(workspace, ICON_ARROW_RIGHT "###forward", "The selection after (Alt + Right)",
                     1, events);
    if (const auto& category = selection.category) {
        // Selecting it again clears it.
        if (draw_chip(line, "category", profiler::label_of(*category)))
            events.selection.category = category;
    }
    if (const auto& range = selection.range) {
        if (draw_chip(line, "range", range_label(*range))) {
            events.selection.range = std::optional<profiler::TimeRange>();
        }
    }
    if (const auto& moment_ns = selection.moment_ns) {
        if (draw_chip(line, "moment", moment_label(*moment_ns)))
            events.selection.moment_ns.emplace(std::nullopt);
    }
    if (const auto& layers = selection.layers) {
        if (draw_chip(line, "layers", layers_label(*layers)))
            events.selection.layers.emplace(std::nullopt);
    }
    if (const auto& tensor = selection.tensor) {
        if (draw_chip(line, "tensor", tensor->name)) events.selection.clear_tensor = true;
    }
    if (const auto& activity = selection.activity) {
        if (draw_chip(line, "call", activity->name)) events.selection.clear_activity = true;
    }
    if (const auto& marks = selection.marks) {
        if (draw_chip(line, "marks", "marked: " + marks->label))
            events.selection.marks.emplace(std::nullopt);
    }
}

/// A pinned Inspector keeps describing the same while other things are selected.
void draw_pin(const InspectorQuery& query, const Selection& selection, PanelEvents& events) {
    const ScopedFont small(fonts().text, kSmallSize);
    const ScopedStyle padding(ImGuiStyleVar_FramePadding, {px(5), px(3)});
    const bool is_pinned = query.pinned.has_value();
    const ScopedDisabled disabled(!is_pinned && !selects_something(selection));
    if (toggle_button(is_pinned ? ICON_THUMBTACK "  Pinned###pin" : ICON_THUMBTACK "###pin",
                      is_pinned)) {
        events.window.inspector = InspectorQuery();
        if (!is_pinned) events.window.inspector->pinned = selection;
    }
    ImGui::SetItemTooltip(is_pinned ? "Follow the selection again"
                                    : "Keep this while other things are selected");
    if (!is_pinned) ImGui::SameLine(0, px(8));
}

// ---- cards ----------------------------------------------------------------------------------

/// A line across the panel, then the letter of the trace and the name.
void draw_title(const Selection& selection, std::optional<bool> in_b, std::string_view title) {
    ImGui::Spacing();
    ImGui::Separator();
    ImGui::Spacing();
    if (in_b) {
        letter_badge(*in_b ? "B" : "A",
                     recipe_color((*in_b ? selection.look_b : selection.look_a).color));
        ImGui::SameLine(0, px(7));
    }
    const std::string shown = fit_to(title, ImGui::GetContentRegionAvail().x);
    bold_text(shown);
    if (shown == title || !ImGui::BeginItemTooltip()) return;
    ImGui::PushTextWrapPos(em(34));
    text(title);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

/// A value that wraps, or a path that is shortened at its start.
void draw_value(const std::string& value) {
    const float width = ImGui::GetContentRegionAvail().x;
    const bool is_one_word = value.find(' ') == value.npos;
    if (!is_one_word) {
        ImGui::PushTextWrapPos(0);
        text(value);
        ImGui::PopTextWrapPos();
        return;
    }
    text(fit_path_to(value, width));
    if (text_width(value) > width) {
        ImGui::SetItemTooltip("%.*s", static_cast<int>(std::min<size_t>(value.size(), 300)),
                              value.c_str());
    }
}

/// Labels at the left and one or two columns of values. Returns whether there is a table to fill.
bool begin_rows(const char* id, int num_values, float label_width) {
    if (!ImGui::BeginTable(id, num_values + 1)) return false;
    ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, label_width);
    for (int i = 0; i < num_values; ++i) {
        ImGui::TableSetupColumn(i == 0 ? "value" : "value of B",
                                ImGuiTableColumnFlags_WidthStretch);
    }
    return true;
}

void draw_label(std::string_view label) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    dim_text(label);
}

void draw_rows(const profiler::InspectorRows& rows) {
    const ScopedFont small(fonts().text, kSmallSize);
    const ScopedStyle padding(ImGuiStyleVar_CellPadding, {px(3), px(2)});
    float label_width = 0;
    for (const auto& row : rows) label_width = std::max(label_width, text_width(row.first));
    if (!begin_rows("##rows", 1, label_width)) return;
    for (const auto& [label, value] : rows) {
        draw_label(label);
        ImGui::TableNextColumn();
        draw_value(value);
    }
    ImGui::EndTable();
}

/// When A and B hold a tensor, side by side under their letters; or its only trace.
void draw_life(const Selection& selection, const std::vector<profiler::LifeRow>& rows) {
    if (rows.empty()) return;
    const ScopedFont small(fonts().text, kSmallSize);
    const ScopedStyle padding(ImGuiStyleVar_CellPadding, {px(3), px(2)});
    float label_width = 0;
    for (const auto& row : rows) label_width = std::max(label_width, text_width(row.label));
    const auto num_values = static_cast<int>(rows.front().values.size());
    if (!begin_rows("##life", num_values, label_width)) return;
    if (num_values > 1) {
        draw_label("");
        ImGui::TableNextColumn();
        letter_badge("A", recipe_color(selection.look_a.color));
        ImGui::TableNextColumn();
        letter_badge("B", recipe_color(selection.look_b.color));
    }
    for (const auto& row : rows) {
        draw_label(row.label);
        for (const std::string& value : row.values) {
            ImGui::TableNextColumn();
            draw_value(value);
        }
    }
    ImGui::EndTable();
}

ImU32 color_of(profiler::Fate fate) {
    using profiler::Fate;
    const bool is_less = fate == Fate::kGone || fate == Fate::kSmaller || fate == Fate::kShorter;
    const bool is_more = fate == Fate::kAdded || fate == Fate::kLarger || fate == Fate::kLonger;
    return is_less ? palette().good : is_more ? palette().bad : palette().dim;
}

void draw_category(const Selection& selection, const std::vector<profiler::CategoryCard>& cards) {
    const ScopedId id("category");
    for (size_t source = 0; source < cards.size(); ++source) {
        const ScopedId source_id(static_cast<int>(source));
        draw_title(selection, source == 1, profiler::label_of(*selection.category));
        draw_rows(cards[source].rows);
        if (cards[source].largest.empty()) continue;
        {
            const ScopedFont small(fonts().text, kSmallSize);
            dim_text("The largest at the peak");
        }
        draw_rows(cards[source].largest);
    }
}

void draw_tensor(const Selection& selection, const profiler::TensorCard& card) {
    const ScopedId id("tensor");
    draw_title(selection, selection.tensor->in_b, card.title);
    draw_rows(card.rows);
    if (!card.fate.text.empty()) {
        const ScopedFont small(fonts().text, kSmallSize);
        ImGui::PushTextWrapPos(0);
        colored_text(color_of(card.fate.fate), card.fate.text);
        ImGui::PopTextWrapPos();
    }
    draw_life(selection, card.life);
}

void draw_call(const Selection& selection, const profiler::CallCard& card, PanelEvents& events) {
    const ScopedId id("call");
    draw_title(selection, selection.activity->in_b, card.title);
    draw_rows(card.rows);
    // The view is made off the frame thread: right after a click it still describes the old call.
    const profiler::CallGroup& group = card.group;
    const bool is_of_selection =
        group.picked == selection.activity->id && (group.source == 1) == selection.activity->in_b;
    if (!is_of_selection || group.low_ns <= 0) return;
    const auto& phase = group.key.phase;
    draw_title(selection, std::nullopt,
               fmt::format("All calls of it{}{}", phase ? " in " : "",
                           phase ? profiler::name_of(*phase) : ""));
    draw_call_group(selection, group, events);
    draw_rows(card.group_rows);
}

/// What the marked calls add up to.
void draw_marks(const Selection& selection, const profiler::MarksView& marks) {
    const ScopedId id("marks");
    draw_title(selection, std::nullopt, "Marked: " + selection.marks->label);
    profiler::InspectorRows rows;
    for (size_t i = 0; i < marks.traces.size(); ++i) {
        const int64_t count = marks.traces[i].num_calls, time_ns = marks.traces[i].time_ns;
        rows.emplace_back(
            i == 0 ? "A" : "B",
            fmt::format("{} {}, {} together", profiler::format_count(count),
                        count == 1 ? "call" : "calls", profiler::format_duration(time_ns)));
    }
    draw_rows(rows);
}

void draw_moment_card(const Workspace& workspace, const Selection& selection) {
    const double moment_ns = *selection.moment_ns;
    if (!workspace.slots().timeline.view()) return;
    const ScopedId id("moment");
    const auto a = workspace.read_timeline(0, moment_ns);
    draw_title(selection, std::nullopt, "The moment " + a.time_text);
    profiler::InspectorRows rows;
    if (!a.phase_text.empty()) rows.emplace_back("in", a.phase_text);
    rows.emplace_back("live in A", a.total_text);
    const auto b = workspace.read_timeline(1, moment_ns);
    if (!b.total_text.empty()) rows.emplace_back("live in B", b.total_text);
    draw_rows(rows);
}

void draw_cards(const PanelContext& context, const Selection& selection, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const profiler::InspectorView* view = context.views.inspector.view();
    const bool has_cards = selection.category || selection.tensor || selection.activity;
    if (has_cards && !view) {
        const std::string& error = context.views.inspector.error();
        error.empty() ? working_line("Describing the selection ...") : note_text(error);
    }
    if (view && selection.category) draw_category(selection, view->category);
    if (view && view->tensor && selection.tensor) draw_tensor(selection, *view->tensor);
    if (view && view->call && selection.activity) draw_call(selection, *view->call, events);
    const profiler::MarksView* const marks = workspace.slots().marks.view();
    const bool is_of_marks = selection.marks == workspace.selection().marks;  // else pinned ones
    if (marks && selection.marks && is_of_marks) draw_marks(selection, *marks);
    if (selection.range) {
        const ScopedId id("range");
        draw_title(selection, std::nullopt, "A range of " + range_label(*selection.range));
        const profiler::RangeView* range = context.views.range.view();
        const std::string& error = context.views.range.error();
        if (range) {
            draw_range_tables(context, *range, events);
        } else if (!error.empty()) {
            note_text(error);
        } else {
            working_line("Summing up the range ...");
        }
    }
    if (selection.moment_ns) draw_moment_card(workspace, selection);
}

}  // namespace

PanelEvents draw_inspector_panel(const PanelContext& context) {
    PanelEvents events;
    const InspectorQuery& query = context.views.queries.inspector;
    const Selection& selection = inspected(query, context.workspace.selection());
    if (!selection.a) {
        empty_state(ICON_CIRCLE_INFO, "No trace is open",
                    "What you select in a trace is described here.");
        return events;
    }
    draw_pin(query, selection, events);
    if (!query.pinned) draw_chips(context.workspace, events);
    if (!selects_something(selection)) {
        ImGui::Spacing();
        note_text(
            "Click a tensor in the Ledger, a block or a call to see all about it. In the Memory "
            "timeline, a click sets the moment and Shift + drag selects a range of time.");
        return events;
    }
    draw_cards(context, selection, events);
    return events;
}

}  // namespace app
