#include "app/panels/selected/inspector_range.h"

#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace app {
namespace {

using profiler::RangeRow;
using profiler::RangeView;

constexpr float kNumber_em = 4.6F;  // width of a column of numbers

/// Where the columns end. In a narrow panel the numbers stand below the name.
struct Columns {
    bool with_other = false;
    bool is_narrow = false;
    float name_width = 0;
    std::array<float, 3> right{};  // of A, B and B - A, from the left edge
};

Columns lay_out_columns(bool with_other) {
    Columns columns{.with_other = with_other};
    const float width = ImGui::GetContentRegionAvail().x;
    const float number = std::min(em(kNumber_em), width / 3);
    const float numbers = number * (with_other ? 3.0F : 1.0F);
    columns.is_narrow = width - numbers < em(8);
    columns.name_width = columns.is_narrow ? width : width - numbers - px(8);
    for (size_t i = 0; i < 3; ++i) {
        const float behind = with_other ? static_cast<float>(2 - i) : 0.0F;
        columns.right[i] = width - number * behind;
    }
    return columns;
}

void right_at(float left, float right, std::string_view content, ImU32 color) {
    ImGui::SameLine(0, 0);
    ImGui::SetCursorPosX(left + right - text_width(content));
    colored_text(color, content);
}

void draw_numbers(const Columns& columns, float left, const RangeRow& row, bool less_is_good) {
    right_at(left, columns.right[0], row.texts[0], palette().text);
    if (!columns.with_other) return;
    right_at(left, columns.right[1], row.texts[1], palette().text);
    const ImU32 tone = row.difference == 0 || !less_is_good ? palette().dim
                       : row.difference < 0                 ? palette().good
                                                            : palette().bad;
    right_at(left, columns.right[2], row.difference_text, tone);
}

void draw_titles(const Columns& columns, std::string_view title, std::string_view help) {
    ImGui::Spacing();
    const float left = ImGui::GetCursorPosX();
    bold_text(title);
    if (!help.empty()) {
        ImGui::SameLine();
        help_marker(help);
    }
    if (!columns.with_other) return;
    if (columns.is_narrow) ImGui::Dummy({0, 0});
    right_at(left, columns.right[0], "A", palette().dim);
    right_at(left, columns.right[1], "B", palette().dim);
    right_at(left, columns.right[2], "B - A", palette().dim);
}

void draw_row_tooltip(const RangeRow& row) {
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(34));
    bold_text(row.name);
    if (!row.module_path.empty()) dim_text(row.module_path);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

/// How a row begins.
enum class RowMark : uint8_t { kNone, kPart, kClosed, kOpen };

/// Returns true when a row that stands for a tensor was clicked.
bool draw_row(const Columns& columns, const RangeRow& row, bool less_is_good,
              RowMark mark = RowMark::kNone) {
    const float left = ImGui::GetCursorPosX();
    const ImVec2 start = ImGui::GetCursorPos();
    bool clicked = false;
    const float lines = columns.is_narrow && columns.with_other ? 2.0F : 1.0F;
    const float height = lines * ImGui::GetTextLineHeight() + (lines - 1) * px(2);
    if (row.allocation.valid()) {
        clicked = ImGui::Selectable("##row", false, ImGuiSelectableFlags_AllowOverlap, {0, height});
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) draw_row_tooltip(row);
        ImGui::SetCursorPos(start);
        if (mark == RowMark::kPart) ImGui::SetCursorPosX(left + em(1));
        category_swatch(row.category);
        if (mark == RowMark::kClosed || mark == RowMark::kOpen) {
            dim_text(mark == RowMark::kOpen ? ICON_CHEVRON_DOWN : ICON_CHEVRON_RIGHT);
            ImGui::SameLine(0, px(4));
        }
    }
    const float indent = ImGui::GetCursorPosX() - left;
    const float one = columns.with_other ? columns.name_width : columns.right[0] - em(kNumber_em);
    const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, {px(4), px(2)});
    colored_text(row.allocation.valid() ? palette().text : palette().dim,
                 fit_to(row.name, std::max(em(2), one - indent)));
    if (!row.allocation.valid() && ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_row_tooltip(row);
    }
    if (lines > 1) ImGui::Dummy({0, 0});
    draw_numbers(columns, left, row, less_is_good);
    if (lines > 1) ImGui::Dummy({0, px(3)});  // keeps the numbers with the name above them
    return clicked;
}

/// A tensor, or one of many layers: a click unfolds those. Returns the row that was clicked.
const RangeRow* draw_tensor_row(const Columns& columns, const RangeRow& row) {
    if (row.parts.empty()) return draw_row(columns, row, true) ? &row : nullptr;
    const ScopedId id(row.name.c_str());
    bool& is_open = *ImGui::GetStateStorage()->GetBoolRef(ImGui::GetID("open"));
    if (draw_row(columns, row, true, is_open ? RowMark::kOpen : RowMark::kClosed)) {
        is_open = !is_open;
    }
    const RangeRow* clicked = nullptr;
    for (size_t i = 0; is_open && i < row.parts.size(); ++i) {
        const ScopedId part_id(static_cast<int>(i));
        if (draw_row(columns, row.parts[i], true, RowMark::kPart)) clicked = &row.parts[i];
    }
    return clicked;
}

}  // namespace

void draw_range_tables(const PanelContext& context, const RangeView& view, PanelEvents& events) {
    const Selection& selection = context.workspace.selection();
    const ScopedFont small(fonts().text, kSmallSize);
    const Columns columns = lay_out_columns(view.has_other);
    if (!view.phase_text.empty()) note_text(view.phase_text);
    const auto table = [&](const char* title, std::string_view help,
                           const std::vector<RangeRow>& rows) {
        if (rows.empty()) return;
        const ScopedId id(title);
        draw_titles(columns, title, help);
        for (size_t i = 0; i < rows.size(); ++i) {
            const ScopedId row_id(static_cast<int>(i));
            // To free less is neither good nor bad.
            draw_row(columns, rows[i], rows[i].name != "freed");
        }
    };
    const auto tensors = [&](const char* title, std::string_view help,
                             const std::vector<RangeRow>& rows) {
        if (rows.empty()) return;
        const ScopedId id(title);
        draw_titles(columns, title, help);
        for (size_t i = 0; i < rows.size(); ++i) {
            const ScopedId row_id(static_cast<int>(i));
            const RangeRow* clicked = draw_tensor_row(columns, rows[i]);
            if (!clicked) continue;
            events.selection.tensor = {
                clicked->in_b ? selection.b : selection.a, {}, clicked->allocation};
        }
    };
    table("In this range", "", view.figures);
    tensors("Held at its end",
            view.has_other ? "What differs between A and B. Summed by module and tensor over all "
                             "layers."
                           : "Summed by module and tensor over all layers.",
            view.held);
    tensors("Allocated in it",
            "Bytes allocated in the range, summed by module and tensor over all layers.",
            view.tensors);
    table("Ops by time",
          view.counts_kernels ? "Time of the kernels and copies that the op itself launched."
                              : "Time of the calls without that of the calls in them.",
          view.ops_by_time);
    table("Ops by bytes", "Bytes allocated while the op was the innermost call.",
          view.ops_by_bytes);
}

}  // namespace app
