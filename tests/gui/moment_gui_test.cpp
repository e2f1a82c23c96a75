// The moment that the window is made for, with temposcope-worker: a switch of the Layer explorer is
// toggled, and in the next frame every panel shows the other memory, batch and headline.
#include "tests/gui/test_traces.h"
#include "tests/gui/test_window.h"

#include <algorithm>

namespace tests {
namespace {

app::Workspace& workspace() { return window().workspace(); }

/// What GuiFunc sees at the begin of each frame.
struct Watch {
    bool is_on = false;
    int empty_frames = 0;
    int released_at = 0;      // the frame in which the mouse button was released
    int shown_at = 0;         // the first frame with another B
    size_t traces_asked = 0;  // in that frame
    app::DocumentPtr b_before;
};
Watch watch;

bool has_every_picture() {
    const app::Slots& slots = workspace().slots();
    return slots.compare.view() && slots.timeline.view() && slots.ribbon.view() &&
           slots.kernels.view() && slots.layers.view() && workspace().views().ledger.view();
}

void watch_frame(ImGuiTestContext* /*c*/) {
    if (!watch.is_on) return;
    if (!has_every_picture()) ++watch.empty_frames;
    if (ImGui::IsMouseReleased(0)) watch.released_at = ImGui::GetFrameCount();
    if (watch.shown_at > 0 || workspace().selection().b == watch.b_before) return;
    watch.shown_at = ImGui::GetFrameCount();
    watch.traces_asked = workspace().traces_asked();
}

void show(ImGuiTestContext* c) {
    window().reset(c);
    window().ui().panels.layer = {};
    workspace().apply({.queries = {.plan = app::GpuForm(),
                                   .planner = app::PlannerForm(),
                                   .frontier = app::FrontierQuery()}});
    const app::DocumentPtr original = predicted_step();
    IM_CHECK_SILENT(original != nullptr);
    workspace().add(original);
    for (const char* panel : {"timeline", "kernels", "ledger", "layer"}) {
        window().show_panel(c, panel);
    }
}

void wait_until_made_ahead(ImGuiTestContext* c) {
    wait_until(c, [] { return workspace().is_made_ahead() && workspace().settled(); });
}

void start_watching() { watch = {.is_on = true, .b_before = workspace().selection().b}; }

std::string recipe_of_b() {
    const auto& b = workspace().selection().b;
    return b ? b->canonical_recipe.value_or("") : "";
}

bool headline_says(const char* text) {
    return workspace().headline().find(text) != std::string::npos;
}

/// Until the user chooses a GPU, plans are for that of A.
GUI_TEST_WATCHED(moment, plans_are_for_the_gpu_of_a, watch_frame) {
    window().reset(c);
    workspace().apply({.queries = {.plan = app::GpuForm()}});
    workspace().add(predicted_step("h100-sxm"));
    window().settle(c);
    IM_CHECK_STR_EQ(workspace().queries().plan.gpu.c_str(), "h100-sxm");
    IM_CHECK_STR_EQ(workspace().comparison()->view.planned_on.c_str(), "NVIDIA H100 SXM");
    workspace().apply({.queries = {.plan = app::GpuForm{"t4", true}}});
    IM_CHECK(workspace().queries().plan.is_chosen);
    workspace().apply({.queries = {.plan = app::GpuForm{"h100-sxm", true}}});
    IM_CHECK(!workspace().queries().plan.is_chosen);
}

GUI_TEST_WATCHED(moment, a_value_says_what_it_alone_changes, watch_frame) {
    show(c);
    wait_until_made_ahead(c);
    const auto effect = workspace().effect_of("gelu=in_place");
    IM_CHECK_SILENT(effect.has_value());
    IM_CHECK(!effect->empty());
    IM_CHECK_STR_EQ(effect->back().first.c_str(), "step time");
    IM_CHECK(workspace().effect_of("original")->empty());
    IM_CHECK_LT(workspace().peak_change_bytes("gelu=in_place").value_or(0), 0);
    IM_CHECK_EQ(workspace().peak_change_bytes("original").value_or(1), 0);
    IM_CHECK(!workspace().peak_change_bytes("gelu=in_place,layer_norm=from_output").has_value());
    window().take_picture(c, "layer_switches");
    IM_CHECK(!workspace().effect_of("gelu=in_place,layer_norm=from_output").has_value());
}

GUI_TEST_WATCHED(moment, a_switch_is_answered_in_the_next_frame, watch_frame) {
    show(c);
    wait_until_made_ahead(c);
    IM_CHECK(workspace().selection().b == nullptr);
    const size_t asked_before = workspace().traces_asked();
    start_watching();
    c->ItemClick("//###layer/**/gelu/in_place");
    IM_CHECK_STR_EQ(recipe_of_b().c_str(), "gelu=in_place");
    IM_CHECK_EQ(watch.shown_at, watch.released_at + 1);
    // It came from what was made ahead, with its plan.
    IM_CHECK_EQ(watch.traces_asked, asked_before);
    IM_CHECK_EQ(watch.empty_frames, 0);
    IM_CHECK_GT(workspace().peak_change_bytes("original").value_or(0), 0);  // against B now
    IM_CHECK(headline_says("less memory"));
    IM_CHECK(headline_says("would fit a batch of"));
    const app::Slots& slots = workspace().slots();
    IM_CHECK_EQ(slots.timeline.view()->traces.size(), size_t{2});
    const auto& ribbons = slots.layers.view()->ribbons;
    IM_CHECK(std::ranges::any_of(ribbons, [](const profiler::LayerRibbon& ribbon) {
        return ribbon.presence == profiler::Presence::kDisappeared && ribbon.name == "gelu_input";
    }));
    IM_CHECK(slots.planned_compare.view() != nullptr);
    IM_CHECK_EQ(workspace().pair_figures().size(), size_t{2});
    window().take_picture(c, "moment");
}

/// A recipe that nobody made ahead: the old pictures stay until the new ones are there.
GUI_TEST_WATCHED(moment, nothing_is_empty_while_it_is_predicted, watch_frame) {
    show(c);
    start_watching();
    workspace().apply({.recipes = {.try_recipe = "gelu=in_place,layer_norm=from_output"}});
    wait_until(c, [] { return recipe_of_b() == "gelu=in_place,layer_norm=from_output"; });
    window().settle(c);
    IM_CHECK_EQ(watch.empty_frames, 0);
    IM_CHECK(headline_says("would fit a batch of"));
}

GUI_TEST_WATCHED(moment, a_trial_takes_the_place_of_the_one_before, watch_frame) {
    show(c);
    const auto try_recipe = [&](const char* recipe) {
        workspace().apply({.recipes = {.try_recipe = recipe}});
        wait_until(c, [&] { return recipe_of_b() == recipe; });
        window().settle(c);
    };
    try_recipe("gelu=in_place");
    IM_CHECK(workspace().prediction() == workspace().selection().b);
    try_recipe("gelu=recompute");
    IM_CHECK_EQ(workspace().documents().size(), size_t{2});
    c->ItemClick("//###layer/**/###keep_trial");
    try_recipe("gelu=in_place");
    IM_CHECK_EQ(workspace().documents().size(), size_t{3});
    // A's own recipe: the prediction is gone, what was kept stays.
    window().apply(c, {.recipes = {.try_recipe = "original"}});
    IM_CHECK(workspace().selection().b == nullptr);
    IM_CHECK_EQ(workspace().documents().size(), size_t{2});
}

GUI_TEST_WATCHED(moment, a_switch_of_the_planner_moves_the_window_too, watch_frame) {
    show(c);
    window().resize(c, 1600, 1500);  // the switches stand below the other controls
    window().show_panel(c, "planner");
    start_watching();
    c->ItemClick("//###planner/**/gelu/in_place");
    wait_until(c, [] { return recipe_of_b() == "gelu=in_place"; });
    window().settle(c);
    IM_CHECK_EQ(watch.empty_frames, 0);
    IM_CHECK(headline_says("would fit a batch of"));
    const app::PlannerResult* plan = workspace().slots().planner.view();
    IM_CHECK_SILENT(plan != nullptr);
    IM_CHECK(std::ranges::any_of(plan->view.recipes, [](const profiler::PlannerRecipe& recipe) {
        return recipe.name() == "gelu=in_place" && recipe.row.max_batch_size.value_or(0) > 0;
    }));
    window().take_picture(c, "moment_planner");
    window().resize(c, 1600, 1000);
}

GUI_TEST_WATCHED(moment, a_prediction_can_be_cancelled, watch_frame) {
    show(c);
    workspace().apply({.recipes = {.try_recipe = "tempo-packed"}});
    IM_CHECK_SILENT(workspace().work().has_value());
    window().apply(c, {.recipes = {.cancel_work = true}});
    IM_CHECK(workspace().wanted_recipe().empty());
    IM_CHECK(workspace().selection().b == nullptr);
}

}  // namespace
}  // namespace tests
