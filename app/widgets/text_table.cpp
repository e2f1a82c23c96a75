#include "app/widgets/text_table.h"

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

/// Returns whether it was clicked.
bool draw_row(const TextTable& table, size_t row, const char* mark) {
    const ScopedId id(static_cast<int>(row));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked =
        ImGui::Selectable("##row", *mark != 0, ImGuiSelectableFlags_SpanAllColumns);
    ImGui::SetCursorPos(start);
    dim_text(mark);
    ImGui::SameLine(0, 0);
    draw_cell(table, row, 0);
    for (size_t column = 1; column < table.columns.size(); ++column) {
        ImGui::TableNextColumn();
        draw_cell(table, row, column);
    }
    return clicked;
}

/// That its title needs and its first rows; the others are alike.
float width_of(const TextTable& table, size_t column) {
    float width = text_width(table.columns[column].title);
    for (size_t row = 0; row < std::min<size_t>(table.rows.size(), 64); ++row) {
        width = std::max(width, text_width(table.rows[row][column]));
    }
    return width + px(8) + (column == 0 ? em(2) : 0);  // with room for A or B
}

}  // namespace

std::optional<size_t> draw_text_table(const TextTable& table,
                                      const std::vector<const char*>& marks) {
    std::optional<size_t> clicked;
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH |
                                       ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX |
                                       ImGuiTableFlags_SizingFixedFit;
    const auto count = static_cast<int>(table.columns.size());
    if (!ImGui::BeginTable("##ranks", count, kFlags)) return clicked;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        ImGui::TableSetupColumn(table.columns[i].title.c_str(), ImGuiTableColumnFlags_WidthFixed,
                                width_of(table, i));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
    draw_header(table);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(table.rows.size()));
    while (clipper.Step()) {
        for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
            const auto index = static_cast<size_t>(row);
            if (draw_row(table, index, marks[index])) clicked = index;
        }
    }
    ImGui::EndTable();
    return clicked;
}

}  // namespace app
