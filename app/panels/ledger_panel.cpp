#include "app/panels/ledger_panel.h"

#include "app/panels/unfilled.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace app {
namespace {

using profiler::LedgerColumn;
using profiler::LedgerView;
using profiler::LedgerViewRow;
using profiler::Presence;

struct ColumnSetup {
    LedgerColumn column;
    float width_em;  // 0 = takes what is left
    bool right_aligned = false;
    bool shown = true;  // by default; the header's menu shows the rest
    bool needs_other = false;
    const char* explanation = nullptr;
};

constexpr std::array<ColumnSetup, 13> kColumns{{
    {LedgerColumn::kTensor, 8.4F},
    {LedgerColumn::kModulePath, 0},
    {LedgerColumn::kOp, 9, false, false},
    {LedgerColumn::kShape, 7.4F},
    {LedgerColumn::kDType, 4.6F, false, false},
    {LedgerColumn::kCategory, 7, false, false},
    {LedgerColumn::kSize, 4.8F, true},
    {LedgerColumn::kShare, 4.2F, true, false},
    {LedgerColumn::kLifetime, 5.2F, true, false},
    {LedgerColumn::kSavedBy, 12, false, false},
    {LedgerColumn::kClosedForm, 5.6F, true, true, false,
     "Bytes of this tensor by the closed form of a middle layer (docs/notation.md)"},
    {LedgerColumn::kOtherSize, 4.8F, true, false, true, "The same tensor in B"},
    {LedgerColumn::kDifference, 5.2F, true, true, true, "B minus A: green where B needs less"},
}};

/// One frame's drawing: what the helpers below share.
struct Frame {
    const Selection& selection;
    const LedgerQuery& query;  // as last applied
    const LedgerView& view;
    LedgerState& state;
    PanelEvents& events;
    bool has_room_for_shape = true;
    bool has_room_for_closed_form = true;
};

void copy_rows(const LedgerView& view, std::optional<size_t> only) {
    std::string text = profiler::clipboard_header(view.has_other) + "\n";
    for (size_t i = 0; i < view.rows.size(); ++i) {
        if (only && *only != i) continue;
        text += profiler::to_clipboard(view.rows[i], view.has_other) + "\n";
    }
    ImGui::SetClipboardText(text.c_str());
}

void draw_toolbar(Frame& frame) {
    LedgerQuery query = frame.query;
    const bool two = frame.selection.b && frame.selection.b->has_step;
    const float buttons = em(two ? 15.6F : 2.4F);
    if (std::exchange(frame.state.focus_filter, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(std::max(em(8), ImGui::GetContentRegionAvail().x - buttons));
    if (ImGui::InputTextWithHint("##filter", ICON_FILTER "  Filter by tensor, module, op or shape",
                                 &frame.state.filter)) {
        query.filter = frame.state.filter;
    }
    if (two) {
        ImGui::SameLine();
        ImGui::Checkbox("Beside B", &query.compare);
        ImGui::SetItemTooltip("Show the same tensors of B beside those of A");
        ImGui::SameLine();
        const ScopedDisabled disabled(!query.compare);
        ImGui::Checkbox("Changes", &query.only_differences);
        ImGui::SetItemTooltip("Hide tensors that have the same size in A and B");
    }
    ImGui::SameLine();
    if (ImGui::Button(ICON_COPY "##copy")) copy_rows(frame.view, std::nullopt);
    ImGui::SetItemTooltip("Copy all visible rows, tab separated");
    if (query != frame.query) frame.events.ledger_query = query;
}

void draw_summary(const LedgerView& view) {
    bold_text(view.total_text);
    if (!view.comparison_text.empty()) {
        ImGui::SameLine(0, px(12));
        ImGui::PushTextWrapPos(0);
        colored_text(view.other_total_bytes <= view.total_bytes ? palette().good : palette().bad,
                     view.comparison_text);
        ImGui::PopTextWrapPos();
    }
    if (view.closed_form_text.empty()) return;
    colored_text(view.closed_form_equal ? palette().good : palette().warn,
                 view.closed_form_equal ? ICON_CHECK : ICON_TRIANGLE_EXCLAMATION);
    ImGui::SameLine(0, px(6));
    note_text(view.closed_form_text);
}

/// The text, shortened to fit the cell; then the tooltip shows all of it.
void fitted_text(const std::string& content, ImU32 color,
                 std::string (*fit)(std::string_view, float) = fit_to) {
    const float width = ImGui::GetContentRegionAvail().x;
    if (text_width(content) <= width) return colored_text(color, content);
    colored_text(color, fit(content, width));
    ImGui::SetItemTooltip("%s", content.c_str());
}

/// The bytes, and under them a bar in proportion to the largest visible row.
void draw_size(const LedgerView& view, const LedgerViewRow& row) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetTextLineHeight();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (row.size_bytes > 0) {
        const float y = std::floor(corner.y + height);
        const double share =
            static_cast<double>(row.size_bytes) / static_cast<double>(view.largest_row_bytes);
        const float bar = std::max(px(1), std::floor(width * static_cast<float>(share)));
        draw->AddRectFilled({corner.x + width - bar, y}, {corner.x + width, y + px(2)},
                            category_color(row.category));
    }
    right_text(row.size_text);
    if (row.size_bytes > 0) ImGui::SetItemTooltip("%s", row.exact_text.c_str());
}

/// The formula if it gives the size in the ledger, else the size that it gives.
void draw_closed_form(const LedgerViewRow& row) {
    if (!row.closed_form_bytes) return;
    const std::string formula = row.closed_form_text.substr(0, row.closed_form_text.find(" = "));
    if (row.differs_from_closed_form) {
        const ScopedColor color(ImGuiCol_Text, palette().warn);
        right_text(profiler::format_bytes(*row.closed_form_bytes));
    } else {
        const ScopedColor color(ImGuiCol_Text, palette().dim);
        right_text(formula + "  " ICON_CHECK);
    }
    ImGui::SetItemTooltip("%s", row.closed_form_text.c_str());
}

ImU32 difference_color(const LedgerViewRow& row) {
    if (row.difference_bytes < 0) return palette().good;
    return row.difference_bytes > 0 ? palette().bad : palette().dim;
}

void draw_cell(const Frame& frame, const LedgerViewRow& row, LedgerColumn column) {
    // Tensors of other categories than the selected one are dim, and so are tensors that only B
    // saves.
    const auto& picked = frame.selection.category;
    const bool faded = (picked && *picked != row.category) || row.presence == Presence::kAdded;
    const ImU32 color = faded ? palette().dim : palette().text;
    switch (column) {
        case LedgerColumn::kTensor: {
            category_swatch(row.category, faded);
            return fitted_text(row.tensor, color);
        }
        case LedgerColumn::kModulePath:
            return fitted_text(row.module_path, palette().dim, fit_path_to);
        case LedgerColumn::kOp:
            return fitted_text(row.op, color);
        case LedgerColumn::kShape:
            return fitted_text(row.shape, color);
        case LedgerColumn::kDType:
            return fitted_text(row.dtype, palette().dim);
        case LedgerColumn::kCategory:
            return fitted_text(std::string(profiler::label_of(row.category)), color);
        case LedgerColumn::kSize:
            return draw_size(frame.view, row);
        case LedgerColumn::kShare:
            return right_text(row.share_text);
        case LedgerColumn::kLifetime:
            return right_text(row.lifetime_text);
        case LedgerColumn::kSavedBy:
            return fitted_text(row.saved_by, color);
        case LedgerColumn::kClosedForm:
            return draw_closed_form(row);
        case LedgerColumn::kOtherSize:
            return right_text(row.other_text);
        case LedgerColumn::kDifference: {
            const ScopedColor scoped(ImGuiCol_Text, difference_color(row));
            return right_text(row.difference_text);
        }
    }
}

bool applies(const Frame& frame, const ColumnSetup& column) {
    if (column.column == LedgerColumn::kClosedForm) {
        return frame.view.has_closed_form && frame.has_room_for_closed_form;
    }
    if (column.column == LedgerColumn::kShape) return frame.has_room_for_shape;
    return !column.needs_other || frame.view.has_other;
}

/// A narrow panel leaves out the closed form first and then the shape.
void choose_columns(Frame& frame) {
    constexpr float kLeastModule_em = 6;
    const auto has_room = [&] {
        float needed = em(kLeastModule_em);
        for (const ColumnSetup& setup : kColumns) {
            if (!setup.shown || !applies(frame, setup)) continue;
            needed += em(setup.width_em) + 2 * ImGui::GetStyle().CellPadding.x;
        }
        return needed + ImGui::GetStyle().ScrollbarSize <= ImGui::GetContentRegionAvail().x;
    };
    frame.has_room_for_closed_form = has_room();
    frame.has_room_for_shape = frame.has_room_for_closed_form || has_room();
}

void setup_columns(const Frame& frame) {
    for (const ColumnSetup& setup : kColumns) {
        const bool is_default = setup.column == LedgerColumn::kSize;
        ImGuiTableColumnFlags flags = setup.width_em > 0 ? ImGuiTableColumnFlags_WidthFixed
                                                         : ImGuiTableColumnFlags_WidthStretch;
        if (!setup.shown) flags |= ImGuiTableColumnFlags_DefaultHide;
        if (is_default) flags |= ImGuiTableColumnFlags_DefaultSort;
        if (setup.right_aligned) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        if (setup.column == LedgerColumn::kTensor) flags |= ImGuiTableColumnFlags_NoHide;
        if (!applies(frame, setup)) flags |= ImGuiTableColumnFlags_Disabled;
        ImGui::TableSetupColumn(
            profiler::kLedgerColumnTitles[static_cast<size_t>(setup.column)].data(), flags,
            em(setup.width_em), static_cast<ImGuiID>(setup.column));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    ImGui::TableHeadersRow();
}

void read_sort_order(Frame& frame) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (!specs || !specs->SpecsDirty || specs->SpecsCount == 0) return;
    LedgerQuery query = frame.events.ledger_query.value_or(frame.query);
    query.sort_by = static_cast<LedgerColumn>(specs->Specs[0].ColumnUserID);
    query.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    specs->SpecsDirty = false;
    if (query != frame.query) frame.events.ledger_query = query;
}

void draw_row_menu(Frame& frame, size_t index) {
    if (!ImGui::BeginPopupContextItem("##row_menu")) return;
    const LedgerViewRow& row = frame.view.rows[index];
    if (ImGui::MenuItem(ICON_COPY "  Copy row")) copy_rows(frame.view, index);
    if (ImGui::MenuItem(ICON_COPY "  Copy all visible rows")) copy_rows(frame.view, std::nullopt);
    if (ImGui::MenuItem(ICON_FILTER "  Only this tensor")) {
        frame.state.filter = row.tensor;
    } else if (ImGui::MenuItem(ICON_FILTER "  Only this module")) {
        frame.state.filter = row.module_path;
    }
    if (frame.state.filter != frame.query.filter) {
        frame.events.ledger_query = frame.query;
        frame.events.ledger_query->filter = frame.state.filter;
    }
    ImGui::EndPopup();
}

/// Everything about the row, also what a narrow panel has no column for.
void draw_row_readout(const LedgerViewRow& row) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(row.tensor);
    readout_table(std::array<std::pair<std::string, std::string>, 6>{
        {{"module", row.module_path},
         {"saved by", row.saved_by},
         {"shape", row.shape + "  " + row.dtype},
         {"bytes", row.exact_text},
         {"lifetime", row.lifetime_text},
         {"closed form", row.closed_form_text}}});
    ImGui::EndTooltip();
}

/// Whether this row shows the selected tensor.
bool is_picked(const Frame& frame, const LedgerViewRow& row) {
    const auto& tensor = frame.selection.tensor;
    return tensor && tensor->storage == row.storage &&
           tensor->in_b == (row.presence == Presence::kAdded);
}

void draw_row(Frame& frame, size_t index) {
    const LedgerViewRow& row = frame.view.rows[index];
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const bool picked = is_picked(frame, row);
    const ImVec2 start = ImGui::GetCursorPos();
    if (ImGui::Selectable(
            "##row", picked,
            ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap)) {
        if (picked) {
            frame.events.clear_tensor = true;
        } else {
            const bool in_b = row.presence == Presence::kAdded;
            frame.events.tensor = {in_b ? frame.selection.b : frame.selection.a, row.storage,
                                   row.allocation};
        }
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) draw_row_readout(row);
    draw_row_menu(frame, index);
    ImGui::SetCursorPos(start);
    draw_cell(frame, row, LedgerColumn::kTensor);
    for (size_t i = 1; i < kColumns.size(); ++i) {
        if (ImGui::TableSetColumnIndex(static_cast<int>(i)))
            draw_cell(frame, row, kColumns[i].column);
    }
}

void draw_table(Frame& frame) {
    const ImGuiTableFlags flags =
        ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
        ImGuiTableFlags_Reorderable | ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
        ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoBordersInBodyUntilResize;
    const ScopedStyle padding(ImGuiStyleVar_CellPadding, {px(6), px(3)});
    choose_columns(frame);
    if (!ImGui::BeginTable("##ledger", static_cast<int>(kColumns.size()), flags)) return;
    setup_columns(frame);
    read_sort_order(frame);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(frame.view.rows.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            draw_row(frame, static_cast<size_t>(i));
        }
    }
    ImGui::EndTable();
}

constexpr UnfilledTexts kUnfilled{
    .icon = ICON_TABLE,
    .purpose =
        "Every tensor that is saved for backward is listed here, with the op that saves it and "
        "its bytes.",
    .error_title = "The ledger could not be built",
    .working = "Listing the saved tensors ..."};

}  // namespace

PanelEvents draw_ledger_panel(const PanelContext& context, LedgerState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    const LedgerView* view = workspace.slots().ledger.view();
    if (!view) {
        draw_unfilled(kUnfilled, workspace.selection(), workspace.slots().ledger.error());
        return events;
    }
    Frame frame{workspace.selection(), workspace.ledger_query(), *view, state, events};
    draw_toolbar(frame);
    draw_summary(*view);
    if (view->rows.empty()) {
        const bool filtered = view->row_count_total > 0;
        empty_state(ICON_TABLE, filtered ? "No tensor matches" : "Nothing is saved for backward",
                    filtered ? "Clear the filter to see every tensor."
                             : "This trace records no saved tensors.");
        return events;
    }
    draw_table(frame);
    return events;
}

}  // namespace app
