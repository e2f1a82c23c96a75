#include "app/panels/frontier_panel.h"

#include "app/panels/frontier_plot.h"
#include "app/panels/frontier_side.h"
#include "app/panels/gpu_list.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "profiler/trace/units.h"
#include "profiler/view/planner_view.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace app {
namespace {

using profiler::FrontierAxis;
using profiler::RecipeFrontierView;

constexpr float kSideWidth_em = 25;
constexpr int kMostBatch = 512;          // of the slider
constexpr size_t kMostRefusedLines = 8;  // in the tooltip

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    FrontierState& state;
    FrontierQuery query;  // changed by the controls
    PlannerQuery step;    // as shown
    PanelEvents& events;

    const Workspace& workspace() const { return context.workspace; }
    const FrontierPlans& plans() const { return context.workspace.frontier_plans(); }
};

// ---- toolbar --------------------------------------------------------------------------------

void draw_axis(Frame& frame) {
    FrontierAxis& axis = frame.query.axis;
    const std::string by_memory = std::string(profiler::kPeakOnGpu) + "###by_memory";
    if (toggle_button(by_memory.c_str(), axis == FrontierAxis::kPeakMemory)) {
        axis = FrontierAxis::kPeakMemory;
    }
    ImGui::SetItemTooltip("Memory and throughput of a step at one batch");
    ImGui::SameLine(0, px(3));
    if (toggle_button("Largest batch###by_batch", axis == FrontierAxis::kMaxBatch)) {
        axis = FrontierAxis::kMaxBatch;
    }
    ImGui::SetItemTooltip("The largest batch that fits, and throughput at the best batch");
}

void draw_gpu(Frame& frame) {
    const Workspace& workspace = frame.workspace();
    if (frame.state.gpu != workspace.plan_choice().gpu) frame.state.limit_bytes.reset();
    frame.state.gpu = workspace.plan_choice().gpu;
    ImGui::SetNextItemWidth(em(13));
    if (const auto* gpu = gpu_list("##gpu", workspace.gpus(), workspace.plan_choice().gpu)) {
        frame.events.plan_choice = PlanChoice{gpu->id, /*is_chosen=*/true};
    }
}

/// This slider sets the batch of the Planner's step, which both panels show.
void draw_batch(Frame& frame) {
    if (frame.query.axis == FrontierAxis::kMaxBatch) return;
    ImGui::SameLine(0, px(8));
    ImGui::SetNextItemWidth(em(9));
    auto batch = static_cast<int>(
        std::min<int64_t>(frame.step.workload.batch_size, profiler::kLargestPlannedBatch));
    const bool is_moved =
        ImGui::SliderInt("##batch", &batch, 1, std::max(batch, kMostBatch), "",
                         ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_Logarithmic);
    ImGui::SameLine(0, px(6));
    text(fmt::format("batch {}", batch));
    if (!is_moved) return;
    frame.step.workload.batch_size = batch;
    frame.step.is_chosen = true;
    frame.events.planner_query = frame.step;
}

std::string help_text(const Frame& frame, const RecipeFrontierView* view) {
    std::string help =
        "Hollow: predicted. Solid: measured. Memory is simulated at a few batches and interpolated "
        "between them, as in the Planner; with the CUDA context, without cached memory.\n"
        "Names of one word are presets; \"best\" is one of them.";
    if (view) {
        for (const std::string& note : view->notes) help += "\n· " + note;
    }
    std::vector<std::string> refused;
    for (const auto& one : frame.plans().refused()) refused.push_back(one.name + ": " + one.why);
    if (view) {
        for (const auto& one : view->refused) refused.push_back(one.name + ": " + one.why);
    }
    if (!refused.empty()) help += fmt::format("\n{} recipes are not drawn:", refused.size());
    for (size_t i = 0; i < std::min(refused.size(), kMostRefusedLines); ++i) {
        help += "\n· " + refused[i];
    }
    return help;
}

/// How many recipes are planned.
void draw_progress(const Frame& frame, const RecipeFrontierView* view) {
    const FrontierPlans& plans = frame.plans();
    const size_t done = plans.num_planned(), all = plans.num_recipes();
    ImGui::SameLine(0, px(12));
    if (plans.is_complete()) {
        dim_text(fmt::format("predicted, {} recipes", done));
    } else if (plans.error().empty() && all > 0) {
        ImGui::ProgressBar(static_cast<float>(done) / static_cast<float>(all), {em(5), em(0.5F)},
                           "");
        ImGui::SameLine(0, px(6));
        dim_text(fmt::format("{} of {} recipes planned", done, all));
    }
    ImGui::SameLine(0, px(6));
    help_marker(help_text(frame, view));
}

// ---- limit and path -------------------------------------------------------------------------

double limit_of(const Frame& frame, const RecipeFrontierView& view) {
    if (view.axis == FrontierAxis::kMaxBatch) {
        return frame.state.wanted_batch.value_or(
            static_cast<double>(frame.step.workload.batch_size));
    }
    return frame.state.limit_bytes.value_or(static_cast<double>(view.usable_bytes));
}

std::optional<size_t> dot_of_mark(const RecipeFrontierView& view, const char* letter) {
    for (const profiler::MarkedDot& mark : view.marks) {
        if (mark.letter == letter) return mark.dot;
    }
    return std::nullopt;
}

/// The path that is shown: between the two dots that are selected; to the one; else from A, or from
/// the baseline, to the best within the limit.
void choose_path(const Frame& frame, const RecipeFrontierView& view, FrontierSide& side) {
    const auto from = profiler::find_dot(view, frame.query.from);
    const auto to = profiler::find_dot(view, frame.query.to);
    side.from = dot_of_mark(view, "A");
    if (!side.from) {
        side.from =
            profiler::find_dot(view, profiler::with_optimizer_of("original", frame.step.optimizer));
    }
    side.to = side.best;
    if (from) side.to = from;
    if (from && to) {
        side.from = from;
        side.to = to;
    }
}

/// The dots along a path, as far as they are planned.
std::vector<size_t> dots_on(const RecipeFrontierView& view, const profiler::RecipePath& path,
                            const FrontierSide& side) {
    if (!side.from || path.steps.empty()) return {};
    std::vector<size_t> dots{*side.from};
    for (const profiler::PathStep& step : path.steps) {
        if (const auto dot = profiler::find_dot(view, step.recipe)) dots.push_back(*dot);
    }
    return dots;
}

// ---- what the user did ----------------------------------------------------------------------

void select_dot(Frame& frame, const std::string& recipe) {
    FrontierQuery& query = frame.query;
    const bool replaces_second = ImGui::GetIO().KeyCtrl && !query.from.empty();
    if (query.from == recipe) {
        query.from = query.to;
        query.to.clear();
    } else if (query.to == recipe) {
        query.to.clear();
    } else if (replaces_second || (!query.from.empty() && query.to.empty())) {
        query.to = recipe;
    } else {
        query.from = recipe;
        query.to.clear();
    }
}

void forget_selection(Frame& frame) {
    frame.query.from.clear();
    frame.query.to.clear();
}

void show_as_b(Frame& frame, const profiler::RecipeDot& dot) {
    if (frame.workspace().selection().a) frame.events.try_recipe = dot.recipe;
}

void capture(Frame& frame, const profiler::RecipeDot& dot) {
    PlannerQuery step = frame.step;
    step.recipes = {dot.name};  // without the optimizer, which the step has
    frame.events.fill_capture = std::move(step);
}

void apply(Frame& frame, const RecipeFrontierView& view, const FrontierInput& input) {
    if (input.limit) {
        auto& limit = view.axis == FrontierAxis::kMaxBatch ? frame.state.wanted_batch
                                                           : frame.state.limit_bytes;
        limit = input.limit;
    }
    if (input.hovered) draw_dot_tooltip(view, *input.hovered);
    if (input.clicked) select_dot(frame, view.dots[*input.clicked].recipe);
    if (input.clicked_nothing) forget_selection(frame);
    if (input.double_clicked) show_as_b(frame, view.dots[*input.double_clicked]);
}

// ---- the picture ----------------------------------------------------------------------------

void draw_filled(Frame& frame, const RecipeFrontierView& view) {
    const double limit = limit_of(frame, view);
    const bool by_batch = view.axis == FrontierAxis::kMaxBatch;
    const std::string limit_text =
        by_batch ? fmt::format("batch {:.0f}", limit) : profiler::format_bytes(std::llround(limit));
    const Selection& selection = frame.workspace().selection();
    FrontierSide side{.limit_text = (by_batch ? "for at least " : "within ") + limit_text,
                      .best = profiler::best_within(view, limit),
                      .can_show_as_b = selection.a && selection.a->step};
    choose_path(frame, view, side);
    profiler::RecipePath path;
    if (side.from && side.to) path = profiler::recipe_path(view, *side.from, *side.to);
    const FrontierLook look{.limit = limit,
                            .limit_text = limit_text,
                            .best = side.best,
                            .path = dots_on(view, path, side),
                            .color_a = recipe_color(selection.look_a.color),
                            .color_b = recipe_color(selection.look_b.color)};
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool is_wide = space.x > em(kSideWidth_em + 22);
    const float gap = px(14);
    const ImVec2 size = is_wide ? ImVec2{space.x - em(kSideWidth_em) - gap, space.y}
                                : ImVec2{space.x, std::max(em(15), space.y * 0.6F)};
    const FrontierInput input = draw_frontier_plot(view, look, size, frame.state.picture);
    if (is_wide) ImGui::SameLine(0, gap);
    const ScopedChild column("##side", {is_wide ? em(kSideWidth_em) : 0, 0});
    if (column) {
        const bool has_selection = !frame.query.from.empty();
        const FrontierSideInput asked = draw_frontier_side(view, path, side, has_selection);
        if (asked.show_as_b) show_as_b(frame, view.dots[*asked.show_as_b]);
        if (asked.capture) capture(frame, view.dots[*asked.capture]);
        if (asked.forget_selection) forget_selection(frame);
    }
    apply(frame, view, input);
}

void draw_picture(Frame& frame, const RecipeFrontierView* view) {
    const FrontierPlans& plans = frame.plans();
    const std::string& slot_error = frame.workspace().slots().frontier.error();
    const std::string error = plans.error().empty() ? slot_error : plans.error();
    if (view && !view->dots.empty()) return draw_filled(frame, *view);
    if (!error.empty()) {
        return empty_state(ICON_TRIANGLE_EXCLAMATION, "The recipes cannot be planned", error);
    }
    if (plans.is_complete() && view) {
        const std::string why = view->refused.empty() ? "" : view->refused.front().why;
        return empty_state(ICON_TRIANGLE_EXCLAMATION,
                           fmt::format("No recipe runs on {}", view->gpu), why);
    }
    working_line("Planning the first recipes ...");
}

}  // namespace

PanelEvents draw_frontier_panel(const PanelContext& context, FrontierState& state) {
    PanelEvents events;
    const Workspace& workspace = context.workspace;
    Frame frame{context, state, workspace.frontier_query(),
                shown_query(workspace.planner_query(), workspace.selection()), events};
    frame.query.is_drawn = true;
    events.grows_frontier = true;
    const RecipeFrontierView* view = workspace.slots().frontier.view();
    draw_axis(frame);
    ImGui::SameLine(0, px(12));
    draw_gpu(frame);
    draw_batch(frame);
    draw_progress(frame, view);
    draw_picture(frame, view);
    if (frame.query != workspace.frontier_query()) events.frontier_query = frame.query;
    return events;
}

}  // namespace app
