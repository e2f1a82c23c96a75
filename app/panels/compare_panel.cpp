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

namespace app {
namespace {

using profiler::CompareView;
using profiler::TextTable;

void draw_sentence(const CompareView& view) {
    {
        const ScopedFont bold(fonts().bold, 17);
        ImGui::PushTextWrapPos(0);
        text(view.sentence);
        ImGui::PopTextWrapPos();
    }
    dim_text(view.workload);
    if (view.source.empty()) return;
    ImGui::SameLine(0, px(8));
    dim_text("·");
    ImGui::SameLine(0, px(8));
    dim_text(view.source);
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

void draw_header_cell(const TextTable::Column& column) {
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    const bool explained = !column.explanation.empty();
    const std::string label = explained ? column.title + " " ICON_CIRCLE_QUESTION : column.title;
    column.align == profiler::Align::kRight ? right_text(label) : text(label);
    if (!explained || !ImGui::BeginItemTooltip()) return;
    const ScopedColor normal(ImGuiCol_Text, palette().text);
    ImGui::PushTextWrapPos(em(24));
    text(column.explanation);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
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
    for (size_t cell = 0; cell < table.columns.size() && cell < table.rows[row].size(); ++cell) {
        ImGui::TableNextColumn();
        const std::string& content = table.rows[row][cell];
        if (cell == 0) {
            const ImVec2 start = ImGui::GetCursorPos();
            const DocumentPtr document =
                row < input.documents.size() ? input.documents[row] : nullptr;
            const bool chosen = document && document == input.selection->b;
            if (ImGui::Selectable("##row", chosen, ImGuiSelectableFlags_SpanAllColumns)) {
                events.column = row;
            }
            ImGui::SetCursorPos(start);
            draw_recipe_cell(input, row, content);
            continue;
        }
        const profiler::Tone tone = table.tones[row][cell];
        const ScopedColor color(ImGuiCol_Text, tone_color(tone));
        table.columns[cell].align == profiler::Align::kRight ? right_text(content) : text(content);
    }
}

void draw_table(const CompareInput& input, PanelEvents& events) {
    const TextTable& table = input.view->table;
    const ImGuiTableFlags flags =
        ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;
    if (!ImGui::BeginTable("##recipes", static_cast<int>(table.columns.size()), flags)) return;
    for (const TextTable::Column& column : table.columns) {
        ImGui::TableSetupColumn(column.title.c_str());
    }
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (const TextTable::Column& column : table.columns) {
        ImGui::TableNextColumn();
        draw_header_cell(column);
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
