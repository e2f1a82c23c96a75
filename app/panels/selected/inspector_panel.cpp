#include "app/panels/selected/inspector_panel.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "app/workspace/workspace.h"
#include "profiler/trace/units.h"
#include "profiler/view/selected/inspector_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace app {
namespace {

using profiler::CallGroup;
using profiler::CallTimes;
using profiler::RangeRow;
using profiler::RangeView;

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

/// Nothing lasts less than 0.
std::string duration_text(double duration_ns) {
    return profiler::format_duration(profiler::to_clock(std::max(duration_ns, 0.0)));
}

std::string range_label(const profiler::TimeRange& range) {
    return duration_text(range.end_ns - range.start_ns);
}

std::string layers_label(const profiler::LayerRange& layers) {
    if (layers.count() == 1) return fmt::format("layer {}", layers.first);
    return fmt::format("layers {} to {}", layers.first, layers.last);
}

std::string moment_label(double moment_ns) {
    return "at " + profiler::format_duration(profiler::to_clock(moment_ns));
}

std::string marks_label(const profiler::SelectedCalls& marks) { return "marked: " + marks.label; }

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
    const auto removes = [&](const char* id, const auto& selected, const auto& label_of) {
        return selected && draw_chip(line, id, std::invoke(label_of, *selected));
    };
    // Selecting a category again clears it.
    const auto category_label = [](profiler::Category one) { return profiler::label_of(one); };
    if (removes("category", selection.category, category_label))
        events.selection.category = selection.category;
    if (removes("range", selection.range, range_label))
        events.selection.range.emplace(std::nullopt);
    if (removes("moment", selection.moment_ns, moment_label))
        events.selection.moment_ns.emplace(std::nullopt);
    if (removes("layers", selection.layers, layers_label))
        events.selection.layers.emplace(std::nullopt);
    events.selection.clear_tensor = removes("tensor", selection.tensor, &SelectedTensor::name);
    events.selection.clear_call = removes("call", selection.call, &SelectedCall::name);
    if (removes("marks", selection.marks, marks_label))
        events.selection.marks.emplace(std::nullopt);
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

// ---- lines of cards -------------------------------------------------------------------------

/// A line across the panel, then the letter of the trace and the name.
void draw_title(std::optional<bool> in_b, std::string_view title) {
    ImGui::Spacing();
    ImGui::Separator();
    ImGui::Spacing();
    if (in_b) {
        letter_badge(*in_b ? "B" : "A", side_color(*in_b ? 1 : 0));
        ImGui::SameLine(0, px(7));
    }
    const std::string shown = fit_to(title, ImGui::GetContentRegionAvail().x);
    bold_text(shown);
    if (shown == title || !ImGui::BeginItemTooltip()) return;
    wrapped_text(title, em(34));
    ImGui::EndTooltip();
}

/// A value that wraps, or a path that is shortened at its start.
void draw_value(const std::string& value) {
    const float width = ImGui::GetContentRegionAvail().x;
    const bool is_one_word = value.find(' ') == value.npos;
    if (!is_one_word) {
        wrapped_text(value);
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
void draw_life(const std::vector<profiler::LifeRow>& rows) {
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
        letter_badge("A", side_color(0));
        ImGui::TableNextColumn();
        letter_badge("B", side_color(1));
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

// ---- all calls like the selected one --------------------------------------------------------

constexpr float kHistogram_em = 4.5F;  // height of the bars

/// Where the bars stand on the screen.
struct Bars {
    ImVec2 corner;
    ImVec2 size;
    int64_t most = 1;  // calls in one class

    float left_of(size_t index) const {
        constexpr auto kCount = static_cast<float>(CallGroup::kNumClasses);
        return std::round(corner.x + size.x * static_cast<float>(index) / kCount);
    }
    float bottom() const { return corner.y + size.y; }
    /// One call among thousands is still seen.
    float top_of(int64_t count) const {
        const float share = static_cast<float>(count) / static_cast<float>(most);
        return std::round(bottom() - std::max(px(2), size.y * share));
    }
    std::optional<size_t> class_at(ImVec2 at) const {
        const float along = (at.x - corner.x) / size.x;
        if (along < 0 || along >= 1 || at.y < corner.y || at.y > bottom()) return std::nullopt;
        return static_cast<size_t>(along * static_cast<float>(CallGroup::kNumClasses));
    }
};

int64_t most_calls(const CallGroup& group) {
    int64_t most = 1;
    for (const CallTimes& times : group.sources) {
        for (const int64_t count : times.counts) most = std::max(most, count);
    }
    return most;
}

/// A is filled, B an outline over it.
void draw_bars(ImDrawList* draw, const Bars& bars, const CallGroup& group) {
    for (size_t source = 0; source < group.sources.size(); ++source) {
        const bool is_a = source == 0;
        const ImU32 color = side_color(source);
        const auto& counts = group.sources[source].counts;
        for (size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) continue;
            const ImVec2 corner{bars.left_of(i), bars.top_of(counts[i])};
            const ImVec2 end{std::max(bars.left_of(i + 1) - px(1), corner.x + px(1)),
                             bars.bottom()};
            if (is_a) draw->AddRectFilled(corner, end, with_alpha(color, 0.75F));
            if (!is_a) draw->AddRect(corner, end, color, 0, px(1.5F));
        }
    }
}

/// A triangle at the foot of the class of the selected call.
void draw_picked(ImDrawList* draw, const Bars& bars, const CallGroup& group) {
    const size_t index = group.class_of(group.picked_ns);
    const float x = (bars.left_of(index) + bars.left_of(index + 1)) / 2;
    const float y = bars.bottom() + px(2);
    draw->AddTriangleFilled({x, y}, {x + px(4), y + px(6)}, {x - px(4), y + px(6)},
                            palette().accent);
}

void draw_class_tooltip(const CallGroup& group, size_t index) {
    if (!ImGui::BeginTooltip()) return;
    const double ratio = group.high_ns / group.low_ns;
    const auto edge = [&](size_t i) {
        const double along = static_cast<double>(i) / static_cast<double>(CallGroup::kNumClasses);
        return duration_text(group.low_ns * std::pow(ratio, along));
    };
    bold_text(fmt::format("{} to {}", edge(index), edge(index + 1)));
    for (size_t source = 0; source < group.sources.size(); ++source) {
        const int64_t count = group.sources[source].counts[index];
        text(fmt::format("{}  {} {}", source == 0 ? "A" : "B", profiler::format_count(count),
                         count == 1 ? "call" : "calls"));
    }
    ImGui::EndTooltip();
}

void draw_histogram(const CallGroup& group) {
    const ScopedFont small(fonts().text, kSmallSize);
    const Bars bars{.corner = ImGui::GetCursorScreenPos(),
                    .size = {ImGui::GetContentRegionAvail().x, em(kHistogram_em)},
                    .most = most_calls(group)};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(bars.corner, bars.corner + bars.size, palette().plot, px(2));
    draw_bars(draw, bars, group);
    draw->AddLine({bars.corner.x, bars.bottom()}, {bars.corner.x + bars.size.x, bars.bottom()},
                  palette().dim);
    draw_picked(draw, bars, group);
    ImGui::InvisibleButton("###histogram", {std::max(bars.size.x, px(1)), bars.size.y + px(8)});
    const bool is_hovered = ImGui::IsItemHovered();
    const std::string low = duration_text(group.low_ns), high = duration_text(group.high_ns);
    const float left = ImGui::GetCursorPosX();
    dim_text(low);
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + std::max(bars.size.x - text_width(high), text_width(low) + px(8)));
    dim_text(high);
    if (!is_hovered) return;
    if (const auto index = bars.class_at(ImGui::GetMousePos())) draw_class_tooltip(group, *index);
}

void draw_step_to(const char* label, const char* tip, profiler::CallId to, bool in_b,
                  PanelEvents& events) {
    const ScopedDisabled disabled(!to.valid());
    if (ImGui::Button(label)) events.selection.call = PickedCall{in_b, to};
    ImGui::SetItemTooltip("%s", tip);
    ImGui::SameLine(0, px(4));
}

/// All calls like the selected one: how their times are spread, in A and in B, and buttons that go
/// from one to the next or mark them in the Kernels panel.
void draw_call_group(const Selection& selection, const CallGroup& group, PanelEvents& events) {
    draw_histogram(group);
    const ScopedFont small(fonts().text, kSmallSize);
    const bool in_b = selection.call->in_b;
    const profiler::SelectedCalls marks{.label = selection.call->name,
                                        .keys = {std::vector{group.key}, std::vector{group.key}}};
    const bool are_marked = selection.marks == marks;
    draw_step_to(ICON_ARROW_LEFT "###previous_call", "The call of it before", group.previous, in_b,
                 events);
    draw_step_to(ICON_ARROW_RIGHT "###next_call", "The next call of it", group.next, in_b, events);
    const bool is_longest = group.longest == selection.call->id;
    draw_step_to("Longest###longest_call", "The call of it that takes longest",
                 is_longest ? profiler::CallId() : group.longest, in_b, events);
    if (toggle_button("Mark all###mark_calls", are_marked)) {
        events.selection.marks.emplace(are_marked ? std::nullopt : std::optional(marks));
    }
    ImGui::SetItemTooltip("Calls, kernels and copies of others become pale in the Kernels panel");
}

// ---- the tables on a range ------------------------------------------------------------------

constexpr float kNumber_em = 4.6F;  // width of a column of numbers

/// Where the columns end. In a narrow panel the numbers stand below the name.
struct Columns {
    bool with_other = false;
    bool is_narrow = false;
    float name_width = 0;
    std::array<float, 3> right{};  // of A, B and B - A, from the left edge
};

Columns lay_out_columns(bool with_other) {
    Columns columns{.with_other = with_other};
    const float width = ImGui::GetContentRegionAvail().x;
    const float number = std::min(em(kNumber_em), width / 3);
    const float numbers = number * (with_other ? 3.0F : 1.0F);
    columns.is_narrow = width - numbers < em(8);
    columns.name_width = columns.is_narrow ? width : width - numbers - px(8);
    for (size_t i = 0; i < 3; ++i) {
        const float behind = with_other ? static_cast<float>(2 - i) : 0.0F;
        columns.right[i] = width - number * behind;
    }
    return columns;
}

void right_at(float left, float right, std::string_view content, ImU32 color) {
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + right - text_width(content));
    colored_text(color, content);
}

void draw_numbers(const Columns& columns, float left, const RangeRow& row, bool less_is_good) {
    right_at(left, columns.right[0], row.texts[0], palette().text);
    if (!columns.with_other) return;
    right_at(left, columns.right[1], row.texts[1], palette().text);
    const ImU32 tone = row.difference == 0 || !less_is_good ? palette().dim
                       : row.difference < 0                 ? palette().good
                                                            : palette().bad;
    right_at(left, columns.right[2], row.difference_text, tone);
}

void draw_titles(const Columns& columns, std::string_view title, std::string_view help) {
    ImGui::Spacing();
    const float left = ImGui::GetCursorPosX();
    bold_text(title);
    if (!help.empty()) {
        ImGui::SameLine();
        help_marker(help);
    }
    if (!columns.with_other) return;
    if (columns.is_narrow) ImGui::Dummy({0, 0});
    right_at(left, columns.right[0], "A", palette().dim);
    right_at(left, columns.right[1], "B", palette().dim);
    right_at(left, columns.right[2], "B - A", palette().dim);
}

void draw_row_tooltip(const RangeRow& row) {
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(34));
    bold_text(row.name);
    if (!row.module_path.empty()) dim_text(row.module_path);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

/// How a row begins.
enum class RowMark : uint8_t { kNone, kPart, kClosed, kOpen };

/// Returns true when a row that stands for a tensor was clicked.
bool draw_row(const Columns& columns, const RangeRow& row, bool less_is_good,
              RowMark mark = RowMark::kNone) {
    const float left = ImGui::GetCursorPosX();
    const ImVec2 start = ImGui::GetCursorPos();
    bool clicked = false;
    const float lines = columns.is_narrow && columns.with_other ? 2.0F : 1.0F;
    const float height = lines * ImGui::GetTextLineHeight() + (lines - 1) * px(2);
    if (row.allocation.valid()) {
        clicked = ImGui::Selectable("##row", false, ImGuiSelectableFlags_AllowOverlap, {0, height});
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) draw_row_tooltip(row);
        ImGui::SetCursorPos(start);
        if (mark == RowMark::kPart) ImGui::SetCursorPosX(left + em(1));
        category_swatch(row.category);
        if (mark == RowMark::kClosed || mark == RowMark::kOpen) {
            dim_text(mark == RowMark::kOpen ? ICON_CHEVRON_DOWN : ICON_CHEVRON_RIGHT);
            ImGui::SameLine(0, px(4));
        }
    }
    const float indent = ImGui::GetCursorPosX() - left;
    const float one = columns.with_other ? columns.name_width : columns.right[0] - em(kNumber_em);
    const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, {px(4), px(2)});
    colored_text(row.allocation.valid() ? palette().text : palette().dim,
                 fit_to(row.name, std::max(em(2), one - indent)));
    if (!row.allocation.valid() && ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_row_tooltip(row);
    }
    if (lines > 1) ImGui::Dummy({0, 0});
    draw_numbers(columns, left, row, less_is_good);
    if (lines > 1) ImGui::Dummy({0, px(3)});  // keeps the numbers with the name above them
    return clicked;
}

/// A tensor, or one of many layers: a click unfolds those. Returns the row that was clicked.
const RangeRow* draw_tensor_row(const Columns& columns, const RangeRow& row) {
    if (row.parts.empty()) return draw_row(columns, row, true) ? &row : nullptr;
    const ScopedId id(row.name.c_str());
    bool& is_open = *ImGui::GetStateStorage()->GetBoolRef(ImGui::GetID("open"));
    if (draw_row(columns, row, true, is_open ? RowMark::kOpen : RowMark::kClosed)) {
        is_open = !is_open;
    }
    const RangeRow* clicked = nullptr;
    for (size_t i = 0; is_open && i < row.parts.size(); ++i) {
        const ScopedId part_id(static_cast<int>(i));
        if (draw_row(columns, row.parts[i], true, RowMark::kPart)) clicked = &row.parts[i];
    }
    return clicked;
}

void draw_range_tables(const PanelContext& context, const RangeView& view, PanelEvents& events) {
    const Selection& selection = context.workspace.selection();
    const ScopedFont small(fonts().text, kSmallSize);
    const Columns columns = lay_out_columns(view.has_other);
    if (!view.phase_text.empty()) note_text(view.phase_text);
    const auto draw_figure = [&](const RangeRow& row) {
        draw_row(columns, row, row.name != "freed");  // to free less is neither good nor bad
    };
    const auto draw_tensor = [&](const RangeRow& row) {
        const RangeRow* clicked = draw_tensor_row(columns, row);
        if (!clicked) return;
        events.selection.tensor = {
            clicked->in_b ? selection.b : selection.a, {}, clicked->allocation};
    };
    const auto table = [&](const char* title, std::string_view help,
                           const std::vector<RangeRow>& rows, const auto& draw_one) {
        if (rows.empty()) return;
        const ScopedId id(title);
        draw_titles(columns, title, help);
        for (size_t i = 0; i < rows.size(); ++i) {
            const ScopedId row_id(static_cast<int>(i));
            draw_one(rows[i]);
        }
    };
    table("In this range", "", view.figures, draw_figure);
    table("Held at its end",
          view.has_other ? "What differs between A and B. Summed by module and tensor over all "
                           "layers."
                         : "Summed by module and tensor over all layers.",
          view.held, draw_tensor);
    table("Allocated in it",
          "Bytes allocated in the range, summed by module and tensor over all layers.",
          view.tensors, draw_tensor);
    table("Ops by time",
          view.counts_kernels ? "Time of the kernels and copies that the op itself launched."
                              : "Time of the calls without the calls inside them.",
          view.ops_by_time, draw_figure);
    table("Ops by bytes", "Bytes allocated while the op was the innermost call.", view.ops_by_bytes,
          draw_figure);
}

// ---- the cards ------------------------------------------------------------------------------

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
        draw_title(source == 1, profiler::label_of(*selection.category));
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
    draw_title(selection.tensor->in_b, card.title);
    draw_rows(card.rows);
    if (!card.fate.text.empty()) {
        const ScopedFont small(fonts().text, kSmallSize);
        ImGui::PushTextWrapPos(0);
        colored_text(color_of(card.fate.fate), card.fate.text);
        ImGui::PopTextWrapPos();
    }
    draw_life(card.life);
}

void draw_call(const Selection& selection, const profiler::CallCard& card, PanelEvents& events) {
    const ScopedId id("call");
    draw_title(selection.call->in_b, card.title);
    draw_rows(card.rows);
    // The view is made off the frame thread: right after a click it still describes the old call.
    const profiler::CallGroup& group = card.group;
    const bool is_of_selection =
        group.picked == selection.call->id && (group.source == 1) == selection.call->in_b;
    if (!is_of_selection || group.low_ns <= 0) return;
    const auto& phase = group.key.phase;
    draw_title(std::nullopt, fmt::format("All calls of it{}{}", phase ? " in " : "",
                                         phase ? profiler::name_of(*phase) : ""));
    draw_call_group(selection, group, events);
    draw_rows(card.group_rows);
}

/// What the marked calls add up to.
void draw_marks(const Selection& selection, const profiler::MarksView& marks) {
    const ScopedId id("marks");
    draw_title(std::nullopt, "Marked: " + selection.marks->label);
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
    draw_title(std::nullopt, "The moment " + a.time_text);
    profiler::InspectorRows rows;
    if (!a.phase_text.empty()) rows.emplace_back("in", a.phase_text);
    rows.emplace_back("live in A", a.total_text);
    const auto b = workspace.read_timeline(1, moment_ns);
    if (!b.total_text.empty()) rows.emplace_back("live in B", b.total_text);
    draw_rows(rows);
}

/// In the place of what is not made yet, or cannot be.
void note_of_work(std::string_view working, const std::string& error) {
    error.empty() ? working_line(working) : note_text(error);
}

void draw_cards(const PanelContext& context, const Selection& selection, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const profiler::InspectorView* view = context.views.inspector.view();
    const bool has_cards = selection.category || selection.tensor || selection.call;
    if (has_cards && !view) {
        note_of_work("Describing the selection ...", context.views.inspector.error());
    }
    if (view && selection.category) draw_category(selection, view->category);
    if (view && view->tensor && selection.tensor) draw_tensor(selection, *view->tensor);
    if (view && view->call && selection.call) draw_call(selection, *view->call, events);
    const profiler::MarksView* const marks = workspace.slots().marks.view();
    const bool is_of_marks = selection.marks == workspace.selection().marks;  // else pinned ones
    if (marks && selection.marks && is_of_marks) draw_marks(selection, *marks);
    if (selection.range) {
        const ScopedId id("range");
        draw_title(std::nullopt, "A range of " + range_label(*selection.range));
        if (const profiler::RangeView* range = context.views.range.view()) {
            draw_range_tables(context, *range, events);
        } else {
            note_of_work("Summing up the range ...", context.views.range.error());
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
