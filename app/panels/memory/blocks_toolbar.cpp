#include "app/panels/memory/blocks_toolbar.h"

#include "app/panels/memory/blocks_details.h"
#include "app/panels/memory/blocks_drawing.h"
#include "app/panels/parts/inferred_mark.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>

namespace app {
namespace {

using profiler::BlockColoring;
using profiler::BlockOrder;
using profiler::BlocksView;
using Show = BlocksQuery::Show;

struct Choice {
    const char* label;
    const char* tooltip;
};

/// Buttons in a row; the chosen one is lit. Returns the clicked one, or `chosen`.
template <size_t N>
size_t choose(const std::array<Choice, N>& choices, size_t chosen) {
    size_t clicked = chosen;
    for (size_t i = 0; i < N; ++i) {
        if (i > 0) ImGui::SameLine(0, px(1));
        if (toggle_button(choices[i].label, i == chosen)) clicked = i;
        ImGui::SetItemTooltip("%s", choices[i].tooltip);
    }
    return clicked;
}

void draw_trace_switch(const Selection& selection, BlocksQuery& query) {
    if (!selection.b || !selection.b->has_step) return;
    constexpr std::array<Choice, 3> kChoices{
        {{"A###show_a", "The blocks of A"},
         {"B###show_b", "The blocks of B, on the time axis of A"},
         {"A, not in B###show_difference", "The blocks of A; hollow where B does not hold them"}}};
    query.show = static_cast<Show>(choose(kChoices, static_cast<size_t>(query.show)));
    ImGui::SameLine(0, px(10));
}

void draw_order_switch(BlocksQuery& query) {
    constexpr std::array<Choice, 2> kChoices{
        {{"Stack###stack", "In the order of allocation: a block falls when one below it is freed"},
         {"Addresses###addresses",
          "Where the blocks lie; addresses that are never used are left "
          "out"}}};
    const auto order = static_cast<BlockOrder>(choose(kChoices, static_cast<size_t>(query.order)));
    if (order != query.order) query.low_bytes = query.high_bytes = 0;
    query.order = order;
    ImGui::SameLine(0, px(10));
}

void draw_coloring(const Selection& selection, BlocksQuery& query) {
    constexpr std::array kNames{"Category", "Layer", "Op", "Size"};
    ImGui::SetNextItemWidth(em(8));
    const char* op = selection.a->trace->ops.empty() ? "Line of code" : "Op";
    const auto name = [&](size_t i) { return i == 2 ? op : kNames[i]; };
    const auto coloring = static_cast<size_t>(coloring_of(selection, query));
    if (ImGui::BeginCombo("###color", name(coloring))) {
        for (size_t i = 0; i < kNames.size(); ++i) {
            const bool chosen = i == coloring;
            if (ImGui::Selectable(name(i), chosen)) query.coloring = static_cast<BlockColoring>(i);
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("What the colours mean");
    ImGui::SameLine(0, px(10));
}

}  // namespace

void draw_blocks_toolbar(const PanelContext& context, BlocksState& state, PanelEvents& events) {
    const Selection& selection = context.workspace.selection();
    BlocksQuery& query = wanted_query(context, events);
    draw_trace_switch(selection, query);
    draw_order_switch(query);
    draw_coloring(selection, query);
    const float room = ImGui::GetContentRegionAvail().x;
    const bool with_words = room >= em(20.2F);
    const float buttons = em(with_words ? 20.2F : 12);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, room - buttons));
    if (toggle_button(state.is_playing ? ICON_STOP "###play" : ICON_PLAY "###play",
                      state.is_playing)) {
        state.is_playing ^= true;
    }
    ImGui::SetItemTooltip("Move the moment through the visible part");
    ImGui::SameLine(0, px(4));
    const bool lists = state.show_live && !query.what_if.is_open;
    if (toggle_button(with_words ? ICON_LIST " Live###list" : ICON_LIST "###list", lists)) {
        state.show_live = !lists;
        query.what_if.is_open = false;
    }
    ImGui::SetItemTooltip("List what lives at the moment");
    ImGui::SameLine(0, px(4));
    if (toggle_button(with_words ? ICON_SLIDERS " What if###what_if" : ICON_SLIDERS "###what_if",
                      query.what_if.is_open)) {
        query.what_if.is_open ^= true;
        query.what_if.shows_map = false;
    }
    ImGui::SetItemTooltip("What other settings of the allocator would do");
    ImGui::SameLine(0, px(4));
    switch_button({with_words ? ICON_MEMORY " Segments###segments" : ICON_MEMORY "###segments",
                   "Show the allocator's segments at the moment", state.has_room_for_segments},
                  state.show_segments);
    ImGui::SameLine(0, px(4));
    if (ImGui::Button(ICON_EXPAND "###fit")) {
        events.time.fit = true;
        query.low_bytes = query.high_bytes = 0;
    }
    ImGui::SetItemTooltip("Show the whole capture (F)");
}

void draw_blocks_legend(const PanelContext& context, const BlocksView& view, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const Selection& selection = workspace.selection();
    const ScopedFont font(fonts().text, kSmallSize);
    const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    const std::string& merged = view.merged_text;
    std::string note = merged;
    if (view.difference) note = "hollow or pale: not in B at that time   " + note;
    const float note_width = std::min(text_width(note), width * 0.6F);
    if (coloring_of(selection, context.views.queries.blocks) == BlockColoring::kCategory) {
        std::vector<profiler::Category> categories;
        for (const profiler::Category category : profiler::kCategoryStackOrder) {
            const auto index = static_cast<uint8_t>(category);
            const auto& used = view.used_groups;
            if (std::find(used.begin(), used.end(), index) != used.end()) {
                categories.push_back(category);
            }
        }
        const auto clicked = category_legend(categories, selection.category, 1e6F);
        draw_inferred_mark(selection);
        if (clicked) events.selection.category = clicked;
        ImGui::SameLine(0, px(12));
    } else {
        draw_group_legend(view, width - note_width - px(16));
    }
    const float room = left + width - ImGui::GetCursorPosX();
    note = fit_to(note, room);
    ImGui::SetCursorPosX(left + width - text_width(note));
    dim_text(note);
}

}  // namespace app
