#include "app/panels/peak/ledger_cells.h"

#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace app {
namespace {

using profiler::LedgerColumn;
using profiler::LedgerViewRow;
using profiler::Presence;

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

}  // namespace

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

}  // namespace app
