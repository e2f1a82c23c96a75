#include "app/panels/kernels/movement_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/imgui_canvas.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/planner/data/gpu.h"
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
using profiler::MovementOps;
using profiler::MovementScope;
using profiler::MovementTrace;
using profiler::MovementView;
using profiler::MovementViewRow;

constexpr UnfilledTexts kMovementTexts{
    .icon = ICON_BOLT,
    .purpose = "Here you see which ops of trace A wait for memory and which for arithmetic.",
    .error_title = "The data movement could not be added up",
    .working = "Adding up the data movement ..."};

constexpr float kSideShare = 0.44F;
constexpr float kLeastSide_em = 27;
constexpr float kLeastPlot_em = 24;

/// One frame's drawing: what the helpers below share.
struct MovementFrame {
    const PanelContext& context;
    const Selection& selection;
    MovementState& state;
    MovementQuery query;  // changed by the controls
    PanelEvents& events;
};

// ---- toolbar --------------------------------------------------------------------------------

void draw_ops_choice(MovementFrame& frame) {
    MovementOps& ops = frame.query.ops;
    choose_one<MovementOps>(
        ops,
        {{"Ops that ran###ops_run", "Each op that ran, with its time", MovementOps::kRun},
         {"Logical ops###ops_logical",
          "As papers count: bias, dropout and residual are passes of their own, and nothing is "
          "recomputed. Each is at the limit of the GPU",
          MovementOps::kLogical}},
        px(3));
    ImGui::SameLine(0, px(10));
    const ScopedDisabled layers_only(ops == MovementOps::kLogical);
    bool is_all = frame.query.scope == MovementScope::kAll && ops == MovementOps::kRun;
    if (check_box("Whole step", &is_all)) {
        frame.query.scope = is_all ? MovementScope::kAll : MovementScope::kLayers;
    }
    ImGui::SetItemTooltip("Loss, head, embeddings and optimizer beside the layers");
}

void draw_card_choice(MovementFrame& frame, const MovementView* view) {
    const auto& gpus = frame.context.workspace.gpus();
    ImGui::SameLine(0, px(10));
    ImGui::SetNextItemWidth(em(13));
    std::string shown = view && !view->peaks.name.empty()
                            ? std::string(profiler::short_gpu_name(view->peaks.name))
                            : "no GPU is known";
    if (!ImGui::BeginCombo("##card", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
    if (ImGui::Selectable("The GPU of the trace", frame.query.gpu.empty())) frame.query.gpu = "";
    ImGui::Separator();
    if (const auto* gpu = gpu_rows(gpus, frame.query.gpu)) frame.query.gpu = gpu->id;
    ImGui::EndCombo();
}

void draw_help(const MovementView& view) {
    std::string help =
        "Roofline: an op cannot be above the slope (bandwidth) or the flat line (peak). Area: time "
        "in one step. Bytes count each element of all inputs and outputs once. Ops without FLOP "
        "(copies) are at the left edge; their height shows how much of the bandwidth they "
        "use.\nDrag a rectangle to list the ops in it and to mark them in the Kernels panel. "
        "Click an op to select its longest call "
        "in all panels.\nThe larger of % of peak and MUE is bold: the limit that the op is nearer "
        "to.";
    for (const std::string& note : view.notes) help += "\n· " + note;
    ImGui::SameLine(0, px(8));
    help_marker(help);
}

// ---- tooltip --------------------------------------------------------------------------------

/// Everything known about one op.
void draw_movement_tooltip(const MovementView& view, const MovementViewRow& row, size_t trace) {
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(26));
    if (view.traces.size() > 1) {
        letter_badge(trace == 0 ? "A" : "B", side_color(trace));
        ImGui::SameLine(0, px(6));
    }
    bold_text(row.name);
    std::vector<std::pair<std::string, std::string>> cells;
    for (size_t i = 1; i < row.cells.size(); ++i) {
        const std::string& cell = row.cells[i];
        if (cell.empty() || cell == profiler::kNoValue) continue;
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

// ---- selection ------------------------------------------------------------------------------

/// The row that holds the selected call.
std::optional<size_t> selected_row(const MovementFrame& frame, const MovementView& view,
                                   size_t trace) {
    const auto& call = frame.selection.call;
    const DocumentPtr& document = trace == 0 ? frame.selection.a : frame.selection.b;
    if (!call || !document || call->in_b != (trace == 1) || !call->op.valid()) {
        return std::nullopt;
    }
    return profiler::row_of(view.traces[trace], *document->trace, call->op);
}

void select_row(MovementFrame& frame, const MovementView& view, size_t trace, size_t row) {
    const profiler::Id<profiler::Op> call = view.traces[trace].rows[row].row.call;
    if (!call.valid()) return;
    frame.events.selection.call = PickedCall{trace == 1, {profiler::CallKind::kOp, call.value}};
}

/// The calls of the ops in the rectangle. Logical ops are no calls that ran.
std::optional<profiler::SelectedCalls> marks_in(const MovementFrame& frame,
                                                const MovementView& view,
                                                const profiler::RooflineBox& box) {
    if (frame.query.ops == MovementOps::kLogical) return std::nullopt;
    profiler::SelectedCalls marks;
    for (size_t t = 0; t < view.traces.size(); ++t) {
        for (const profiler::MovementDot& dot : view.traces[t].dots) {
            if (!box.contains(dot)) continue;
            const profiler::MovementRow& row = view.traces[t].rows[dot.row].row;
            marks.keys[t].push_back({.kind = profiler::CallKind::kOp,
                                     .name = row.name,
                                     .phase = row.phase,
                                     .module = {{row.module, row.is_in_layer}}});
        }
    }
    const size_t count = std::max(marks.keys[0].size(), marks.keys[1].size());
    if (count == 0) return std::nullopt;
    marks.label = fmt::format("{} {} of the roofline", count, count == 1 ? "op" : "ops");
    return marks;
}

/// The rectangle takes its marks with it, and no others.
void forget_box(MovementFrame& frame) {
    frame.state.box.reset();
    if (frame.state.marks && frame.state.marks == frame.selection.marks) {
        frame.events.selection.marks.emplace(std::nullopt);
    }
    frame.state.marks.reset();
}

void apply_plot(MovementFrame& frame, const MovementView& view, const MovementInput& input) {
    if (input.hovered) {
        const auto& trace = view.traces[input.hovered->trace];
        draw_movement_tooltip(view, trace.rows[trace.dots[input.hovered->dot].row],
                              input.hovered->trace);
    }
    if (input.box) {
        frame.state.box = input.box;
        frame.state.marks = marks_in(frame, view, *input.box);
        if (frame.state.marks) frame.events.selection.marks.emplace(frame.state.marks);
    }
    if (input.clicked_nothing) {
        forget_box(frame);
        frame.events.selection.clear_call = true;
    }
    if (!input.clicked) return;
    const auto& trace = view.traces[input.clicked->trace];
    frame.state.table_of = input.clicked->trace;
    select_row(frame, view, input.clicked->trace, trace.dots[input.clicked->dot].row);
}

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
        const ImU32 fill = call_color(profiler::call_class_of(one.op_class));
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
        swatch(call_color(profiler::call_class_of(one.op_class)));
        text(fmt::format("{:.2f} %  {}", 100 * one.share,
                         profiler::label_of(profiler::call_class_of(one.op_class))));
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

/// Bars of class shares, beside those of the paper where it has the same layer.
void draw_class_shares(const MovementView& view, const Selection& selection) {
    const ScopedFont small(fonts().text, kSmallSize);
    const auto time = [](const MovementClassRow& row) { return row.time_share; };
    for (size_t t = 0; t < view.traces.size(); ++t) {
        const auto shares = shares_of(view.traces[t].classes, time);
        if (shares.empty()) continue;
        const DocumentLabel& label = t == 0 ? selection.label_a : selection.label_b;
        draw_share_bar(fmt::format("Time {}  {}", t == 0 ? "A" : "B", label.name), shares, 1);
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
        return !cell.empty() && cell != profiler::kNoValue;
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

/// Another table has an order of its own, which nobody clicked for.
void read_movement_order(MovementQuery& query, bool is_other_table) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (!specs || specs->SpecsCount == 0) return;
    if (!specs->SpecsDirty && !is_other_table) return;
    specs->SpecsDirty = false;
    query.sort_by = static_cast<MovementColumn>(specs->Specs[0].ColumnUserID);
    query.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
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
    const auto of = profiler::call_class_of(row.row.op_class.value_or(profiler::OpClass::kOther));
    draw_marker(ImGui::GetWindowDrawList(),
                profiler::marker_of(row.row.phase.value_or(profiler::PhaseKind::kForward)),
                {at.x + px(5), at.y + height / 2}, px(4.2F),
                profiler::color_of(current_theme(), of));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + px(15));
    // The namespace says little here; the tooltip has the whole name.
    const size_t colon = row.name.rfind("::");
    const std::string name = colon == std::string::npos ? row.name : row.name.substr(colon + 2);
    text(fit_to(name, ImGui::GetContentRegionAvail().x));
}

/// The rows that the table lists: all, or those of the rectangle.
std::vector<size_t> rows_in(const MovementTrace& trace,
                            const std::optional<profiler::RooflineBox>& box) {
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

void draw_table_choice(MovementFrame& frame, const MovementView& view, size_t table_of) {
    if (view.traces.size() < 2) return;
    for (size_t t = 0; t < 2; ++t) {
        const DocumentLabel& of = t == 0 ? frame.selection.label_a : frame.selection.label_b;
        const std::string label =
            fmt::format("{}  {}###table_{}", t == 0 ? "A" : "B", fit_to(of.name, em(9)), t);
        if (toggle_button(label.c_str(), table_of == t)) frame.state.table_of = t;
        ImGui::SameLine(0, px(3));
    }
    ImGui::SameLine(0, px(8));
}

/// What the rectangle holds, with a button that removes it; else the sums.
void draw_table_summary(MovementFrame& frame, const MovementTrace& trace,
                        const std::vector<size_t>& rows) {
    if (!frame.state.box) {
        dim_text(fit_to(trace.total, ImGui::GetContentRegionAvail().x));
        ImGui::SetItemTooltip("%s", trace.total.c_str());
        return;
    }
    double share = 0;
    for (const size_t row : rows) share += trace.rows[row].time_share;
    std::string label = fmt::format(ICON_XMARK "  {} ops", rows.size());
    if (share > 0) label += fmt::format(", {} of the time", profiler::format_percent(share));
    if (ImGui::SmallButton((label + "###forget_box").c_str())) forget_box(frame);
    ImGui::SetItemTooltip("List all ops");
}

/// A click selects the op.
void draw_movement_row(MovementFrame& frame, const MovementView& view, size_t table_of,
                       size_t index, bool is_selected) {
    const MovementViewRow& row = view.traces[table_of].rows[index];
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    if (ImGui::Selectable("##row", is_selected, ImGuiSelectableFlags_SpanAllColumns)) {
        select_row(frame, view, table_of, index);
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_movement_tooltip(view, row, table_of);
    }
    ImGui::SetCursorPos(start);
    draw_op_cell(row);
    for (size_t i = 1; i < kMovementColumns.size(); ++i) {
        if (!ImGui::TableSetColumnIndex(static_cast<int>(i))) continue;
        draw_cell(row, kMovementColumns[i].column);
    }
}

/// The table of the ops; their figures, and the larger of the two limits in bold.
void draw_movement_table(MovementFrame& frame, const MovementView& view,
                         std::optional<size_t> selected) {
    const size_t table_of = frame.state.table_of;  // a click may change it
    const MovementTrace& trace = view.traces[table_of];
    const std::vector<size_t> rows = rows_in(trace, frame.state.box);
    const bool is_other_table =
        std::exchange(frame.state.had_times, view.has_times) != view.has_times;
    draw_table_choice(frame, view, table_of);
    draw_table_summary(frame, trace, rows);
    const ScopedFont small(fonts().text, kSmallSize);
    const ImGuiTableFlags flags = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                  ImGuiTableFlags_ScrollX | ImGuiTableFlags_Resizable |
                                  ImGuiTableFlags_Hideable | ImGuiTableFlags_Sortable |
                                  ImGuiTableFlags_NoSavedSettings;
    // With and without times other columns have values.
    const char* const name = view.has_times ? "##ops_that_ran" : "##logical_ops";
    if (!ImGui::BeginTable(name, static_cast<int>(kMovementColumns.size()), flags)) return;
    set_up_movement_columns(view, trace);
    draw_movement_headers();
    read_movement_order(frame.query, is_other_table);
    draw_visible_rows(rows.size(), [&](size_t i) {
        const size_t row = rows[i];
        draw_movement_row(frame, view, table_of, row, selected == row);
    });
    ImGui::EndTable();
}

// ---- the picture ----------------------------------------------------------------------------

/// The sentence that says most, and why figures are missing.
void draw_headline(const MovementView& view) {
    if (!view.headline.empty()) wrapped_bold_text(view.headline);
    if (!view.traces.front().per_layer.empty()) wrapped_text(view.traces.front().per_layer);
    for (const std::string& note : view.notes) warning_note(palette().warn, note);
}

void draw_filled(MovementFrame& frame, const MovementView& view) {
    frame.state.table_of = std::min(frame.state.table_of, view.traces.size() - 1);
    profiler::RooflineOverlay overlay{.color_b = profiler::side_color(current_theme(), 1),
                                      .box = frame.state.box};
    for (size_t t = 0; t < view.traces.size(); ++t) {
        overlay.selected[t] = selected_row(frame, view, t);
    }
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool is_wide = space.x > em(kLeastSide_em + kLeastPlot_em);
    const float gap = px(12);
    const float side = std::max(em(kLeastSide_em), space.x * kSideShare);
    const ImVec2 size = is_wide ? ImVec2{space.x - side - gap, space.y}
                                : ImVec2{space.x, std::max(em(16), space.y * 0.58F)};
    const MovementInput input = draw_movement_plot(view, overlay, size, frame.state.picture);
    if (is_wide) ImGui::SameLine(0, gap);
    const ScopedChild column("##side", {is_wide ? side : 0, 0}, 0, ImGuiWindowFlags_NoScrollbar);
    if (column) {
        draw_class_shares(view, frame.selection);
        ImGui::Dummy({0, px(4)});
        draw_movement_table(frame, view, overlay.selected[frame.state.table_of]);
    }
    apply_plot(frame, view, input);
}

}  // namespace

PanelEvents draw_movement_panel(const PanelContext& context, MovementState& state) {
    PanelEvents events;
    const auto& slot = context.workspace.slots().movement;
    MovementFrame frame{context, context.workspace.selection(), state,
                        context.workspace.queries().movement, events};
    frame.query.is_drawn = true;
    // The marks of the rectangle may have been removed, or A and B may be others.
    if (state.marks && state.marks != frame.selection.marks) forget_box(frame);
    const MovementView* const view = slot.view();
    if (!view || view->traces.empty()) {
        draw_unfilled(kMovementTexts, frame.selection, slot.error());
    } else {
        draw_ops_choice(frame);
        draw_card_choice(frame, view);
        draw_help(*view);
        draw_headline(*view);
        if (view->traces.front().rows.empty()) {
            empty_state(
                ICON_BOLT, "No op is counted here",
                frame.query.ops == MovementOps::kRun
                    ? "No op in the layers of the trace has counted arithmetic or data. Try "
                      "the whole step."
                    : "The trace does not say which step it ran.");
        } else {
            draw_filled(frame, *view);
        }
    }
    if (frame.query != context.workspace.queries().movement) events.queries.movement = frame.query;
    return events;
}

}  // namespace app
