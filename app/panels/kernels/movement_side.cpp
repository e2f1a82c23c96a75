#include "app/panels/kernels/movement_side.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/marks.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using profiler::MovementClassRow;
using profiler::MovementColumn;
using profiler::MovementTrace;
using profiler::MovementView;
using profiler::MovementViewRow;

// ---- class shares ---------------------------------------------------------------------------

struct Share {
    profiler::OpClass op_class = profiler::OpClass::kOther;
    double share = 0;
};

/// One bar with a label before it.
void draw_share_bar(const std::string& label, const std::vector<Share>& shares, int decimals) {
    const float label_width = em(7.4F);
    const float height = ImGui::GetTextLineHeight() + px(3);
    const ImVec2 start = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float text_y = std::round(start.y + (height - ImGui::GetTextLineHeight()) / 2);
    draw->AddText({start.x, text_y}, palette().dim, fit_to(label, label_width - px(6)).c_str());
    const float left = start.x + label_width, span = std::max(px(20), width - label_width);
    float x = left;
    for (const Share& one : shares) {
        const float end = x + span * static_cast<float>(std::clamp(one.share, 0.0, 1.0));
        const ImU32 fill = activity_color(profiler::activity_class_of(one.op_class));
        draw->AddRectFilled({x, start.y}, {std::max(end - px(1), x + px(0.5F)), start.y + height},
                            fill);
        const std::string text = fmt::format("{:.{}f} %", 100 * one.share, decimals);
        if (text_width(text) + px(8) < end - x) {
            draw->AddText({x + px(4), text_y}, ink_on(fill), text.c_str());
        }
        x = end;
    }
    ImGui::Dummy({width, height + px(2)});
    if (!ImGui::IsItemHovered() || !ImGui::BeginTooltip()) return;
    for (const Share& one : shares) {
        swatch(activity_color(profiler::activity_class_of(one.op_class)));
        text(fmt::format("{:.2f} %  {}", 100 * one.share,
                         profiler::label_of(profiler::activity_class_of(one.op_class))));
    }
    ImGui::EndTooltip();
}

template <typename Of>
std::vector<Share> shares_of(const std::vector<MovementClassRow>& classes, const Of& of) {
    std::vector<Share> shares;
    for (const MovementClassRow& row : classes) {
        const std::optional<double> share = of(row);
        if (share) shares.push_back({row.op_class, *share});
    }
    return shares;
}

// ---- table ----------------------------------------------------------------------------------

struct ColumnSetup {
    MovementColumn column;
    float width_em;  // 0 = takes what is left
    bool shown = true;
};
constexpr std::array<ColumnSetup, profiler::kNumMovementColumns> kMovementColumns{{
    {MovementColumn::kOp, 8},
    {MovementColumn::kModule, 6},
    {MovementColumn::kTime, 3.8F},
    {MovementColumn::kTimeShare, 3.6F, false},
    {MovementColumn::kPeak, 4},
    {MovementColumn::kMue, 3.4F},
    {MovementColumn::kFlopPerByte, 4.2F},
    {MovementColumn::kFlop, 4},
    {MovementColumn::kRead, 4.6F},
    {MovementColumn::kWritten, 4.9F},
    {MovementColumn::kLeastTime, 4.6F, false},
    {MovementColumn::kBandwidth, 3.6F, false},
    {MovementColumn::kCalls, 3, false},
    {MovementColumn::kPhase, 4.8F, false},
    {MovementColumn::kClass, 6, false},
}};

bool is_text(MovementColumn column) {
    return profiler::table_column(column).unit == profiler::Unit::kText;
}

bool has_value(const MovementTrace& trace, MovementColumn column) {
    return std::any_of(trace.rows.begin(), trace.rows.end(), [&](const MovementViewRow& row) {
        const std::string& cell = row.cells[static_cast<size_t>(column)];
        return !cell.empty() && cell != "–";
    });
}

/// Logical ops have no times: their limits take the place.
bool is_shown(const MovementView& view, const ColumnSetup& setup) {
    if (setup.column == MovementColumn::kLeastTime) return !view.has_times;
    return setup.shown;
}

void set_up_movement_columns(const MovementView& view, const MovementTrace& trace) {
    for (const ColumnSetup& setup : kMovementColumns) {
        ImGuiTableColumnFlags flags = setup.width_em > 0 ? ImGuiTableColumnFlags_WidthFixed
                                                         : ImGuiTableColumnFlags_WidthStretch;
        if (!is_shown(view, setup)) flags |= ImGuiTableColumnFlags_DefaultHide;
        const bool is_default =
            setup.column == (view.has_times ? MovementColumn::kTime : MovementColumn::kLeastTime);
        if (is_default) flags |= ImGuiTableColumnFlags_DefaultSort;
        if (!is_text(setup.column)) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        if (setup.column == MovementColumn::kOp) flags |= ImGuiTableColumnFlags_NoHide;
        if (!is_text(setup.column) && !has_value(trace, setup.column)) {
            flags |= ImGuiTableColumnFlags_Disabled;
        }
        ImGui::TableSetupColumn(profiler::table_column(setup.column).title.c_str(), flags,
                                em(setup.width_em), static_cast<ImGuiID>(setup.column));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
}

void draw_movement_headers() {
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (int i = 0; i < ImGui::TableGetColumnCount(); ++i) {
        if (!ImGui::TableSetColumnIndex(i)) continue;
        const auto& column =
            profiler::table_column(kMovementColumns[static_cast<size_t>(i)].column);
        const ScopedId id(i);
        ImGui::TableHeader(column.title.c_str());
        if (!column.explanation.empty()) ImGui::SetItemTooltip("%s", column.explanation.c_str());
    }
}

void read_movement_order(const MovementSideLook& look, MovementSideInput& input) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (!specs || specs->SpecsCount == 0) return;
    // The other table has an order of its own.
    if (!specs->SpecsDirty && !look.is_other_table) return;
    specs->SpecsDirty = false;
    MovementQuery query = look.query;
    query.sort_by = static_cast<MovementColumn>(specs->Specs[0].ColumnUserID);
    query.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    if (query != look.query) input.query = query;
}

void draw_cell(const MovementViewRow& row, MovementColumn column) {
    const std::string& cell = row.cells[static_cast<size_t>(column)];
    const bool is_strong = (column == MovementColumn::kPeak && row.is_peak_larger) ||
                           (column == MovementColumn::kMue && row.is_mue_larger);
    const bool is_weak = (column == MovementColumn::kPeak && row.is_mue_larger) ||
                         (column == MovementColumn::kMue && row.is_peak_larger);
    if (column == MovementColumn::kModule) {
        dim_text(fit_path_to(cell, ImGui::GetContentRegionAvail().x));
    } else if (is_text(column)) {
        text(fit_to(cell, ImGui::GetContentRegionAvail().x));
    } else {
        const ScopedFont font(is_strong ? fonts().bold : fonts().text, kSmallSize);
        const ScopedColor ink(ImGuiCol_Text, is_weak ? palette().dim : palette().text);
        right_text(cell);
    }
}

void draw_op_cell(const MovementViewRow& row) {
    const float height = ImGui::GetTextLineHeight();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const auto of =
        profiler::activity_class_of(row.row.op_class.value_or(profiler::OpClass::kOther));
    draw_phase_shape(ImGui::GetWindowDrawList(),
                     row.row.phase.value_or(profiler::PhaseKind::kForward),
                     {at.x + px(5), at.y + height / 2}, px(4.2F), activity_color(of));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + px(15));
    // The namespace says little here; the tooltip has the whole name.
    const size_t colon = row.name.rfind("::");
    const std::string name = colon == std::string::npos ? row.name : row.name.substr(colon + 2);
    text(fit_to(name, ImGui::GetContentRegionAvail().x));
}

bool draw_movement_row(const MovementView& view, const MovementSideLook& look, size_t index) {
    const MovementViewRow& row = view.traces[look.table_of].rows[index];
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked =
        ImGui::Selectable("##row", look.selected == index, ImGuiSelectableFlags_SpanAllColumns);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_movement_tooltip(view, row, look.table_of, look.selection);
    }
    ImGui::SetCursorPos(start);
    draw_op_cell(row);
    for (size_t i = 1; i < kMovementColumns.size(); ++i) {
        if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
        draw_cell(row, kMovementColumns[i].column);
    }
    return clicked;
}

/// The rows that the table lists: all, or those of the rectangle.
std::vector<size_t> rows_in(const MovementTrace& trace, const std::optional<MovementBox>& box) {
    std::vector<size_t> rows;
    if (!box) {
        for (size_t i = 0; i < trace.rows.size(); ++i) rows.push_back(i);
        return rows;
    }
    for (const profiler::MovementDot& dot : trace.dots) {
        if (box->contains(dot)) rows.push_back(dot.row);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
}

void draw_table_choice(const MovementView& view, const MovementSideLook& look,
                       MovementSideInput& input) {
    if (view.traces.size() < 2) return;
    for (size_t t = 0; t < 2; ++t) {
        const DocumentLabel& of = t == 0 ? look.selection.look_a : look.selection.look_b;
        const std::string label =
            fmt::format("{}  {}###table_{}", t == 0 ? "A" : "B", fit_to(of.name, em(9)), t);
        if (toggle_button(label.c_str(), look.table_of == t)) input.table_of = t;
        ImGui::SameLine(0, px(3));
    }
    ImGui::SameLine(0, px(8));
}

/// What the rectangle holds, with a button that removes it; else the sums.
void draw_table_summary(const MovementTrace& trace, const MovementSideLook& look,
                        const std::vector<size_t>& rows, MovementSideInput& input) {
    if (!look.box) {
        dim_text(fit_to(trace.total, ImGui::GetContentRegionAvail().x));
        ImGui::SetItemTooltip("%s", trace.total.c_str());
        return;
    }
    double share = 0;
    for (const size_t row : rows) share += trace.rows[row].time_share;
    std::string label = fmt::format(ICON_XMARK "  {} ops", rows.size());
    if (share > 0) label += fmt::format(", {} of the time", profiler::format_percent(share));
    if (ImGui::SmallButton((label + "###forget_box").c_str())) input.forget_box = true;
    ImGui::SetItemTooltip("List all ops");
}

}  // namespace

void draw_class_shares(const MovementView& view, const Selection& selection) {
    const ScopedFont small(fonts().text, kSmallSize);
    const auto time = [](const MovementClassRow& row) { return row.time_share; };
    for (size_t t = 0; t < view.traces.size(); ++t) {
        const auto shares = shares_of(view.traces[t].classes, time);
        if (shares.empty()) continue;
        const DocumentLabel& look = t == 0 ? selection.look_a : selection.look_b;
        draw_share_bar(fmt::format("Time {}  {}", t == 0 ? "A" : "B", look.name), shares, 1);
    }
    const auto& classes = view.traces.front().classes;
    const auto paper =
        shares_of(classes, [](const MovementClassRow& row) { return row.ivanov_time_share; });
    if (view.has_times && !paper.empty()) draw_share_bar("Time, Ivanov", paper, 1);
    const auto flop = [](const MovementClassRow& row) { return std::optional(row.flop_share); };
    if (!view.has_times) draw_share_bar("Flop", shares_of(classes, flop), 2);
    std::string line;
    for (const MovementClassRow& row : classes) {
        if (row.op_class == profiler::OpClass::kOther) continue;
        line += fmt::format("{}{:.2f}", line.empty() ? "" : " / ", 100 * row.flop_share);
    }
    line = "Flop by class: " + line + " %";
    if (!paper.empty()) line += "; Ivanov 99.80 / 0.17 / 0.03 %";
    dim_text(fit_to(line, ImGui::GetContentRegionAvail().x - em(2)));
    ImGui::SameLine(0, px(6));
    help_marker(
        "Contractions, normalizations (reductions) and element-wise passes. Ivanov et al., \"Data "
        "Movement Is All You Need\" (arXiv 2007.00072), Table 1: a layer of BERT-large in PyTorch "
        "on a V100. The paper counts bias gradients as reductions; of ops that ran, their sums are "
        "element-wise here.");
}

MovementSideInput draw_movement_table(const MovementView& view, const MovementSideLook& look) {
    MovementSideInput input;
    const MovementTrace& trace = view.traces[look.table_of];
    const std::vector<size_t> rows = rows_in(trace, look.box);
    draw_table_choice(view, look, input);
    draw_table_summary(trace, look, rows, input);
    const ScopedFont small(fonts().text, kSmallSize);
    const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                  ImGuiTableFlags_ScrollX | ImGuiTableFlags_Resizable |
                                  ImGuiTableFlags_Hideable | ImGuiTableFlags_Sortable |
                                  ImGuiTableFlags_NoSavedSettings;
    // With and without times other columns have values.
    const char* const name = view.has_times ? "##ops_that_ran" : "##logical_ops";
    if (!ImGui::BeginTable(name, static_cast<int>(kMovementColumns.size()), flags)) {
        return input;
    }
    set_up_movement_columns(view, trace);
    draw_movement_headers();
    read_movement_order(look, input);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(rows.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const size_t row = rows[static_cast<size_t>(i)];
            if (draw_movement_row(view, look, row)) input.clicked = row;
        }
    }
    ImGui::EndTable();
    return input;
}

void draw_movement_tooltip(const MovementView& view, const MovementViewRow& row, size_t trace,
                           const Selection& selection) {
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(26));
    if (view.traces.size() > 1) {
        const DocumentLabel& look = trace == 0 ? selection.look_a : selection.look_b;
        letter_badge(trace == 0 ? "A" : "B", recipe_color(look.color));
        ImGui::SameLine(0, px(6));
    }
    bold_text(row.name);
    std::vector<std::pair<std::string, std::string>> cells;
    for (size_t i = 1; i < row.cells.size(); ++i) {
        const std::string& cell = row.cells[i];
        if (cell.empty() || cell == "–") continue;
        cells.emplace_back(profiler::movement_columns()[i].title, cell);
    }
    readout_table(cells);
    if (const auto is_memory_bound = row.rates.is_memory_bound()) {
        note_text(*is_memory_bound ? "Memory-bound: its bytes take longer than its arithmetic."
                                   : "Compute-bound: its arithmetic takes longer than its bytes.");
    }
    if (row.row.call.valid()) dim_text("Click to select its longest call.");
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

}  // namespace app
