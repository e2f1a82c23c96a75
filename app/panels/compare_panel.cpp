#include "app/panels/compare_panel.h"

#include "app/panels/compare_charts.h"
#include "app/widgets/loading.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/welcome.h"
#include "app/window/fonts.h"
#include "app/window/icons.h"
#include "app/window/theme.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::CompareView;
using profiler::TextTable;

void draw_sentence(const CompareView& view) {
    if (!view.sentence.empty()) {
        const ScopedFont bold(fonts().bold, 17);
        ImGui::PushTextWrapPos(0);
        text(view.sentence);
        ImGui::PopTextWrapPos();
    }
    const char* between = view.workload.empty() || view.source.empty() ? "" : "  ·  ";
    dim_text(view.workload + between + view.source);
}

void draw_role_legend(const CompareView& view, const Selection& selection, PanelEvents& events) {
    for (size_t i = 0; i < view.roles.size(); ++i) {
        const profiler::Role role = view.roles[i];
        if (i > 0) ImGui::SameLine(0, px(14));
        if (role_legend_item(role, selection.role && *selection.role != role)) events.role = role;
    }
}

void draw_charts(const CompareView& view, const Selection& selection, float height,
                 PanelEvents& events) {
    const float gap = px(18);
    const float width = ImGui::GetContentRegionAvail().x - 2 * gap;
    const float memory = std::floor(width * 0.40F), batch = std::floor(width * 0.26F);
    draw_memory_chart(view, selection, {memory, height}, events);
    ImGui::SameLine(0, gap);
    draw_max_batch_chart(view, {batch, height}, events);
    ImGui::SameLine(0, gap);
    draw_throughput_chart(view, {width - memory - batch, height});
}

/// A value and, where the table has one, its change against the baseline: one cell on the screen.
struct CellPair {
    size_t value = 0;
    std::optional<size_t> change;
};

std::vector<CellPair> pair_cells(const TextTable& table) {
    std::vector<CellPair> pairs;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].title == "Change" && !pairs.empty()) {
            pairs.back().change = i;
        } else {
            pairs.push_back({i, std::nullopt});
        }
    }
    return pairs;
}

/// Room for "-100.0 %" right of a value.
float change_width() { return em(4.3F); }

void draw_header_cell(const TextTable::Column& column, bool has_change) {
    const std::string label =
        column.explanation.empty() ? column.title : column.title + " " ICON_CIRCLE_QUESTION;
    if (column.align == profiler::Align::kRight) {
        const float room = ImGui::GetContentRegionAvail().x - text_width(label) -
                           (has_change ? change_width() : 0);
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, room));
    }
    dim_text(label);
    if (column.explanation.empty() || !ImGui::BeginItemTooltip()) return;
    ImGui::PushTextWrapPos(em(24));
    text(column.explanation);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

/// The value ends where the values above it do; the change follows it.
void draw_value_cell(const TextTable& table, size_t row, const CellPair& pair) {
    const std::string& value = table.rows[row][pair.value];
    if (table.columns[pair.value].align == profiler::Align::kLeft) return text(value);
    const float start = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    const float value_end = start + width - (pair.change ? change_width() : 0);
    ImGui::SetCursorPosX(std::max(start, value_end - text_width(value)));
    text(value);
    if (!pair.change || table.rows[row][*pair.change] == "–") return;
    const std::string& change = table.rows[row][*pair.change];
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(start + width - text_width(change));
    colored_text(tone_color(table.tones[row][*pair.change]), change);
}

/// The first cell: swatch, name, and A or B where the recipe is selected.
void draw_recipe_cell(const CompareInput& input, size_t row, const std::string& name) {
    swatch(recipe_color(row));
    bold_text(name);
    const DocumentPtr document = row < input.documents.size() ? input.documents[row] : nullptr;
    if (!document) return;
    const bool a = document == input.selection->a, b = document == input.selection->b;
    if (!a && !b) return;
    ImGui::SameLine(0, px(8));
    dim_text(a ? "A" : "B");
}

void draw_table_row(const CompareInput& input, size_t row, PanelEvents& events) {
    const TextTable& table = input.view->table;
    const ScopedId id(static_cast<int>(row));
    ImGui::TableNextRow();
    for (const CellPair& pair : pair_cells(table)) {
        ImGui::TableNextColumn();
        if (pair.value > 0) {
            draw_value_cell(table, row, pair);
            continue;
        }
        const ImVec2 start = ImGui::GetCursorPos();
        const DocumentPtr document = row < input.documents.size() ? input.documents[row] : nullptr;
        const bool chosen = document && document == input.selection->b;
        if (ImGui::Selectable("##row", chosen, ImGuiSelectableFlags_SpanAllColumns)) {
            events.column = row;
        }
        ImGui::SetCursorPos(start);
        draw_recipe_cell(input, row, table.rows[row][pair.value]);
    }
}

void draw_table(const CompareInput& input, PanelEvents& events) {
    const TextTable& table = input.view->table;
    const std::vector<CellPair> pairs = pair_cells(table);
    const ImGuiTableFlags flags =
        ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchSame;
    if (!ImGui::BeginTable("##recipes", static_cast<int>(pairs.size()), flags)) return;
    for (const CellPair& pair : pairs) {
        const float weight = pair.value == 0 ? 1.5F : pair.change ? 1.25F : 0.75F;
        ImGui::TableSetupColumn(table.columns[pair.value].title.c_str(),
                                ImGuiTableColumnFlags_WidthStretch, weight);
    }
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (const CellPair& pair : pairs) {
        ImGui::TableNextColumn();
        draw_header_cell(table.columns[pair.value], pair.change.has_value());
    }
    for (size_t row = 0; row < table.rows.size(); ++row) draw_table_row(input, row, events);
    ImGui::EndTable();
}

float table_height(const CompareView& view) {
    const float row = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    return row * static_cast<float>(view.table.rows.size() + 1);
}

void draw_notes(const CompareView& view) {
    for (const std::string& note : view.notes) {
        colored_text(palette().warn, ICON_TRIANGLE_EXCLAMATION);
        ImGui::SameLine(0, px(6));
        note_text(note);
    }
}

void draw_filled(const CompareInput& input, PanelEvents& events) {
    const CompareView& view = *input.view;
    draw_sentence(view);
    ImGui::Dummy({0, px(1)});
    draw_role_legend(view, *input.selection, events);
    ImGui::Dummy({0, px(1)});
    // The charts take what the table leaves; with little room the panel scrolls.
    const float space =
        ImGui::GetContentRegionAvail().y - table_height(view) - 2 * ImGui::GetStyle().ItemSpacing.y;
    draw_charts(view, *input.selection, std::max(em(12), std::floor(space)), events);
    draw_table(input, events);
    draw_notes(view);
}

void draw_reading(const DocumentLoader::Progress& progress, PanelEvents& events) {
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float width = std::min(space.x, em(26));
    ImGui::SetCursorPos(ImGui::GetCursorPos() +
                        ImVec2((space.x - width) / 2, std::max(0.0F, space.y / 2 - em(2))));
    const ScopedChild card("##reading", {width, em(4)});
    events.cancel_loading = draw_loading(progress);
}

}  // namespace

PanelEvents draw_compare_panel(const CompareInput& input, CompareState&) {
    PanelEvents events;
    if (input.view && !input.view->columns.empty()) {
        draw_filled(input, events);
    } else if (input.loading) {
        draw_reading(*input.loading, events);
    } else if (!input.documents_open) {
        const WelcomeEvents welcome = draw_welcome(*input.recent_files);
        events.ask_for_files = welcome.open_files;
        events.show_capture = welcome.capture;
        if (welcome.recent) events.open.push_back(*welcome.recent);
    } else {
        working_line("Comparing ...");
    }
    return events;
}

}  // namespace app
