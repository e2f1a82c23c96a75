#include "app/panels/memory/blocks_details.h"

#include "app/panels/memory/blocks_what_if.h"
#include "app/widgets/fonts.h"
#include "app/widgets/hatch.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::LiveBlocksView;
using profiler::SegmentMapView;
using profiler::SegmentPiece;
using profiler::SegmentRow;
using AllocationId = profiler::Id<profiler::Allocation>;

// ---- live blocks ----------------------------------------------------------------------------

void draw_live_header(const Workspace& workspace, const LiveBlocksView& view, PanelEvents& events) {
    const bool at_peak = !workspace.selection().moment_ns;
    bold_text(at_peak ? "Live at the peak of A" : "Live at the moment");
    if (!at_peak) {
        ImGui::SameLine();
        const float button = em(2.6F);
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() +
                             std::max(0.0F, ImGui::GetContentRegionAvail().x - button));
        if (ImGui::SmallButton("Peak###peak")) events.selection.moment_ns = std::optional<double>();
        ImGui::SetItemTooltip("Go back to the peak of A (Escape)");
    }
    const float width = ImGui::GetContentRegionAvail().x;
    dim_text(fit_to(view.moment_text + "   " + view.total_text, width));
    if (!view.gone_text.empty()) colored_text(palette().good, fit_to(view.gone_text, width));
}

void draw_live_row(const PanelContext& context, const LiveBlocksView::Row& row, bool with_other,
                   PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const ScopedId id(row.allocation.value);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const ImVec2 start = ImGui::GetCursorPos();
    if (ImGui::Selectable("##row", is_selected(context, row.allocation),
                          ImGuiSelectableFlags_SpanAllColumns)) {
        pick_block(context, row.allocation, events);
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {
        draw_block_readout(context, row.allocation);
    }
    ImGui::SetCursorPos(start);
    const auto& picked = workspace.selection().category;
    const bool faded = picked && *picked != row.category;
    category_swatch(row.category, faded || row.gone);
    const float name_width = ImGui::GetContentRegionAvail().x;
    colored_text(faded ? palette().dim : palette().text, fit_to(row.name, name_width));
    ImGui::TableNextColumn();
    dim_text(fit_path_to(row.module_path, ImGui::GetContentRegionAvail().x));
    ImGui::TableNextColumn();
    right_text(row.size_text);
    if (!with_other) return;
    ImGui::TableNextColumn();
    const ScopedColor color(ImGuiCol_Text, row.gone ? palette().good : palette().dim);
    right_text(row.other_text);
}

// ---- segments -------------------------------------------------------------------------------

constexpr float kSizes_em = 13;  // address and size
constexpr float kNotes_em = 14;  // what is free

/// A row of the segment map: its text at the left, its bar, and what is free at the right.
struct SegmentColumns {
    float size_x = 0;  // right end of the size
    float bar_x = 0;
    float bar_width = 0;  // of the largest segment
    float free_x = 0;
};

void fill_piece(ImDrawList* draw, ImVec2 upper, ImVec2 lower, const SegmentPiece& piece,
                bool faded) {
    using State = SegmentPiece::State;
    if (lower.x - upper.x > px(4)) lower.x -= 1;
    switch (piece.state) {
        case State::kUsed:
            draw->AddRectFilled(upper, lower,
                                with_alpha(category_color(piece.category), faded ? 0.2F : 0.9F));
            break;
        case State::kPending:
            fill_category(draw, upper, lower, profiler::Category::kUnknown, 0.8F, px(4));
            break;
        case State::kFree:
            draw->AddRectFilled(upper, lower, palette().plot);
            draw->AddRect(upper, lower, with_alpha(palette().dim, 0.45F));
            break;
        case State::kMixed: {
            const double used = 1 - static_cast<double>(piece.free_bytes) /
                                        static_cast<double>(std::max<int64_t>(1, piece.size_bytes));
            draw->AddRectFilled(upper, lower,
                                with_alpha(palette().dim, 0.15F + 0.5F * static_cast<float>(used)));
            break;
        }
    }
}

void draw_piece_readout(const PanelContext& context, const SegmentPiece& piece) {
    using State = SegmentPiece::State;
    if (piece.allocation.valid()) return draw_block_readout(context, piece.allocation);
    if (!ImGui::BeginTooltip()) return;
    if (piece.state == State::kMixed) {
        bold_text(fmt::format("{} pieces, {}", profiler::format_count(piece.count),
                              profiler::format_bytes(piece.size_bytes)));
        dim_text(fmt::format("{} of it is free; each piece is narrower than a pixel",
                             profiler::format_bytes(piece.free_bytes)));
    } else {
        bold_text(profiler::format_exact_bytes(piece.size_bytes) + " free");
    }
    ImGui::EndTooltip();
}

void draw_segment_row(const PanelContext& context, const SegmentMapView& view,
                      const SegmentRow& row, const SegmentColumns& columns, PanelEvents& events) {
    const Workspace& workspace = context.workspace;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight() + px(3);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float text_y = corner.y + px(1);
    const bool is_explained = &row == &view.rows[std::min(view.cause_row, view.rows.size() - 1)];
    draw->AddText({corner.x, text_y}, is_explained ? palette().accent : palette().dim,
                  row.address_text.c_str());
    draw->AddText({corner.x + columns.size_x - text_width(row.size_text), text_y}, palette().text,
                  row.size_text.c_str());
    const double scale = columns.bar_width / static_cast<double>(view.largest_segment_bytes);
    const float left = corner.x + columns.bar_x;
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool in_row =
        ImGui::IsWindowHovered() && mouse.y >= corner.y && mouse.y < corner.y + height;
    for (const SegmentPiece& piece : row.pieces) {
        const auto x = [&](int64_t bytes) {
            return std::round(left + static_cast<float>(static_cast<double>(bytes) * scale));
        };
        const ImVec2 upper{x(piece.start_bytes), corner.y + px(2)};
        const ImVec2 lower{std::max(upper.x + 1, x(piece.start_bytes + piece.size_bytes)),
                           corner.y + height - px(2)};
        const auto& picked = workspace.selection().category;
        fill_piece(draw, upper, lower, piece, picked && *picked != piece.category);
        if (piece.allocation.valid() && is_selected(context, piece.allocation)) {
            draw->AddRect(upper, lower, palette().text, 0, px(2));
        }
        if (!in_row || mouse.x < upper.x || mouse.x >= lower.x) continue;
        draw_piece_readout(context, piece);
        if (piece.allocation.valid() && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
            pick_block(context, piece.allocation, events);
        }
    }
    const std::string note = row.free_text + (row.kind_text.empty() ? "" : "   " + row.kind_text);
    draw->AddText({corner.x + columns.free_x, text_y}, palette().dim, note.c_str());
    ImGui::Dummy({columns.free_x, height});
    if (in_row && mouse.x < left && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        wanted_query(context, events).segment = row.address;
    }
    if (in_row && mouse.x < left) ImGui::SetTooltip("Click to see why it was taken");
}

/// Why the chosen or newest segment was taken. A click selects the block that it was taken for.
void draw_cause(const PanelContext& context, const SegmentMapView& view, PanelEvents& events) {
    if (view.cause_text.empty()) return;
    colored_text(palette().accent, view.cause_title + ":");
    ImGui::SameLine(0, px(5));
    ImGui::PushTextWrapPos(0);
    text(view.cause_text);
    ImGui::PopTextWrapPos();
    if (view.cause_request.valid() && ImGui::IsItemClicked()) {
        pick_block(context, view.cause_request, events);
    }
}

}  // namespace

const DocumentPtr& shown_document(const PanelContext& context) {
    const Selection& selection = context.workspace.selection();
    return shown_trace(selection, context.views.queries.blocks) == 0 ? selection.a : selection.b;
}

void pick_block(const PanelContext& context, AllocationId allocation, PanelEvents& events) {
    if (is_selected(context, allocation)) {
        events.selection.clear_tensor = true;
        return;
    }
    const DocumentPtr& document = shown_document(context);
    const auto storage =
        document->trace->allocations.get<&profiler::Allocation::storage>(allocation);
    events.selection.tensor = {document, storage, allocation};
}

bool is_selected(const PanelContext& context, AllocationId allocation) {
    const Selection& selection = context.workspace.selection();
    const auto& tensor = selection.tensor;
    const bool in_b = shown_trace(selection, context.views.queries.blocks) == 1;
    return tensor && tensor->in_b == in_b && tensor->allocation == allocation;
}

void draw_block_readout(const PanelContext& context, AllocationId allocation) {
    if (!ImGui::BeginTooltip()) return;
    const profiler::BlockReadout readout =
        context.workspace.read_block(context.views.queries.blocks, allocation);
    ImGui::PushTextWrapPos(em(38));
    bold_text(readout.title);
    ImGui::PopTextWrapPos();
    readout_table(readout.rows);
    ImGui::EndTooltip();
}

BlocksQuery& wanted_query(const PanelContext& context, PanelEvents& events) {
    if (!events.window.blocks) events.window.blocks = context.views.queries.blocks;
    return *events.window.blocks;
}

void draw_live_blocks(const PanelContext& context, const LiveBlocksView& view,
                      PanelEvents& events) {
    draw_live_header(context.workspace, view, events);
    const bool with_other = !view.gone_text.empty();
    const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH;
    const ScopedStyle padding(ImGuiStyleVar_CellPadding, {px(4), px(2)});
    const ScopedFont font(fonts().text, kSmallSize);
    if (!ImGui::BeginTable("##live", with_other ? 4 : 3, flags)) return;
    ImGui::TableSetupColumn("Block", ImGuiTableColumnFlags_WidthStretch, 1.0F);
    ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 1.1F);
    ImGui::TableSetupColumn("Size", ImGuiTableColumnFlags_WidthFixed, em(5));
    if (with_other) ImGui::TableSetupColumn("B holds", ImGuiTableColumnFlags_WidthFixed, em(5));
    if (with_other) {
        ImGui::TableSetupScrollFreeze(0, 1);
        const ScopedColor dim(ImGuiCol_Text, palette().dim);
        ImGui::TableHeadersRow();
    }
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view.rows.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            draw_live_row(context, view.rows[static_cast<size_t>(i)], with_other, events);
        }
    }
    if (!view.rest_text.empty()) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(view.rest_text);
    }
    ImGui::EndTable();
}

int segment_width(float width) {
    return static_cast<int>(std::max(em(4), width - kSizes_em * em(1) - kNotes_em * em(1)));
}

void draw_segments(const PanelContext& context, const SegmentMapView& view, PanelEvents& events) {
    const ScopedFont font(fonts().text, kSmallSize);
    draw_segment_choice(context, events);
    dim_text(fit_to(
        fmt::format("{} {}. {}", profiler::format_count(static_cast<int64_t>(view.rows.size())),
                    view.rows.size() == 1 ? "segment" : "segments", view.summary),
        ImGui::GetContentRegionAvail().x));
    draw_cause(context, view, events);
    const ScopedChild rows("##segments");
    if (!rows) return;
    SegmentColumns columns;
    columns.size_x = em(kSizes_em - 0.8F);
    columns.bar_x = em(kSizes_em);
    columns.bar_width = static_cast<float>(segment_width(ImGui::GetContentRegionAvail().x));
    columns.free_x = columns.bar_x + columns.bar_width + em(0.8F);
    const ScopedStyle spacing(ImGuiStyleVar_ItemSpacing, {0, 0});
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view.rows.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            draw_segment_row(context, view, view.rows[static_cast<size_t>(i)], columns, events);
        }
    }
}

}  // namespace app
