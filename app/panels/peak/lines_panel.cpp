#include "app/panels/peak/lines_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/advice/advice_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::Explanation;
using profiler::Share;
using GroupBy = LinesState::GroupBy;

const std::vector<Share>& shares_of(const profiler::MemoryFacts& memory, GroupBy by) {
    switch (by) {
        case GroupBy::kModule:
            return memory.by_module;
        case GroupBy::kCategory:
            return memory.by_category;
        case GroupBy::kLine:
            break;
    }
    return memory.by_line;
}

/// A trace without stacks has one row, which tells nothing.
GroupBy first_grouping(const profiler::MemoryFacts& memory) {
    const std::vector<Share>& lines = memory.by_line;
    return lines.size() > 1 || (lines.size() == 1 && !lines.front().code.empty())
               ? GroupBy::kLine
               : GroupBy::kModule;
}

/// The buttons, and which moment is shown. Returns what is chosen.
GroupBy draw_toolbar(const Explanation& explanation, LinesState& state) {
    GroupBy shown = state.group_by.value_or(first_grouping(explanation.memory));
    if (choose_one<GroupBy>(
            shown,
            {{"Line", "By the line of the program that asked for it", GroupBy::kLine},
             {"Module", "By the layer that made it", GroupBy::kModule},
             {"Category", "By what it is for", GroupBy::kCategory}},
            px(2))) {
        state.group_by = shown;
    }
    ImGui::SameLine(0, px(12));
    const std::string moment =
        fmt::format("{} {}", profiler::format_bytes(explanation.memory.allocated_bytes),
                    explanation.failure ? "where memory ran out" : "at the peak");
    dim_text(fit_to(moment, ImGui::GetContentRegionAvail().x));
    return shown;
}

/// The share of the longest row, as a bar in the rest of the row.
void draw_bar(double share) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    const float width = ImGui::GetContentRegionAvail().x * static_cast<float>(share);
    ImGui::GetWindowDrawList()->AddRectFilled(
        {corner.x, corner.y + px(2)},
        {corner.x + std::max(width, px(1)), corner.y + height - px(1)},
        with_alpha(palette().accent, 0.65F), px(2));
    ImGui::Dummy({0, height});
}

/// A click on a line shows its memory in the flame graph.
void select_line(const PanelContext& context, const Share& share, PanelEvents& events) {
    FlameQuery query = context.views.queries.flame;
    const std::string line = share.place();
    query.by_stack = true;
    query.search = query.search == line ? std::string() : line;
    events.window.flame = query;
}

double share_of(int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// What all rows are measured by.
struct Scale {
    int64_t whole_bytes = 0;
    int64_t largest_bytes = 0;  // of a row
};

void draw_row(const PanelContext& context, const Share& share, const Scale& scale, GroupBy by,
              PanelEvents& events) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    const bool is_picked =
        by == GroupBy::kLine && context.views.queries.flame.search == share.place();
    const bool clicked = ImGui::Selectable("##row", is_picked, ImGuiSelectableFlags_SpanAllColumns);
    if (clicked && by == GroupBy::kLine) select_line(context, share, events);
    ImGui::SetCursorPos(start);
    text(fit_to(share.name, ImGui::GetContentRegionAvail().x));
    if (by == GroupBy::kLine) {
        ImGui::TableNextColumn();
        const ScopedFont mono(fonts().mono);
        text(fit_to(share.code, ImGui::GetContentRegionAvail().x));
    }
    ImGui::TableNextColumn();
    right_text(profiler::format_bytes(share.size_bytes));
    ImGui::TableNextColumn();
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    right_text(profiler::format_percent(share_of(share.size_bytes, scale.whole_bytes)));
    ImGui::TableNextColumn();
    draw_bar(share_of(share.size_bytes, scale.largest_bytes));
}

void draw_table(const PanelContext& context, const Explanation& explanation, GroupBy by,
                PanelEvents& events) {
    const std::vector<Share>& shares = shares_of(explanation.memory, by);
    const bool has_code = by == GroupBy::kLine;
    const ImGuiTableFlags flags =
        ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp;
    const char* const id = has_code ? "##lines" : "##groups";
    if (!ImGui::BeginTable(id, has_code ? 5 : 4, flags)) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(has_code                 ? "Line"
                            : by == GroupBy::kModule ? "Module"
                                                     : "Category",
                            ImGuiTableColumnFlags_WidthStretch, 2.2F);
    if (has_code) ImGui::TableSetupColumn("Code", ImGuiTableColumnFlags_WidthStretch, 4);
    ImGui::TableSetupColumn("Memory", ImGuiTableColumnFlags_WidthFixed, em(5.5F));
    ImGui::TableSetupColumn("Share", ImGuiTableColumnFlags_WidthFixed, em(4));
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, 1.8F);
    ImGui::TableHeadersRow();
    const auto largest = std::ranges::max_element(shares, {}, &Share::size_bytes);
    const Scale scale{explanation.memory.allocated_bytes,
                      largest == shares.end() ? 0 : largest->size_bytes};
    draw_visible_rows(shares.size(), [&](size_t i) {
        const ScopedId row(static_cast<int>(i));
        draw_row(context, shares[i], scale, by, events);
    });
    ImGui::EndTable();
}

}  // namespace

PanelEvents draw_lines_panel(const PanelContext& context, LinesState& state) {
    PanelEvents events;
    const auto& slot = context.workspace.slots().advice;
    const auto view = slot.shared();
    if (!view) {
        draw_unfilled({.icon = ICON_LIST,
                       .purpose = "What fills the memory at the peak is listed here, by line of "
                                  "code.",
                       .error_title = "The step could not be explained",
                       .working = "Adding up the peak ..."},
                      context.workspace.selection(), slot.error());
        return events;
    }
    const GroupBy shown = draw_toolbar(view->explanation, state);
    draw_table(context, view->explanation, shown, events);
    return events;
}

}  // namespace app
