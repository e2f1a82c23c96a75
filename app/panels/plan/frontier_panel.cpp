#include "app/panels/plan/frontier_panel.h"

#include "app/panels/parts/form_rows.h"
#include "app/panels/plan/frontier_plot.h"
#include "app/widgets/fonts.h"
#include "app/widgets/icons.h"
#include "app/widgets/scoped.h"
#include "app/widgets/text.h"
#include "app/widgets/theme.h"
#include "models/config/layer_recipes.h"
#include "profiler/trace/units.h"
#include "profiler/view/plan/planner_view.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace app {
namespace {

using profiler::FrontierAxis;
using profiler::PathStep;
using profiler::RecipeDot;
using profiler::RecipeFrontierView;
using profiler::RecipePath;

constexpr float kSideWidth_em = 25;
constexpr int kMostBatch = 512;          // of the slider
constexpr size_t kMostRefusedLines = 8;  // in the tooltip

/// One frame's drawing: what the helpers below share.
struct Frame {
    const PanelContext& context;
    FrontierState& state;
    FrontierQuery query;  // changed by the controls
    PlannerForm step;     // as shown
    PanelEvents& events;

    const Workspace& workspace() const { return context.workspace; }
    const FrontierPlans& plans() const { return context.workspace.frontier_plans(); }
};

// ---- toolbar --------------------------------------------------------------------------------

void draw_axis(Frame& frame) {
    const std::string by_memory = std::string(profiler::kPeakOnGpu) + "###by_memory";
    choose_one<FrontierAxis>(frame.query.axis,
                             {{by_memory.c_str(), "Memory and throughput of a step at one batch",
                               FrontierAxis::kPeakMemory},
                              {"Largest batch###by_batch",
                               "The largest batch that fits, and throughput at the best batch",
                               FrontierAxis::kMaxBatch}},
                             px(3));
}

void draw_gpu(Frame& frame) {
    const Workspace& workspace = frame.workspace();
    if (frame.state.gpu != workspace.queries().plan.gpu) frame.state.limit_bytes.reset();
    frame.state.gpu = workspace.queries().plan.gpu;
    ImGui::SetNextItemWidth(em(13));
    if (const auto* gpu = gpu_list("##gpu", workspace.gpus(), workspace.queries().plan.gpu)) {
        frame.events.queries.plan = GpuForm{gpu->id, /*is_chosen=*/true};
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
    frame.events.queries.planner = frame.step;
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
    const auto add = [&](std::span<const profiler::RefusedRecipe> recipes) {
        for (const auto& one : recipes) refused.push_back(one.name + ": " + one.why);
    };
    add(frame.plans().refused());
    if (view) add(view->refused);
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

void show_as_b(Frame& frame, const RecipeDot& dot) {
    if (frame.workspace().selection().a) frame.events.recipes.try_recipe = dot.recipe;
}

void capture(Frame& frame, const RecipeDot& dot) {
    PlannerForm step = frame.step;
    step.recipes = {dot.name};  // without the optimizer, which the step has
    frame.events.capture.fill = std::move(step);
}

// ---- the column beside the picture ----------------------------------------------------------

/// What the column beside the picture describes.
struct FrontierSide {
    std::string limit_text;  // "within 16.0 GiB"
    std::optional<size_t> best;
    std::optional<size_t> from;  // ends of the path
    std::optional<size_t> to;
    bool can_show_as_b = false;
};

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows figures_of(const RecipeFrontierView& view, const RecipeDot& dot) {
    const profiler::PlanFigures& figures = dot.figures;
    const std::string at = fmt::format(" at batch {}", view.batch_size);
    Rows rows{{profiler::kPeakOnGpu + at, figures.memory_text},
              {"Step" + at, figures.step_text},
              {"Sequences/s" + at, figures.rate_text},
              {profiler::kLargestBatch, figures.max_batch_text},
              {profiler::kBestRate, figures.best_text}};
    return rows;
}

void draw_figures(const Rows& rows) {
    if (!ImGui::BeginTable("##figures", 2, ImGuiTableFlags_SizingStretchProp)) return;
    for (const auto& [label, value] : rows) {
        ImGui::TableNextRow();
        ImGui::TableNextColumn();
        dim_text(label);
        ImGui::TableNextColumn();
        right_text(value);
    }
    ImGui::EndTable();
}

void draw_buttons(Frame& frame, const FrontierSide& side, const RecipeDot& dot) {
    {
        const ScopedDisabled nothing(!side.can_show_as_b);
        if (ImGui::Button(ICON_CODE_COMPARE "  Show as B###show_as_b")) show_as_b(frame, dot);
    }
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
        ImGui::SetTooltip("%s", side.can_show_as_b
                                    ? "Predict the step of A with this recipe and show it as B"
                                    : "Open a trace first: B is its step with this recipe");
    }
    ImGui::SameLine(0, px(5));
    if (ImGui::Button(ICON_RECORD "  Capture to verify###verify")) capture(frame, dot);
    ImGui::SetItemTooltip(
        "Put this recipe into the Capture panel. Its trace is then drawn as a solid dot, joined to "
        "the prediction");
}

void draw_best(Frame& frame, const RecipeFrontierView& view, const FrontierSide& side) {
    const ScopedId id("best");
    dim_text("Fastest " + side.limit_text);
    if (!side.best) {
        warning_note(palette().bad,
                     view.axis == profiler::FrontierAxis::kPeakMemory
                         ? "No recipe needs so little. Move the limit to the right, or choose a "
                           "smaller batch."
                         : "No recipe fits so large a batch. Move the limit to the left.");
        return;
    }
    const RecipeDot& dot = view.dots[*side.best];
    {
        const ScopedColor ink(ImGuiCol_Text, palette().good);
        const ScopedFont bold(fonts().bold);
        wrapped_text(dot.title);
    }
    note_text(dot.detail);
    draw_figures(figures_of(view, dot));
    draw_buttons(frame, side, dot);
}

void draw_near_tie(const RecipeFrontierView& view, const FrontierSide& side) {
    const auto smaller = side.best ? profiler::smaller_near_tie(view, *side.best) : std::nullopt;
    if (!smaller) return;
    ImGui::Dummy({0, px(8)});
    dim_text("Almost as fast");
    const RecipeDot& dot = view.dots[*smaller];
    note_text(fmt::format("{}: {}, {} sequences/s.", dot.title, dot.figures.memory_text,
                          dot.figures.rate_text));
}

void draw_path_row(const PathStep& step, const std::string& number) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    dim_text(number);
    ImGui::TableNextColumn();
    text(fit_to(step.change, ImGui::GetContentRegionAvail().x));
    ImGui::SetItemTooltip("%s\n%s", step.change.c_str(), step.recipe.c_str());
    for (const std::string* value : {&step.memory_text, &step.time_text, &step.gain_text}) {
        ImGui::TableNextColumn();
        right_text(*value);
    }
}

void draw_path_table(const RecipePath& path) {
    const ImGuiTableFlags flags =
        ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerH;
    const ScopedFont small(fonts().text, kSmallSize);
    if (!ImGui::BeginTable("##path", 5, flags)) return;
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, em(0.8F));
    ImGui::TableSetupColumn("Switch to", ImGuiTableColumnFlags_WidthStretch);
    constexpr std::array<const char*, 3> kFigures{"Memory", "Step", "Gain"};
    for (const char* figure : kFigures) ImGui::TableSetupColumn(figure);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    ImGui::TableNextColumn();
    ImGui::TableNextColumn();
    ImGui::TableHeader("Switch to");
    for (const char* figure : kFigures) {
        ImGui::TableNextColumn();
        right_text(figure);
    }
    int number = 0;
    for (const PathStep& step : path.steps) draw_path_row(step, std::to_string(++number));
    if (path.steps.size() > 1) {
        const ScopedFont bold(fonts().bold, kSmallSize);
        draw_path_row(path.total, "");
    }
    ImGui::EndTable();
}

void draw_path(Frame& frame, const RecipeFrontierView& view, const RecipePath& path,
               const FrontierSide& side) {
    if (!side.from || !side.to) return;
    const ScopedId id("path");
    const RecipeDot &from = view.dots[*side.from], &to = view.dots[*side.to];
    dim_text("What to switch, in this order");
    ImGui::SameLine(0, px(6));
    help_marker(
        "From the first dot to the second, one switch a step, each from its own plan. First what "
        "saves memory and costs no time, then by memory saved for each millisecond lost.\nClick a "
        "dot and then another to choose the two; Ctrl + click replaces the second.");
    if (!frame.query.from.empty()) {
        ImGui::SameLine(0, px(6));
        if (ImGui::SmallButton(ICON_XMARK "###forget")) forget_selection(frame);
        ImGui::SetItemTooltip("Forget the two dots");
    }
    {
        const ScopedFont bold(fonts().bold);
        wrapped_text(from.title + "  " ICON_ARROW_RIGHT "  " + to.title);
    }
    if (!path.why_none.empty()) note_text(path.why_none);
    if (!path.steps.empty()) draw_path_table(path);
    if (side.to != side.best) draw_buttons(frame, side, to);
}

void draw_measured(const RecipeFrontierView& view) {
    if (view.measured.empty()) return;
    dim_text("Measured");
    ImGui::SameLine(0, px(6));
    help_marker(
        "Open traces of this step: solid in the picture, with a line to their prediction. The CUDA "
        "context of the plan is added to their memory. A trace of the CPU tells nothing of the "
        "time on a GPU; it is a diamond at its predicted throughput.");
    for (const profiler::MeasuredDot& dot : view.measured) {
        const ScopedFont bold(fonts().bold);
        colored_text(palette().warn, ICON_CIRCLE);
        ImGui::SameLine(0, px(6));
        text(fit_to(dot.name, ImGui::GetContentRegionAvail().x));
        const ScopedFont regular(fonts().text);
        note_text(fmt::format("{} {}", profiler::kPeakOnGpu, dot.memory_text));
        if (!dot.rate_text.empty()) note_text("Sequences/s " + dot.rate_text);
    }
}

/// The fastest recipe within the limit, the path between two dots, and what was measured.
void draw_side(Frame& frame, const RecipeFrontierView& view, const RecipePath& path,
               const FrontierSide& side) {
    const bool has_selection = !frame.query.from.empty();
    if (has_selection) {  // what was asked for comes first
        draw_path(frame, view, path, side);
        ImGui::Dummy({0, px(8)});
    }
    draw_best(frame, view, side);
    if (!has_selection) {
        ImGui::Dummy({0, px(8)});
        draw_path(frame, view, path, side);
    }
    draw_near_tie(view, side);
    ImGui::Dummy({0, px(8)});
    draw_measured(view);
}

/// What a dot is and needs.
void draw_dot_tooltip(const RecipeFrontierView& view, size_t index) {
    const RecipeDot& dot = view.dots[index];
    if (!ImGui::BeginTooltip()) return;
    ImGui::PushTextWrapPos(em(26));
    bold_text(dot.title);
    note_text(dot.detail);
    readout_table(figures_of(view, dot));
    for (const profiler::MeasuredDot& measured : view.measured) {
        if (measured.dot != index) continue;
        colored_text(palette().warn, "Measured peak on the GPU " + measured.memory_text);
        if (!measured.rate_text.empty()) {
            colored_text(palette().warn, "Measured sequences/s " + measured.rate_text);
        }
    }
    if (dot.beaten_by) {
        dim_text(fmt::format("{} is at least as good in both.", view.dots[*dot.beaten_by].title));
    }
    if (!dot.figures.fits) {
        colored_text(palette().bad,
                     fmt::format("Batch {} does not fit on {}.", view.batch_size, view.gpu));
    }
    dim_text("Predicted. Click to select, double click to show as B.");
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
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

/// The shown path: between the two selected dots, or to the only selected dot; else from A, or from
/// the baseline, to the best dot within the limit.
void choose_path(const Frame& frame, const RecipeFrontierView& view, FrontierSide& side) {
    const auto from = profiler::find_dot(view, frame.query.from);
    const auto to = profiler::find_dot(view, frame.query.to);
    side.from = dot_of_mark(view, "A");
    if (!side.from) {
        side.from =
            profiler::find_dot(view, models::with_optimizer_of("original", frame.step.optimizer));
    }
    side.to = side.best;
    if (from) side.to = from;
    if (from && to) {
        side.from = from;
        side.to = to;
    }
}

/// The dots along a path, as far as they are planned.
std::vector<size_t> dots_on(const RecipeFrontierView& view, const RecipePath& path,
                            const FrontierSide& side) {
    if (!side.from || path.steps.empty()) return {};
    std::vector<size_t> dots{*side.from};
    for (const PathStep& step : path.steps) {
        if (const auto dot = profiler::find_dot(view, step.recipe)) dots.push_back(*dot);
    }
    return dots;
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
    RecipePath path;
    if (side.from && side.to) path = profiler::recipe_path(view, *side.from, *side.to);
    const FrontierOverlay overlay{.limit = limit,
                                  .limit_text = limit_text,
                                  .best = side.best,
                                  .path = dots_on(view, path, side),
                                  .color_a = side_color(0),
                                  .color_b = side_color(1)};
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool is_wide = space.x > em(kSideWidth_em + 22);
    const float gap = px(14);
    const ImVec2 size = is_wide ? ImVec2{space.x - em(kSideWidth_em) - gap, space.y}
                                : ImVec2{space.x, std::max(em(15), space.y * 0.6F)};
    const FrontierInput input = draw_frontier_plot(view, overlay, size, frame.state.picture);
    if (is_wide) ImGui::SameLine(0, gap);
    const ScopedChild column("##side", {is_wide ? em(kSideWidth_em) : 0, 0});
    if (column) draw_side(frame, view, path, side);
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
    if (plans_nothing(workspace.queries().planner, workspace.selection())) {
        draw_nothing_planned(workspace, events);
        return events;
    }
    Frame frame{context, state, workspace.queries().frontier,
                shown_form(workspace.queries().planner, workspace.selection()), events};
    const bool is_in_front = !ImGui::IsWindowAppearing();  // in its first frame each tab is drawn
    frame.query.is_drawn |= is_in_front;
    events.queries.grows_frontier = is_in_front;
    const RecipeFrontierView* view = workspace.slots().frontier.view();
    draw_axis(frame);
    ImGui::SameLine(0, px(12));
    draw_gpu(frame);
    draw_batch(frame);
    draw_progress(frame, view);
    draw_picture(frame, view);
    if (frame.query != workspace.queries().frontier) events.queries.frontier = frame.query;
    return events;
}

}  // namespace app
