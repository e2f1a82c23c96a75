// The Recipe frontier in the real window: with the worker of the other tests, which traces no step,
// and with temposcope-worker, which plans every recipe of a small step.
#include "tests/gui/test_window.h"

#include "app/workspace/frontier_plans.h"
#include "profiler/view/plan/recipe_frontier_view.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace tests {
namespace {

using profiler::RecipeFrontierView;

app::Workspace& workspace() { return window().workspace(); }
const app::FrontierQuery& query() { return workspace().queries().frontier; }
const app::FrontierPlans& plans() { return workspace().frontier_plans(); }
app::FrontierState& state() { return window().ui().panels.frontier; }
const RecipeFrontierView* view() { return workspace().slots().frontier.view(); }

ImVec2 point_on(size_t dot) { return state().picture.at(*view(), dot); }

/// A small step, which is planned in seconds.
app::PlannerForm small_step() {
    app::PlannerForm step;
    step.workload.model = *models::find_model("bert-base");
    step.workload.model.num_layers = 2;
    step.workload.precision = models::Precision::kFp16;
    step.workload.seq_len = 128;
    step.workload.batch_size = 8;
    step.is_chosen = true;
    return step;
}

void show(ImGuiTestContext* c) {
    window().reset(c);
    state() = {};
    workspace().apply({.queries = {.plan = app::GpuForm{"a100-80gb", true},
                                   .planner = small_step(),
                                   .frontier = app::FrontierQuery()}});
    app::show_panel(window().ui(), "frontier");
    c->Yield(3);
}

/// Until every recipe is planned, and the panel has drawn them.
void show_all(ImGuiTestContext* c) {
    show(c);
    wait_until(c, [] { return plans().is_complete() || !plans().error().empty(); });
    window().settle(c);
    IM_CHECK_STR_EQ(plans().error().c_str(), "");
    IM_CHECK_SILENT(view() != nullptr);
    IM_CHECK_SILENT(view()->frontier.size() >= 2U);
}

/// Between two neighbours of the frontier.
struct Gap {
    float middle_x = 0;
    size_t left = 0;  // the dot
};
Gap widest_gap() {
    Gap gap;
    float widest = 0;
    for (size_t i = 1; i < view()->frontier.size(); ++i) {
        const float left = point_on(view()->frontier[i - 1]).x;
        const float right = point_on(view()->frontier[i]).x;
        if (right - left <= widest) continue;
        widest = right - left;
        gap = {(left + right) / 2, view()->frontier[i - 1]};
    }
    return gap;
}

GUI_TEST(frontier_refused, says_why_nothing_can_be_planned) {
    show(c);
    IM_CHECK(query().is_drawn);
    wait_until(c, [] { return !plans().error().empty(); });
    window().settle(c);
    IM_CHECK(view() != nullptr && view()->dots.empty());
    window().take_picture(c, "frontier_error");
}

GUI_TEST(frontier_planned, plans_every_recipe) {
    show(c);
    wait_until(c, [] { return !plans().error().empty() || (view() && view()->dots.size() >= 4); });
    window().take_running_picture(c, "frontier_growing");
    show_all(c);
    IM_CHECK_EQ(plans().num_planned(), plans().num_recipes());
    IM_CHECK_GE(view()->dots.size(), size_t{100});
    window().take_picture(c, "frontier");
    // Leaving the step and coming back plans nothing again.
    workspace().apply({.queries = {.plan = app::GpuForm{"t4", true}}});
    c->Yield(3);
    IM_CHECK(!plans().is_complete());
    workspace().apply({.queries = {.plan = app::GpuForm{"a100-80gb", true}}});
    c->Yield(3);
    IM_CHECK(plans().is_complete());
}

GUI_TEST(frontier_planned, dragging_the_limit_moves_the_best) {
    show_all(c);
    const auto fastest = profiler::best_within(*view(), view()->last_x);
    IM_CHECK_SILENT(fastest.has_value());
    const app::FrontierPicture& picture = state().picture;
    const float y = picture.corner.y + picture.size.y * 0.5F;
    c->MouseMoveToPos({picture.limit_x, y});
    c->MouseDown(0);
    const Gap gap = widest_gap();
    c->MouseMoveToPos({gap.middle_x, y});
    c->MouseUp(0);
    c->Yield(2);
    IM_CHECK_SILENT(state().limit_bytes.has_value());
    const auto best = profiler::best_within(*view(), *state().limit_bytes);
    IM_CHECK(best == gap.left);
    IM_CHECK(best != fastest);
    IM_CHECK(query().from.empty());  // the press selected nothing
    window().take_picture(c, "frontier_limit");
}

GUI_TEST(frontier_planned, two_clicks_show_the_path) {
    show_all(c);
    const size_t first = view()->frontier.back(), last = view()->frontier.front();
    window().click_at(c, point_on(first));
    IM_CHECK_STR_EQ(query().from.c_str(), view()->dots[first].recipe.c_str());
    c->SleepNoSkip(1, 0.5F);  // no double click
    window().click_at(c, point_on(last));
    IM_CHECK_STR_EQ(query().to.c_str(), view()->dots[last].recipe.c_str());
    const profiler::RecipePath path = profiler::recipe_path(*view(), first, last);
    IM_CHECK_GE(path.steps.size(), size_t{1});
    for (const profiler::PathStep& step : path.steps) IM_CHECK(step.is_planned);
    window().take_picture(c, "frontier_path", true);
    window().click(c, "//###frontier/**/###forget");
    IM_CHECK(query().from.empty() && query().to.empty());
}

/// A dot that lies apart, of a recipe that runs in fp32, too: fused attention and layers do not.
std::optional<size_t> dot_of_fp32() {
    const auto& dots = view()->dots;
    for (size_t i = 0; i < dots.size(); ++i) {
        const std::string& recipe = dots[i].recipe;
        const ImVec2 point = point_on(i);
        bool is_apart = true;
        for (size_t other = 0; other < dots.size(); ++other) {
            const ImVec2 distance = point_on(other) - point;
            is_apart &= other == i || std::hypot(distance.x, distance.y) > 12;
        }
        const bool runs = recipe.find("attention=") == std::string::npos &&
                          recipe.find("fusion=") == std::string::npos && recipe != "original";
        if (runs && is_apart) return i;
    }
    return std::nullopt;
}

GUI_TEST(frontier_planned, a_double_click_asks_for_b) {
    show_all(c);
    window().open(c, {"original"});
    window().focus(c, "//###frontier");
    const std::optional<size_t> dot = dot_of_fp32();
    IM_CHECK_SILENT(dot.has_value());
    const std::string recipe = view()->dots[*dot].recipe;
    c->MouseMoveToPos(point_on(*dot));
    c->MouseDoubleClick(0);
    wait_until(c, [] { return workspace().wanted_recipe().empty(); });
    window().settle(c);
    IM_CHECK_SILENT(workspace().selection().b != nullptr);
    IM_CHECK_STR_EQ(workspace().selection().b->canonical_recipe.value_or("").c_str(),
                    recipe.c_str());
}

GUI_TEST(frontier_planned, capture_to_verify_fills_the_form) {
    show_all(c);
    const app::StepForm before = window().ui().panels.capture.form;
    const auto best = profiler::best_within(*view(), static_cast<double>(view()->usable_bytes));
    IM_CHECK_SILENT(best.has_value());
    const std::string name = view()->dots[*best].name;
    window().click(c, "//###frontier/**/###verify");
    const app::StepForm& form = window().ui().panels.capture.form;
    IM_CHECK_EQ(form.recipes.names.size(), size_t{1});
    IM_CHECK_STR_EQ(form.recipes.names.front().c_str(), name.c_str());
    IM_CHECK_EQ(form.batch_size, int64_t{8});
    window().ui().panels.capture.form = before;
}

GUI_TEST(frontier_planned, the_largest_batch_is_the_other_axis) {
    show_all(c);
    window().click(c, "//###frontier/###by_batch");
    IM_CHECK(query().axis == profiler::FrontierAxis::kMaxBatch);
    IM_CHECK(view()->axis == profiler::FrontierAxis::kMaxBatch);
    c->MouseMoveToPos(point_on(view()->frontier.back()));
    c->Yield(2);
    window().take_picture(c, "frontier_batch", true);
}

}  // namespace
}  // namespace tests
