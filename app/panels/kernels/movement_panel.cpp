#include "app/panels/kernels/movement_panel.h"

#include "app/panels/kernels/movement_side.h"
#include "app/panels/parts/gpu_list.h"
#include "app/panels/parts/unfilled.h"
#include "app/widgets/check_box.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace app {
namespace {

using profiler::MovementOps;
using profiler::MovementScope;
using profiler::MovementView;

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
    if (toggle_button("Ops that ran###ops_run", ops == MovementOps::kRun)) ops = MovementOps::kRun;
    ImGui::SetItemTooltip("Each op that ran, with its time");
    ImGui::SameLine(0, px(3));
    if (toggle_button("Logical ops###ops_logical", ops == MovementOps::kLogical)) {
        ops = MovementOps::kLogical;
    }
    ImGui::SetItemTooltip(
        "As papers count: bias, dropout and residual are passes of their own, and nothing is "
        "recomputed. Each stands at the limit of the card");
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
                            : "no card is known";
    if (!ImGui::BeginCombo("##card", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
    if (ImGui::Selectable("The card of the trace", frame.query.gpu.empty())) frame.query.gpu = "";
    ImGui::Separator();
    if (const auto* gpu = gpu_rows(gpus, frame.query.gpu)) frame.query.gpu = gpu->id;
    ImGui::EndCombo();
}

void draw_help(const MovementView& view) {
    std::string help =
        "Roofline: an op cannot be above the slope (bandwidth) or the flat line (peak). Area: time "
        "in one step. Bytes are those of all inputs and outputs, each element once. An op without "
        "arithmetic stands at the left, as far below the slope as its bandwidth is below the "
        "card's.\nDrag a rectangle to list the ops in it and to mark them in the Kernels panel. "
        "Click an op to select its longest call "
        "in all panels.\nThe larger of % of peak and MUE is bold: the limit that the op is nearer "
        "to.";
    for (const std::string& note : view.notes) help += "\n· " + note;
    ImGui::SameLine(0, px(8));
    help_marker(help);
}

// ---- selection ------------------------------------------------------------------------------

/// The row that holds the selected call.
std::optional<size_t> selected_row(const MovementFrame& frame, const MovementView& view,
                                   size_t trace) {
    const auto& activity = frame.selection.activity;
    const DocumentPtr& document = trace == 0 ? frame.selection.a : frame.selection.b;
    if (!activity || !document || activity->in_b != (trace == 1) || !activity->op.valid()) {
        return std::nullopt;
    }
    return profiler::row_of(view.traces[trace], *document->trace, activity->op);
}

void select_row(MovementFrame& frame, const MovementView& view, size_t trace, size_t row) {
    const profiler::Id<profiler::Op> call = view.traces[trace].rows[row].row.call;
    if (!call.valid()) return;
    frame.events.selection.activity =
        PickedActivity{trace == 1, {profiler::ActivityKind::kOp, call.value}};
}

/// The calls of the ops in the rectangle. Logical ops are no calls that ran.
std::optional<profiler::CallMarks> marks_in(const MovementFrame& frame, const MovementView& view,
                                            const MovementBox& box) {
    if (frame.query.ops == MovementOps::kLogical) return std::nullopt;
    profiler::CallMarks marks;
    for (size_t t = 0; t < view.traces.size(); ++t) {
        for (const profiler::MovementDot& dot : view.traces[t].dots) {
            if (!box.contains(dot)) continue;
            const profiler::MovementRow& row = view.traces[t].rows[dot.row].row;
            marks.keys[t].push_back({.kind = profiler::ActivityKind::kOp,
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
                              input.hovered->trace, frame.selection);
    }
    if (input.box) {
        frame.state.box = input.box;
        frame.state.marks = marks_in(frame, view, *input.box);
        if (frame.state.marks) frame.events.selection.marks.emplace(frame.state.marks);
    }
    if (input.clicked_nothing) {
        forget_box(frame);
        frame.events.selection.clear_activity = true;
    }
    if (!input.clicked) return;
    const auto& trace = view.traces[input.clicked->trace];
    frame.state.table_of = input.clicked->trace;
    select_row(frame, view, input.clicked->trace, trace.dots[input.clicked->dot].row);
}

// ---- the picture ----------------------------------------------------------------------------

/// The sentence that says most, and why figures are missing.
void draw_headline(const MovementView& view) {
    if (!view.headline.empty()) {
        ImGui::PushTextWrapPos(0);
        bold_text(view.headline);
        ImGui::PopTextWrapPos();
    }
    if (!view.traces.front().per_layer.empty()) {
        ImGui::PushTextWrapPos(0);
        text(view.traces.front().per_layer);
        ImGui::PopTextWrapPos();
    }
    for (const std::string& note : view.notes) {
        colored_text(palette().warn, ICON_TRIANGLE_EXCLAMATION);
        ImGui::SameLine(0, px(6));
        note_text(note);
    }
}

void draw_side(MovementFrame& frame, const MovementView& view, std::optional<size_t> selected) {
    draw_class_shares(view, frame.selection);
    ImGui::Dummy({0, px(4)});
    const MovementSideInput input =
        draw_movement_table(view, {.selection = frame.selection,
                                   .query = frame.query,
                                   .table_of = frame.state.table_of,
                                   .box = frame.state.box,
                                   .selected = selected,
                                   .is_other_table = frame.state.had_times != view.has_times});
    frame.state.had_times = view.has_times;
    if (input.clicked) select_row(frame, view, frame.state.table_of, *input.clicked);
    if (input.table_of) frame.state.table_of = *input.table_of;
    if (input.forget_box) forget_box(frame);
    if (input.query) frame.query = *input.query;
}

void draw_filled(MovementFrame& frame, const MovementView& view) {
    frame.state.table_of = std::min(frame.state.table_of, view.traces.size() - 1);
    MovementLook look{.color_a = recipe_color(frame.selection.look_a.color),
                      .color_b = recipe_color(frame.selection.look_b.color),
                      .box = frame.state.box,
                      .selected = {}};
    for (size_t t = 0; t < view.traces.size(); ++t) {
        look.selected[t] = selected_row(frame, view, t);
    }
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool is_wide = space.x > em(kLeastSide_em + kLeastPlot_em);
    const float gap = px(12);
    const float side = std::max(em(kLeastSide_em), space.x * kSideShare);
    const ImVec2 size = is_wide ? ImVec2{space.x - side - gap, space.y}
                                : ImVec2{space.x, std::max(em(16), space.y * 0.58F)};
    const MovementInput input = draw_movement_plot(view, look, size, frame.state.picture);
    if (is_wide) ImGui::SameLine(0, gap);
    const ScopedChild column("##side", {is_wide ? side : 0, 0}, 0, ImGuiWindowFlags_NoScrollbar);
    if (column) draw_side(frame, view, look.selected[frame.state.table_of]);
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
