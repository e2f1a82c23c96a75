// The Planner in the real window. The worker of these tests traces no step, so every recipe is
// refused.
#include "tests/gui/test_window.h"

#include "app/workspace/planner_form.h"

namespace tests {
namespace {

const app::PlannerForm& planner_form() { return window().workspace().queries().planner; }

void show(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().reset(c);
    window().ui().panels.planner = {};
    window().workspace().apply({.queries = {.planner = app::PlannerForm()}});
    if (!recipes.empty()) window().open(c, recipes);
    window().focus(c, "//###planner");
}

GUI_TEST(planner, says_why_there_is_no_plan) {
    show(c, {});
    IM_CHECK(planner_form().is_drawn);
    const app::PlannerResult* result = window().workspace().slots().planner.view();
    IM_CHECK_SILENT(result != nullptr);
    IM_CHECK_SILENT(!result->view.recipes.empty());
    IM_CHECK(!result->view.recipes.front().row.reason.empty());
    window().take_picture(c, "planner_error");
}

GUI_TEST(planner, starts_with_the_step_of_a) {
    show(c, {"original"});
    const auto workload = window().workspace().selection().a;
    IM_CHECK_SILENT(workload != nullptr);
    IM_CHECK(!planner_form().is_chosen);
    const app::PlannerForm shown =
        app::shown_form(app::PlannerForm(), window().workspace().selection());
    IM_CHECK_EQ(planner_form().workload.batch_size, shown.workload.batch_size);
    IM_CHECK_EQ(planner_form().workload.model.num_layers, shown.workload.model.num_layers);
}

GUI_TEST(planner, a_control_changes_the_step) {
    show(c, {});
    c->SetRef("//###planner");
    c->ItemInputValue("**/##layers", 3);
    c->Yield(2);
    IM_CHECK(planner_form().is_chosen);
    IM_CHECK_EQ(planner_form().workload.model.num_layers, int64_t{3});
}

GUI_TEST(planner, capture_this_fills_the_form) {
    show(c, {});
    app::PlannerForm wanted;
    wanted.workload.seq_len = 256;
    wanted.workload.batch_size = 3;
    wanted.recipes = {"tempo"};
    wanted.is_chosen = true;
    window().apply(c, {.queries = {.planner = wanted}});
    const app::StepForm before = window().ui().panels.capture.form;
    window().click(c, "//###planner/**/###capture_this");
    const app::StepForm& form = window().ui().panels.capture.form;
    IM_CHECK_STR_EQ(form.model.c_str(), "bert-large");
    IM_CHECK_EQ(form.batch_size, int64_t{3});
    IM_CHECK_EQ(form.seq_len, int64_t{256});
    IM_CHECK_EQ(form.recipes.names.size(), size_t{1});
    window().ui().panels.capture.form = before;
}

GUI_TEST(planner, the_command_prints_the_same_plan) {
    show(c, {});
    c->ItemClick("//###planner/**/###copy_command");
    const std::string copied = ImGui::GetClipboardText();
    IM_CHECK_STR_EQ(copied.c_str(),
                    "temposcope plan --model bert-large --head mlm --precision fp32 --seq 512 "
                    "--recipe original,tempo,checkpoint,flash --gpu a100-80gb --batch 8");
}

/// A plan of two recipes, as the workers of these tests make none.
void show_a_plan(ImGuiTestContext* c) {
    show(c, {});
    profiler::Gpu gpu;
    gpu.id = "t4";
    gpu.name = "NVIDIA T4";
    gpu.usable_memory_bytes.value = 14.6 * 0x1p30;
    profiler::Plan plan;
    for (const auto& [name, max_batch] : {std::pair("original", 14), std::pair("tempo", 28)}) {
        profiler::PlanRow row;
        row.gpu = gpu;
        row.workload.recipe_name = name;
        row.max_batch_size = max_batch;
        row.time_accuracy = profiler::TimeAccuracy{.error = 0.2};
        for (const int64_t batch : {int64_t{1}, int64_t{max_batch}}) {
            profiler::MemoryPoint point{.batch_size = batch};
            point.by_category[0] = int64_t{2} << 30;
            point.by_category[3] = (int64_t{12} << 30) * batch / max_batch;
            point.needed_bytes = (int64_t{1} << 29) + point.by_category[0] + point.by_category[3];
            row.memory_curve.push_back(point);
            const int64_t step_ns = 10'000'000 + batch * 1'000'000;
            row.curve.push_back(
                {batch, step_ns, static_cast<double>(batch) * 1e9 / static_cast<double>(step_ns)});
        }
        plan.rows.push_back(row);
    }
    app::PlannerResult result{.view = profiler::build_planner_view(plan)};
    window().ui().panels.planner.shown = std::make_shared<const app::PlannerResult>(result);
    c->Yield(3);
}

const app::PlannerState& state() { return window().ui().panels.planner; }

GUI_TEST(planner, pins_stay_while_the_step_changes) {
    show_a_plan(c);
    c->ItemClick("//###planner/**/###pin");
    IM_CHECK_EQ(state().pins.size(), size_t{1});
    c->ItemInputValue("//###planner/**/##layers", 12);
    window().settle(c);
    IM_CHECK_EQ(state().pins.size(), size_t{1});
    IM_CHECK_STR_EQ(state().pins[0].recipe.name().c_str(), "original");
    window().take_picture(c, "planner_pins");
    window().click(c, "//###planner/**/###unpin");
    IM_CHECK(state().pins.empty());
}

GUI_TEST(planner, past_the_limit_it_offers_what_fits) {
    show_a_plan(c);
    app::PlannerForm wanted = planner_form();
    wanted.workload.batch_size = 20;
    wanted.is_chosen = true;
    window().apply(c, {.queries = {.planner = wanted}});
    window().take_picture(c, "planner_fixes");
    window().click(c, "//###planner/**/$$1/###fix");
    IM_CHECK_STR_EQ(state().focus.c_str(), "tempo");
    window().ui().panels.planner.focus = "original";
    c->Yield(2);
    window().click(c, "//###planner/**/$$0/###fix");
    IM_CHECK_EQ(planner_form().workload.batch_size, int64_t{14});
}

GUI_TEST(planner, the_hidden_size_moves_by_heads) {
    show(c, {});
    app::PlannerForm wanted = planner_form();
    app::set_hidden_size(wanted.workload.model, 8);
    IM_CHECK_EQ(wanted.workload.model.hidden_size, int64_t{512});
    IM_CHECK_EQ(wanted.workload.model.intermediate_size, int64_t{2048});
    app::set_hidden_size(wanted.workload.model, 16);
    IM_CHECK(wanted.workload.model == planner_form().workload.model);
    c->ItemClick("//###planner/**/##hidden");  // in the middle of the slider
    c->Yield(2);
    const models::ModelConfig& model = planner_form().workload.model;
    IM_CHECK_GT(model.hidden_size, wanted.workload.model.hidden_size);
    IM_CHECK_EQ(model.hidden_size, 64 * model.num_heads);
    IM_CHECK_EQ(model.intermediate_size, 4 * model.hidden_size);
}

GUI_TEST(planner, a_switch_makes_a_recipe_of_its_own) {
    window().resize(c, 1600, 1500);  // the switches stand below the other controls
    show(c, {});
    window().click(c, "//###planner/**/gelu/in_place");
    const std::vector<std::string> first{"original", "gelu=in_place", "tempo", "checkpoint",
                                         "flash"};
    IM_CHECK(planner_form().recipes == first);
    IM_CHECK_STR_EQ(state().focus.c_str(), "gelu=in_place");
    IM_CHECK(!planner_form().is_chosen);  // it still follows A
    // The next switch changes the new recipe, and back at the preset it is gone.
    window().click(c, "//###planner/**/gelu/recompute");
    IM_CHECK_STR_EQ(planner_form().recipes[1].c_str(), "gelu=recompute");
    window().take_picture(c, "planner_switches");
    window().click(c, "//###planner/**/gelu/original");
    IM_CHECK(planner_form().recipes == app::PlannerForm().recipes);
    IM_CHECK_STR_EQ(state().focus.c_str(), "original");
    window().resize(c, 1600, 1000);
}

}  // namespace
}  // namespace tests
