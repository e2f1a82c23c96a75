#include "app/panels/ranks_table.h"

#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>

namespace app {
namespace {

using profiler::TextTable;

void draw_header(const TextTable& table) {
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (const TextTable::Column& column : table.columns) {
        ImGui::TableNextColumn();
        const bool is_right = column.align == profiler::Align::kRight;
        if (is_right) {
            right_text(column.title);
        } else {
            dim_text(column.title);
        }
        if (!column.explanation.empty()) {
            ImGui::SetItemTooltip("%s", column.explanation.c_str());
        }
    }
}

void draw_cell(const TextTable& table, size_t row, size_t column) {
    const std::string& value = table.rows[row][column];
    if (table.columns[column].align == profiler::Align::kRight) {
        right_text(value);
    } else {
        text(value);
    }
}

}  // namespace

std::optional<size_t> draw_ranks_table(const TextTable& table,
                                       const std::vector<const char*>& marks) {
    std::optional<size_t> clicked;
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH |
                                       ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX |
                                       ImGuiTableFlags_SizingFixedFit;
    const auto count = static_cast<int>(table.columns.size());
    if (!ImGui::BeginTable("##ranks", count, kFlags)) return clicked;
    for (const TextTable::Column& column : table.columns) {
        float width = text_width(column.title);
        const auto index = static_cast<size_t>(&column - table.columns.data());
        for (const auto& row : table.rows) width = std::max(width, text_width(row[index]));
        if (index == 0) width += em(2);
        ImGui::TableSetupColumn(column.title.c_str(), ImGuiTableColumnFlags_WidthFixed,
                                width + px(8));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
    draw_header(table);
    for (size_t row = 0; row < table.rows.size(); ++row) {
        const ScopedId id(static_cast<int>(row));
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        const ImVec2 start = ImGui::GetCursorPos();
        if (ImGui::Selectable("##row", *marks[row] != 0, ImGuiSelectableFlags_SpanAllColumns)) {
            clicked = row;
        }
        ImGui::SetCursorPos(start);
        dim_text(marks[row]);
        ImGui::SameLine(0, 0);
        draw_cell(table, row, 0);
        for (size_t column = 1; column < table.columns.size(); ++column) {
            ImGui::TableNextColumn();
            draw_cell(table, row, column);
        }
    }
    ImGui::EndTable();
    return clicked;
}

}  // namespace app
