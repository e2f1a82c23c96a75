#include "app/panels/peak/ledger_panel.h"

#include "app/panels/parts/panel_notes.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/imgui_internals.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/peak/ledger_view.h"

#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

namespace app {
namespace {

using profiler::LedgerColumn;
using profiler::LedgerGrouping;
using profiler::LedgerLine;
using profiler::LedgerView;
using profiler::LedgerViewRow;
using profiler::Presence;

struct ColumnSetup {
    LedgerColumn column;
    float width_em;     // 0 = takes what is left
    bool shown = true;  // by default; the header's menu shows the rest
};

constexpr std::array<ColumnSetup, profiler::kNumLedgerColumns> kColumns{{
    {LedgerColumn::kTensor, 9.6F},
    {LedgerColumn::kModulePath, 0},
    {LedgerColumn::kMadeBy, 8.6F},
    {LedgerColumn::kShape, 7.4F},
    {LedgerColumn::kDType, 4.6F, false},
    {LedgerColumn::kCategory, 7, false},
    {LedgerColumn::kSize, 4.8F},
    {LedgerColumn::kShare, 4.2F, false},
    {LedgerColumn::kLifetime, 5.2F},
    {LedgerColumn::kSavedBy, 9.4F},
    {LedgerColumn::kClosedForm, 5.6F},
    {LedgerColumn::kOtherSize, 4.8F, false},
    {LedgerColumn::kDifference, 5.2F},
}};

/// One frame's drawing: what the helpers below share.
struct Frame {
    const Selection& selection;
    const LedgerQuery& query;  // as last applied
    const LedgerView& view;
    LedgerState& state;
    PanelEvents& events;
    std::vector<LedgerColumn> left_out;  // there is no room for them
};

void copy_rows(const LedgerView& view, std::optional<size_t> only) {
    ImGui::SetClipboardText(to_tsv(profiler::copied_rows(view, only)).c_str());
}

/// Tensors, layers or kinds.
void draw_groupings(LedgerQuery& query) {
    choose_one<LedgerGrouping>(
        query.grouping,
        {{"Tensors", "One row for each tensor", LedgerGrouping::kTensors},
         {"Layers", "A tree of layers, modules and tensors, with sums", LedgerGrouping::kLayers},
         {"Kinds", "The same tensor of all layers in one row", LedgerGrouping::kKinds}},
        px(2));
    ImGui::SameLine(0, px(8));
}

void draw_toolbar(Frame& frame) {
    LedgerQuery query = frame.query;
    draw_groupings(query);
    const bool two = frame.selection.b && frame.selection.b->has_step;
    const float buttons = em(two ? 15.6F : 2.4F);
    if (std::exchange(frame.state.focus_filter, false)) ImGui::SetKeyboardFocusHere();
    const float width = std::max(em(4), ImGui::GetContentRegionAvail().x - buttons);
    ImGui::SetNextItemWidth(width);
    const char* hint = width > em(18) ? ICON_FILTER "  Filter by tensor, module, op or shape"
                                      : ICON_FILTER "  Filter";
    if (ImGui::InputTextWithHint("##filter", hint, &frame.state.filter)) {
        query.filter = frame.state.filter;
    }
    if (two) {
        ImGui::SameLine();
        check_box("Beside B", &query.compare);
        ImGui::SetItemTooltip("Show the same tensors of A and B side by side");
        ImGui::SameLine();
        const ScopedDisabled disabled(!query.compare);
        check_box("Changes", &query.only_differences);
        ImGui::SetItemTooltip("Hide tensors that have the same size in A and B");
    }
    ImGui::SameLine();
    if (ImGui::Button(ICON_COPY "##copy")) copy_rows(frame.view, std::nullopt);
    ImGui::SetItemTooltip("Copy all visible rows, tab separated");
    if (query != frame.query) frame.events.window.ledger = query;
}

/// docs/techniques.md has them all.
constexpr const char* kLettersOfClosedForms =
    "A batch of B sequences of S tokens; H wide, I inside the MLP; A heads.\n"
    "n = BSH  elements of a hidden state\n"
    "f = BSI  elements inside the MLP\n"
    "T = BAS²  elements of the attention scores\n"
    "R = BS  rows of a LayerNorm\n"
    "e, s  bytes of one element, and of one mean or rstd\n"
    "c8(k)  the bytes of k bits\n"
    "r16(S), r32(S)  S rounded up to a multiple of 16 or 32";

void draw_closed_forms(const Frame& frame) {
    for (size_t i = 0; i < frame.view.closed_forms.size(); ++i) {
        const auto& line = frame.view.closed_forms[i];
        if (!line) continue;
        if (frame.view.has_other) {
            letter_badge(i == 0 ? "A" : "B", side_color(i));
            ImGui::SameLine(0, px(6));
        }
        colored_text(line->is_equal ? palette().good : palette().warn,
                     line->is_equal ? ICON_CHECK : ICON_TRIANGLE_EXCLAMATION);
        ImGui::SameLine(0, px(6));
        note_text(line->text);
        ImGui::SetItemTooltip("%s", kLettersOfClosedForms);
    }
}

void draw_summary(Frame& frame) {
    constexpr float kLeastComparison_em = 20;  // else it stands below the totals
    const LedgerView& view = frame.view;
    bold_text(view.total_text);
    if (!view.comparison_text.empty()) {
        ImGui::SameLine(0, px(12));
        const float least = std::min(em(kLeastComparison_em), text_width(view.comparison_text));
        if (ImGui::GetContentRegionAvail().x < least) ImGui::NewLine();
        ImGui::PushTextWrapPos(0);
        colored_text(view.shown_difference_bytes <= 0 ? palette().good : palette().bad,
                     view.comparison_text);
        ImGui::PopTextWrapPos();
    }
    if (!view.span_text.empty()) {
        if (ImGui::SmallButton(ICON_XMARK "###all_times")) {
            frame.events.selection.range = std::optional<profiler::TimeRange>();
        }
        ImGui::SetItemTooltip("Show the tensors of all times");
        ImGui::SameLine(0, px(6));
        colored_text(palette().accent, fit_to(view.span_text, ImGui::GetContentRegionAvail().x));
    }
    if (!frame.state.marks.text.empty()) colored_text(palette().accent, frame.state.marks.text);
    draw_closed_forms(frame);
}

bool applies(const Frame& frame, const ColumnSetup& column) {
    const auto& left_out = frame.left_out;
    if (std::find(left_out.begin(), left_out.end(), column.column) != left_out.end()) return false;
    return profiler::applies(frame.view, column.column);
}

/// A narrow panel leaves out one column after the other.
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
    for (const LedgerColumn column :
         {LedgerColumn::kLifetime, LedgerColumn::kSavedBy, LedgerColumn::kMadeBy,
          LedgerColumn::kClosedForm, LedgerColumn::kShape}) {
        if (has_room()) return;
        frame.left_out.push_back(column);
    }
}

void setup_columns(const Frame& frame) {
    for (const ColumnSetup& setup : kColumns) {
        const bool is_sorted = setup.column == frame.query.sort_by;
        const auto& column = profiler::table_column(setup.column);
        const bool is_number = column.unit != profiler::Unit::kText;
        const bool falls = is_sorted ? frame.query.descending : is_number;
        ImGuiTableColumnFlags flags = setup.width_em > 0 ? ImGuiTableColumnFlags_WidthFixed
                                                         : ImGuiTableColumnFlags_WidthStretch;
        if (!setup.shown) flags |= ImGuiTableColumnFlags_DefaultHide;
        if (is_sorted) flags |= ImGuiTableColumnFlags_DefaultSort;  // of a table that is new
        if (falls) flags |= ImGuiTableColumnFlags_PreferSortDescending;
        if (setup.column == LedgerColumn::kTensor) flags |= ImGuiTableColumnFlags_NoHide;
        if (!applies(frame, setup)) flags |= ImGuiTableColumnFlags_Disabled;
        ImGui::TableSetupColumn(column.title.c_str(), flags, em(setup.width_em),
                                static_cast<ImGuiID>(setup.column));
    }
    ImGui::TableSetupScrollFreeze(1, 1);
    const ScopedColor dim(ImGuiCol_Text, palette().dim);
    ImGui::TableHeadersRow();
}

/// The query may come from elsewhere: a restored session, or a window whose content this one took.
/// The arrow cannot stand on a column that is hidden.
void show_sort_order(const Frame& frame, const ImGuiTableColumnSortSpecs& shown) {
    const auto column = static_cast<LedgerColumn>(shown.ColumnUserID);
    const bool falls = shown.SortDirection == ImGuiSortDirection_Descending;
    if (column == frame.query.sort_by && falls == frame.query.descending) return;
    for (size_t i = 0; i < kColumns.size(); ++i) {
        const int index = static_cast<int>(i);
        const bool is_shown =
            (ImGui::TableGetColumnFlags(index) & ImGuiTableColumnFlags_IsEnabled) != 0;
        if (kColumns[i].column != frame.query.sort_by || !is_shown) continue;
        point_sort_arrow(index, frame.query.descending);
    }
}

void read_sort_order(Frame& frame) {
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (!specs || specs->SpecsCount == 0) return;
    if (!specs->SpecsDirty) return show_sort_order(frame, specs->Specs[0]);
    LedgerQuery query = frame.events.window.ledger.value_or(frame.query);
    query.sort_by = static_cast<LedgerColumn>(specs->Specs[0].ColumnUserID);
    query.descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    specs->SpecsDirty = false;
    if (query != frame.query) frame.events.window.ledger = query;
}

void set_all_open(Frame& frame, bool open) {
    frame.state.open.clear();
    for (const auto& group : frame.view.groups) {
        if (open) frame.state.open.insert(group.id);
    }
    frame.state.shown.reset();
}

void filter_by(Frame& frame, const std::string& filter) {
    frame.state.filter = filter;
    frame.events.window.ledger = frame.query;
    frame.events.window.ledger->filter = filter;
}

void draw_row_menu(Frame& frame, const LedgerLine& line) {
    if (!ImGui::BeginPopupContextItem("##row_menu")) return;
    const LedgerViewRow& row = profiler::row_of(frame.view, line);
    const bool is_group = line.group != LedgerLine::kNoGroup;
    if (!is_group && ImGui::MenuItem(ICON_COPY "  Copy row")) copy_rows(frame.view, line.row);
    if (ImGui::MenuItem(ICON_COPY "  Copy all visible rows")) copy_rows(frame.view, std::nullopt);
    if (!is_group && ImGui::MenuItem(ICON_FILTER "  Only this tensor")) {
        filter_by(frame, row.tensor);
    } else if (!is_group && ImGui::MenuItem(ICON_FILTER "  Only this module")) {
        filter_by(frame, row.module_path);
    }
    if (!frame.view.groups.empty()) {
        ImGui::Separator();
        if (ImGui::MenuItem(ICON_CHEVRON_DOWN "  Open all groups")) set_all_open(frame, true);
        if (ImGui::MenuItem(ICON_CHEVRON_RIGHT "  Close all groups")) set_all_open(frame, false);
    }
    ImGui::EndPopup();
}

/// Everything about the row, also what a narrow panel has no column for.
void draw_row_readout(const LedgerViewRow& row, bool is_group) {
    if (!ImGui::BeginTooltip()) return;
    bold_text(row.tensor);
    readout_table(std::array<std::pair<std::string, std::string>, 7>{
        {{is_group ? "inside" : "module", row.module_path},
         {"made by", row.made_by},
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

/// What the selected op has to do with the line: a tint, and a bar beside its name that is
/// filled if it made the tensor and hollow if it only saves it.
void draw_mark(const Frame& frame, const LedgerLine& line) {
    const auto& marks = frame.state.marks;
    if (marks.rows.empty()) return;
    const bool is_group = line.group != LedgerLine::kNoGroup;
    const profiler::LedgerMark mark = is_group ? marks.groups[line.group] : marks.rows[line.row];
    if (!mark.made && !mark.saved) return;
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1, with_alpha(palette().accent, 0.22F));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float right = at.x + ImGui::GetContentRegionAvail().x;
    const ImVec2 upper{right - px(4), at.y}, lower{right, at.y + ImGui::GetTextLineHeight()};
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (mark.made) draw->AddRectFilled(upper, lower, palette().accent);
    draw->AddRect(upper, lower, palette().accent);
}

void click(Frame& frame, const LedgerLine& line, bool picked) {
    if (line.group != LedgerLine::kNoGroup) {
        const std::string& id = frame.view.groups[line.group].id;
        if (frame.state.open.erase(id) == 0) frame.state.open.insert(id);
        frame.state.shown.reset();  // the lines change
        return;
    }
    const LedgerViewRow& row = frame.view.rows[line.row];
    const bool in_b = row.presence == Presence::kAdded;
    if (picked) {
        frame.events.selection.clear_tensor = true;
    } else {
        frame.events.selection.tensor = {in_b ? frame.selection.b : frame.selection.a, row.storage,
                                         row.allocation};
    }
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
void draw_size(int64_t largest_bytes, const LedgerViewRow& row) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetTextLineHeight();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    if (row.size_bytes > 0) {
        const float y = std::floor(corner.y + height);
        const double share =
            static_cast<double>(row.size_bytes) / static_cast<double>(largest_bytes);
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

/// Draws one cell of the Ledger's table. Tensors of other categories than the `picked` one are dim,
/// and so are tensors that only B saves. The bar under the bytes is as long as the column is wide
/// for `largest_bytes`.
void draw_ledger_cell(const LedgerViewRow& row, LedgerColumn column,
                      std::optional<profiler::Category> picked, int64_t largest_bytes) {
    const bool faded = (picked && *picked != row.category) || row.presence == Presence::kAdded;
    const ImU32 color = faded ? palette().dim : palette().text;
    const auto& shown = profiler::table_column(column);
    switch (column) {
        case LedgerColumn::kTensor:
            category_swatch(row.category, faded);
            return fitted_text(row.tensor, color);
        case LedgerColumn::kModulePath:
            return fitted_text(row.module_path, palette().dim, fit_path_to);
        case LedgerColumn::kDType:
            return fitted_text(row.dtype, palette().dim);
        case LedgerColumn::kSize:
            return draw_size(largest_bytes, row);
        case LedgerColumn::kClosedForm:
            return draw_closed_form(row);
        case LedgerColumn::kDifference: {
            const ScopedColor scoped(ImGuiCol_Text, difference_color(row));
            return right_text(row.difference_text);
        }
        default: {
            const std::string words = text_of(shown, row);
            return shown.unit == profiler::Unit::kText ? fitted_text(words, color)
                                                       : right_text(words);
        }
    }
}

/// The indent of a line of the tree, and the arrow of a group.
void draw_branch(const Frame& frame, const LedgerLine& line) {
    if (frame.view.groups.empty()) return;
    ImGui::Dummy({em(0.9F) * static_cast<float>(line.depth), 0});
    ImGui::SameLine(0, 0);
    const ImVec2 start = ImGui::GetCursorPos();
    if (line.group != LedgerLine::kNoGroup) {
        const float line_height = ImGui::GetTextLineHeight();
        const ScopedFont small(fonts().text, kSmallSize * 0.8F);
        ImGui::SetCursorPosY(start.y + (line_height - ImGui::GetTextLineHeight()) / 2);
        const bool open = frame.state.open.contains(frame.view.groups[line.group].id);
        dim_text(open ? ICON_CHEVRON_DOWN : ICON_CHEVRON_RIGHT);
        ImGui::SameLine(0, 0);
    }
    ImGui::SetCursorPos({start.x + em(1), start.y});
}

void draw_row(Frame& frame, size_t index) {
    const LedgerLine line = frame.state.lines[index];
    const LedgerViewRow& row = profiler::row_of(frame.view, line);
    const ScopedId id(static_cast<int>(index));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_mark(frame, line);
    const bool is_group = line.group != LedgerLine::kNoGroup;
    const bool picked = !is_group && is_picked(frame, row);
    const ImVec2 start = ImGui::GetCursorPos();
    const bool clicked = ImGui::Selectable(
        "##row", picked, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) draw_row_readout(row, is_group);
    draw_row_menu(frame, line);
    const auto draw_cell = [&](LedgerColumn column) {
        draw_ledger_cell(row, column, frame.selection.category, frame.state.largest_bytes);
    };
    ImGui::SetCursorPos(start);
    draw_branch(frame, line);
    draw_cell(LedgerColumn::kTensor);
    for (size_t i = 1; i < kColumns.size(); ++i) {
        if (ImGui::TableSetColumnIndex(static_cast<int>(i))) draw_cell(kColumns[i].column);
    }
    if (clicked) click(frame, line, picked);
}

/// The line of the selected tensor if it was searched for; -1: none.
int line_to_scroll_to(Frame& frame) {
    if (!frame.selection.tensor || !frame.state.scroll_to_tensor) return -1;
    frame.state.scroll_to_tensor = false;
    for (size_t i = 0; i < frame.state.lines.size(); ++i) {
        const LedgerLine& line = frame.state.lines[i];
        if (line.group != LedgerLine::kNoGroup) continue;
        if (is_picked(frame, frame.view.rows[line.row])) return static_cast<int>(i);
    }
    return -1;
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
    frame.state.columns.clear();
    for (size_t i = 0; i < kColumns.size(); ++i) {
        const ImGuiTableColumnFlags state = ImGui::TableGetColumnFlags(static_cast<int>(i));
        if (state & ImGuiTableColumnFlags_IsEnabled) {
            frame.state.columns.push_back(kColumns[i].column);
        }
    }
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(frame.state.lines.size()));
    const int wanted = line_to_scroll_to(frame);
    if (wanted >= 0) clipper.IncludeItemByIndex(wanted);
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            draw_row(frame, static_cast<size_t>(i));
            if (i == wanted) ImGui::SetScrollHereY();
        }
    }
    ImGui::EndTable();
}

/// Makes the lines and marks again if what they depend on has changed.
void update_lines(Frame& frame, const std::shared_ptr<const LedgerView>& view) {
    LedgerState& state = frame.state;
    const bool same_view = !state.shown.owner_before(view) && !view.owner_before(state.shown);
    if (!same_view) {
        state.shown = view;
        state.lines = profiler::lines_of(*view, state.open);
        state.largest_bytes = profiler::largest_bytes(*view, state.lines);
    }
    const auto& call = frame.selection.call;
    const auto wanted = call ? std::optional(PickedCall{call->in_b, call->id}) : std::nullopt;
    const bool same_op =
        wanted.has_value() == state.marked_for.has_value() &&
        (!wanted || (wanted->in_b == state.marked_for->in_b && wanted->id == state.marked_for->id));
    if (same_view && same_op) return;
    state.marked_for = wanted;
    state.marks = {};
    if (!call) return;
    const DocumentPtr& document = call->in_b ? frame.selection.b : frame.selection.a;
    if (!document) return;
    state.marks =
        profiler::mark_rows(*view, {document->trace.get(), call->in_b, call->op, call->forward});
}

/// Why no tensor is listed, and a button that lists them all again.
void draw_empty(Frame& frame) {
    if (frame.view.row_count_total == 0) {
        return empty_state(ICON_TABLE, "Nothing is saved for backward",
                           "This trace records no saved tensors.");
    }
    const bool has_range = !frame.view.span_text.empty(), has_filter = !frame.state.filter.empty();
    if (!has_range) {
        return empty_state(ICON_TABLE, "No tensor matches",
                           "Clear the filter to see every tensor.");
    }
    empty_state(ICON_TABLE,
                has_filter ? "No tensor matches in the selected range"
                           : "Nothing is saved in the selected range",
                "The ledger lists what the last step keeps from forward to backward. The selected "
                "range lies where nothing of it is kept: in another step, or in the optimizer.");
    ImGui::Spacing();
    const char* const label = ICON_XMARK "  Clear the range###clear_range";
    const float width = ImGui::CalcTextSize(label, nullptr, true).x + em(2);
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                         std::max(0.0F, (ImGui::GetContentRegionAvail().x - width) / 2));
    if (ImGui::Button(label, {width, 0}))
        frame.events.selection.range = std::optional<profiler::TimeRange>();
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
    const std::shared_ptr<const LedgerView> view = context.views.ledger.shared();
    if (!view) {
        draw_unfilled(kUnfilled, workspace.selection(), context.views.ledger.error());
        return events;
    }
    Frame frame{workspace.selection(), context.views.queries.ledger, *view, state, events, {}};
    update_lines(frame, view);
    draw_toolbar(frame);
    draw_summary(frame);
    if (view->rows.empty()) {
        draw_empty(frame);
        return events;
    }
    draw_table(frame);
    return events;
}

}  // namespace app
