#include "app/panels/programs/compare_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/panels/parts/panel_notes.h"
#include "app/panels/programs/compare_charts.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace app {
namespace {

using profiler::CompareView;
using profiler::TextTable;

/// The GPU for which the recipes are planned.
void draw_gpu_choice(const Workspace& workspace, PanelEvents& events) {
    ImGui::SetNextItemWidth(em(13));
    if (const auto* gpu = gpu_list("##gpu", workspace.gpus(), workspace.queries().plan.gpu)) {
        events.queries.plan = GpuForm{gpu->id, /*is_chosen=*/true};
    }
}

/// Recipes of which nothing was measured: puts them into the Capture form.
void draw_measure_button(const Workspace& workspace, PanelEvents& events) {
    const auto result = workspace.comparison();
    const DocumentPtr& a = workspace.selection().a;
    if (!a || !a->step) return;
    PlannerForm form{.workload = *a->step, .recipes = {}, .is_chosen = true};
    for (const profiler::ComparisonColumn& column : result->comparison.columns) {
        const bool is_measured = column.source != profiler::Source::kPredicted;
        if (!is_measured) form.recipes.push_back(column.recipe_of_trace);
    }
    if (form.recipes.empty()) return;
    ImGui::SameLine(0, px(8));
    if (ImGui::Button(ICON_RECORD "  Measure###measure")) events.capture.fill = std::move(form);
    ImGui::SetItemTooltip("Put the recipes that are only predicted into the Capture form.");
}

/// What ran where, and the GPU that is planned for.
void draw_origin(const Workspace& workspace, const CompareView& view, PanelEvents& events) {
    ImGui::AlignTextToFramePadding();
    const char* between = view.workload.empty() || view.source.empty() ? "" : "  ·  ";
    note_text(view.workload + between + view.source);
    constexpr float kChoices_em = 26;  // the GPU, the button and what is before them
    ImGui::SameLine(0, px(6));
    if (ImGui::GetContentRegionAvail().x < em(kChoices_em)) {
        ImGui::NewLine();
        ImGui::AlignTextToFramePadding();
        dim_text("planned for");
    } else {
        dim_text("·  planned for");
    }
    ImGui::SameLine(0, px(6));
    draw_gpu_choice(workspace, events);
    draw_measure_button(workspace, events);
    const auto& plan = workspace.slots().planned_compare;
    if (plan.view()) return;
    ImGui::SameLine(0, px(8));
    if (!plan.is_cancelled()) return dim_text("planning ...");
    events.recipes.plan_again = ImGui::SmallButton("Plan###plan_again");
}

/// What the panel draws in a frame.
struct Frame {
    const Workspace& workspace;
    const CompareView& view;
    const profiler::PairView* pair;  // to draw in place of the recipes' peaks; null: draw these
    PanelEvents& events;
};

/// Buttons: memory of all recipes (null), or of A and B.
const profiler::PairView* choose_memory(const Workspace& workspace, CompareState& state) {
    const profiler::PairView* pair = workspace.slots().pair.view();
    if (!pair || pair->moments.empty()) return nullptr;
    choose_one<bool>(
        state.shows_pair,
        {{"Recipes", "Memory of every recipe at its own peak", false},
         {"A and B",
          "Memory of A and B at their peaks, at A's peak, at the end of forward, and what is kept",
          true}},
        px(2));
    ImGui::SameLine(0, px(14));
    return state.shows_pair ? pair : nullptr;
}

void draw_category_legend(const CompareView& view, const Selection& selection,
                          PanelEvents& events) {
    ImGui::AlignTextToFramePadding();
    const auto clicked =
        category_legend(view.categories, selection.category, ImGui::GetContentRegionAvail().x);
    draw_inferred_mark(selection);
    if (clicked) events.selection.category = clicked;
}

/// Number of charts side by side: three in a wide panel, one in a narrow one.
size_t charts_per_row() {
    const float width = ImGui::GetContentRegionAvail().x;
    return width > em(46) ? 3 : width > em(28) ? 2 : 1;
}

/// One row of `count` charts, beginning with chart `first`.
void draw_chart_row(const Frame& frame, size_t first, size_t count, float height) {
    const auto& [workspace, view, pair, events] = frame;
    const Selection& selection = workspace.selection();
    // Stacked bars and curves need more width than plain bars.
    constexpr std::array<float, 3> kShares{0.40F, 0.26F, 0.34F};
    const float gap = px(18);
    const float width =
        ImGui::GetContentRegionAvail().x - gap * static_cast<float>(count - 1) - px(1);
    float whole = 0;
    for (size_t i = first; i < first + count; ++i) whole += kShares[i];
    for (size_t i = first; i < first + count; ++i) {
        if (i > first) ImGui::SameLine(0, gap);
        const ImVec2 size{std::floor(width * kShares[i] / whole), height};
        if (i == 0 && pair) draw_pair_chart(*pair, selection, size, events);
        if (i == 0 && !pair) draw_memory_chart(view, selection, size, events);
        if (i == 1) draw_max_batch_chart(view, size, events);
        if (i == 2) draw_throughput_chart(view, size, /*with_names=*/true);
    }
}

/// Many recipes: rows with their names, and throughput beside them in a wide panel. The markers of
/// the rows name the curves.
void draw_many(const Frame& frame, float height, bool beside) {
    const auto& [workspace, view, pair, events] = frame;
    const Selection& selection = workspace.selection();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float gap = px(18);
    const float curves = beside ? std::floor((room.x - gap) * 0.32F) : 0;
    const float rows = beside ? room.x - gap - curves - px(1) : room.x - px(1);
    if (pair) {
        draw_pair_chart(*pair, selection, {rows, height}, events);
    } else {
        draw_compare_rows(view, selection, {rows, height}, events);
    }
    if (!beside) return;
    ImGui::SameLine(0, gap);
    draw_throughput_chart(view, {curves, height}, /*with_names=*/false);
}

/// A value and its change from the baseline, if the table has one; they share a cell on the screen.
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

/// A right click chooses the columns that are shown.
void draw_header_cell(const TextTable::Column& column, bool has_change) {
    const std::string label =
        column.explanation.empty() ? column.title : column.title + " " ICON_CIRCLE_QUESTION;
    const ImVec2 corner = ImGui::GetCursorPos();
    ImGui::TableHeader(("##" + column.title).c_str());
    if (!column.explanation.empty() && ImGui::BeginItemTooltip()) {
        wrapped_text(column.explanation, em(24));
        ImGui::EndTooltip();
    }
    ImGui::SetCursorPos(corner);
    if (column.align == profiler::Align::kRight) {
        const float room = ImGui::GetContentRegionAvail().x - text_width(label) -
                           (has_change ? change_width() : 0);
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0F, room));
    }
    dim_text(label);
}

/// Values align at their right end; the change follows.
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

/// What stands beside the name of a recipe: "A", "B, predicted"; "predicted, T4" if no file has it
/// and the files are of another GPU. Empty: measured, and not selected.
std::string mark_of_row(const Workspace& workspace, const CompareView& view, size_t row) {
    const profiler::CompareColumn& column = view.columns[row];
    const DocumentPtr document = workspace.document_of_column(row);
    std::string mark = !document                             ? ""
                       : document == workspace.selection().a ? "A"
                       : document == workspace.selection().b ? "B"
                                                             : "";
    if (column.is_predicted && !mark.empty()) mark += ", ";
    if (column.is_predicted) mark += column.is_planned ? view.planned_mark : "predicted";
    return mark;
}

/// The first cell: swatch, name and mark.
void draw_recipe_cell(const Workspace& workspace, const CompareView& view, size_t row) {
    const std::string& name = view.columns[row].recipe;
    recipe_swatch(view.columns[row].color);
    const std::string mark = mark_of_row(workspace, view, row);
    const float letter = !mark.empty() ? px(8) + text_width(mark) : 0;
    std::string shown;
    {
        const ScopedFont bold(fonts().bold);
        shown = fit_to(name, std::max(em(2), ImGui::GetContentRegionAvail().x - letter));
        text(shown);
    }
    if (shown != name && ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        ImGui::SetTooltip("%s", name.c_str());
    }
    if (mark.empty()) return;
    ImGui::SameLine(0, px(8));
    dim_text(mark);
}

void draw_table_row(const Workspace& workspace, const CompareView& view, size_t row,
                    PanelEvents& events) {
    const TextTable& table = view.table;
    const ScopedId id(static_cast<int>(row));
    ImGui::TableNextRow();
    for (const CellPair& pair : pair_cells(table)) {
        if (!ImGui::TableNextColumn()) continue;
        if (pair.value > 0) {
            draw_value_cell(table, row, pair);
            continue;
        }
        const ImVec2 start = ImGui::GetCursorPos();
        const DocumentPtr document = workspace.document_of_column(row);
        const bool chosen = document && document == workspace.selection().b;
        if (ImGui::Selectable("##row", chosen, ImGuiSelectableFlags_SpanAllColumns)) {
            events.traces.column = row;
        }
        ImGui::SetCursorPos(start);
        draw_recipe_cell(workspace, view, row);
    }
}

/// The width that a column needs for its cells and its title.
float column_width(const Workspace& workspace, const CompareView& view, const CellPair& pair) {
    const TextTable& table = view.table;
    const TextTable::Column& column = table.columns[pair.value];
    float width = text_width(column.title);
    if (!column.explanation.empty()) width += text_width(" " ICON_CIRCLE_QUESTION);
    for (const auto& row : table.rows) width = std::max(width, text_width(row[pair.value]));
    if (pair.value == 0) {  // swatch, bold letters, mark
        float mark = 0;
        for (size_t row = 0; row < view.columns.size(); ++row) {
            mark = std::max(mark, text_width(mark_of_row(workspace, view, row)));
        }
        width += em(2.8F) + mark;
    }
    return std::ceil(width + (pair.change ? change_width() : 0));
}

/// Columns share the width of the panel; names get at most a quarter of it and are shortened in the
/// middle. If that is too little, each column gets the width that it needs and the table scrolls
/// sideways. A table of many recipes is at most as high as `height` allows, and scrolls.
struct TableLayout {
    std::vector<CellPair> pairs;
    std::vector<float> widths;
    bool scrolls_x = false;
    bool scrolls_y = false;
    float height = 0;

    bool scrolls() const { return scrolls_x || scrolls_y; }
};

bool is_hidden_at_first(const TextTable::Column& column) {
    return column.title == profiler::kLossTitle;
}

TableLayout lay_out_table(const Workspace& workspace, const CompareView& view) {
    const TextTable& table = view.table;
    const ImGuiStyle& style = ImGui::GetStyle();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    TableLayout layout{.pairs = pair_cells(table)};
    float needed = 0;
    for (const CellPair& pair : layout.pairs) {
        float width = column_width(workspace, view, pair);
        if (pair.value == 0) width = std::min(width, std::max(em(9), room.x / 4));
        layout.widths.push_back(width);
        if (is_hidden_at_first(table.columns[pair.value])) continue;
        needed += width + 2 * style.CellPadding.x;
    }
    layout.scrolls_x = needed > room.x;
    const float row = ImGui::GetTextLineHeight() + 2 * style.CellPadding.y;
    layout.height = row * static_cast<float>(table.rows.size() + 1) +
                    (layout.scrolls_x ? style.ScrollbarSize + px(2) : 0);
    const float most = std::max(std::floor(room.y * 0.42F), 8 * row);
    layout.scrolls_y = table.rows.size() > profiler::kMostComparedColumns && layout.height > most;
    if (layout.scrolls_y) layout.height = most;
    return layout;
}

void draw_table(const Workspace& workspace, const CompareView& view, const TableLayout& layout,
                PanelEvents& events) {
    const TextTable& table = view.table;
    const bool fixed = layout.scrolls_x;
    const ImGuiTableFlags flags =
        ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_Hideable |
        (layout.scrolls_x ? ImGuiTableFlags_ScrollX : 0) |
        (layout.scrolls_y ? ImGuiTableFlags_ScrollY : 0) |
        (fixed ? ImGuiTableFlags_SizingFixedFit : ImGuiTableFlags_SizingStretchProp);
    // ImGui keeps widths by id, so each way of sizing has its own.
    const char* id = fixed              ? "##recipes_scrolling"
                     : layout.scrolls_y ? "##recipes_long"
                                        : "##recipes";
    if (!ImGui::BeginTable(id, static_cast<int>(layout.pairs.size()), flags,
                           {0, layout.scrolls() ? layout.height : 0})) {
        return;
    }
    for (size_t i = 0; i < layout.pairs.size(); ++i) {
        const TextTable::Column& column = table.columns[layout.pairs[i].value];
        ImGuiTableColumnFlags column_flags =
            fixed ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch;
        if (i == 0) column_flags |= ImGuiTableColumnFlags_NoHide;
        if (is_hidden_at_first(column)) column_flags |= ImGuiTableColumnFlags_DefaultHide;
        ImGui::TableSetupColumn(column.title.c_str(), column_flags, layout.widths[i]);
    }
    if (layout.scrolls()) ImGui::TableSetupScrollFreeze(1, 1);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (const CellPair& pair : layout.pairs) {
        if (!ImGui::TableNextColumn()) continue;
        draw_header_cell(table.columns[pair.value], pair.change.has_value());
    }
    for (size_t row = 0; row < table.rows.size(); ++row) {
        draw_table_row(workspace, view, row, events);
    }
    ImGui::EndTable();
}

void draw_notes(const CompareView& view) {
    for (const std::string& note : view.notes) warning_note(palette().warn, note);
}

void draw_filled(const Workspace& workspace, const CompareView& view, CompareState& state,
                 PanelEvents& events) {
    const Selection& selection = workspace.selection();
    draw_origin(workspace, view, events);
    ImGui::Dummy({0, px(1)});
    const Frame frame{workspace, view, choose_memory(workspace, state), events};
    draw_category_legend(view, selection, events);
    ImGui::Dummy({0, px(1)});
    const TableLayout table = lay_out_table(workspace, view);
    // The charts take the room that table and notes leave. If it is too little, the panel scrolls.
    const float notes =
        ImGui::GetTextLineHeightWithSpacing() * static_cast<float>(view.notes.size());
    const float space = std::floor(ImGui::GetContentRegionAvail().y - table.height - notes -
                                   2 * ImGui::GetStyle().ItemSpacing.y);
    if (view.columns.size() > profiler::kMostComparedColumns) {
        const bool beside = charts_per_row() > 1;
        const float height = std::max(space, em(14));
        draw_many(frame, height, beside);
        draw_table(workspace, view, table, events);
        if (!beside) {
            const ImVec2 size{ImGui::GetContentRegionAvail().x - px(1), em(16)};
            draw_throughput_chart(view, size, /*with_names=*/false);
        }
        return draw_notes(view);
    }
    const size_t charts = 3;
    const size_t per_row = std::min(charts, charts_per_row());
    const float height = std::clamp(space, em(12), per_row < charts ? em(16) : 1e6F);
    draw_chart_row(frame, 0, per_row, height);
    draw_table(workspace, view, table, events);
    for (size_t first = per_row; first < charts; first += per_row) {
        draw_chart_row(frame, first, std::min(per_row, charts - first), height);
    }
    draw_notes(view);
}

}  // namespace

PanelEvents draw_compare_panel(const PanelContext& context, CompareState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const auto& slot = workspace.slots().compare;
    const auto result = workspace.comparison();
    if (result && !result->view.columns.empty()) {
        draw_filled(workspace, result->view, state, events);
    } else if (workspace.documents().empty()) {
        empty_state(ICON_CHART_COLUMN, "No trace is open",
                    "Open traces of one step under several recipes to compare them.");
    } else if (!slot.error().empty()) {
        empty_state(ICON_TRIANGLE_EXCLAMATION, "The traces could not be compared", slot.error());
    } else {
        working_line("Comparing ...");
    }
    return events;
}

}  // namespace app
