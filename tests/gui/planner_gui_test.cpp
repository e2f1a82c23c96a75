// The Planner in the real window. The worker of these tests traces no step, so every recipe is
// refused.
#include "tests/gui/test_window.h"

#include "app/workspace/planner_query.h"

namespace tests {
namespace {

const app::PlannerQuery& query() { return window().workspace().queries().planner; }

void show(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().reset(c);
    window().ui().panels.planner = {};
    window().workspace().apply({.queries = {.planner = app::PlannerQuery()}});
    if (!recipes.empty()) window().open(c, recipes);
    c->WindowFocus("//###planner");
    window().settle(c);
}

void says_why_there_is_no_plan(ImGuiTestContext* c) {
    show(c, {});
    IM_CHECK(query().is_drawn);
    const app::PlannerResult* result = window().workspace().slots().planner.view();
    IM_CHECK_SILENT(result != nullptr);
    IM_CHECK_SILENT(!result->view.recipes.empty());
    IM_CHECK(!result->view.recipes.front().row.reason.empty());
    window().take_picture(c, "planner_error");
}

void starts_with_the_step_of_a(ImGuiTestContext* c) {
    show(c, {"original"});
    const auto workload = window().workspace().selection().a;
    IM_CHECK_SILENT(workload != nullptr);
    IM_CHECK(!query().is_chosen);
    const app::PlannerQuery shown =
        app::shown_query(app::PlannerQuery(), window().workspace().selection());
    IM_CHECK_EQ(query().workload.batch_size, shown.workload.batch_size);
    IM_CHECK_EQ(query().workload.model.num_layers, shown.workload.model.num_layers);
}

void a_control_changes_the_step(ImGuiTestContext* c) {
    show(c, {});
    c->SetRef("//###planner");
    c->ItemInputValue("**/##layers", 3);
    c->Yield(2);
    IM_CHECK(query().is_chosen);
    IM_CHECK_EQ(query().workload.model.num_layers, int64_t{3});
}

void capture_this_fills_the_form(ImGuiTestContext* c) {
    show(c, {});
    app::PlannerQuery wanted;
    wanted.workload.seq_len = 256;
    wanted.workload.batch_size = 3;
    wanted.recipes = {"tempo"};
    wanted.is_chosen = true;
    window().workspace().apply({.queries = {.planner = wanted}});
    c->Yield(2);
    const app::StepForm before = window().ui().panels.capture.form;
    c->ItemClick("//###planner/**/###capture_this");
    c->Yield(3);
    const app::StepForm& form = window().ui().panels.capture.form;
    IM_CHECK_STR_EQ(form.model.c_str(), "bert-large");
    IM_CHECK_EQ(form.batch_size, int64_t{3});
    IM_CHECK_EQ(form.seq_len, int64_t{256});
    IM_CHECK_EQ(form.recipes.names.size(), size_t{1});
    window().ui().panels.capture.form = before;
}

void the_command_prints_the_same_plan(ImGuiTestContext* c) {
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
    static profiler::Gpu gpu;  // the rows of the plan point to it
    gpu.id = "t4";
    gpu.name = "NVIDIA T4";
    gpu.usable_memory_bytes.value = 14.6 * 0x1p30;
    profiler::Plan plan;
    for (const auto& [name, max_batch] : {std::pair("original", 14), std::pair("tempo", 28)}) {
        profiler::PlanRow row;
        row.gpu = &gpu;
        row.workload.recipe_name = name;
        row.max_batch_size = max_batch;
        row.times_are_calibrated = false;
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

void pins_stay_while_the_step_changes(ImGuiTestContext* c) {
    show_a_plan(c);
    c->ItemClick("//###planner/**/###pin");
    IM_CHECK_EQ(state().pins.size(), size_t{1});
    c->ItemInputValue("//###planner/**/##layers", 12);
    window().settle(c);
    IM_CHECK_EQ(state().pins.size(), size_t{1});
    IM_CHECK_STR_EQ(state().pins[0].recipe.name().c_str(), "original");
    window().take_picture(c, "planner_pins");
    c->ItemClick("//###planner/**/###unpin");
    c->Yield(2);
    IM_CHECK(state().pins.empty());
}

void past_the_limit_it_offers_what_fits(ImGuiTestContext* c) {
    show_a_plan(c);
    app::PlannerQuery wanted = query();
    wanted.workload.batch_size = 20;
    wanted.is_chosen = true;
    window().workspace().apply({.queries = {.planner = wanted}});
    c->Yield(3);
    window().take_picture(c, "planner_fixes");
    c->ItemClick("//###planner/**/$$1/###fix");
    c->Yield(2);
    IM_CHECK_STR_EQ(state().focus.c_str(), "tempo");
    window().ui().panels.planner.focus = "original";
    c->Yield(2);
    c->ItemClick("//###planner/**/$$0/###fix");
    c->Yield(2);
    IM_CHECK_EQ(query().workload.batch_size, int64_t{14});
}

void the_hidden_size_moves_by_heads(ImGuiTestContext* c) {
    show(c, {});
    app::PlannerQuery wanted = query();
    app::set_hidden_size(wanted.workload.model, 8);
    IM_CHECK_EQ(wanted.workload.model.hidden_size, int64_t{512});
    IM_CHECK_EQ(wanted.workload.model.intermediate_size, int64_t{2048});
    app::set_hidden_size(wanted.workload.model, 16);
    IM_CHECK(wanted.workload.model == query().workload.model);
    c->ItemClick("//###planner/**/##hidden");  // in the middle of the slider
    c->Yield(2);
    const models::ModelConfig& model = query().workload.model;
    IM_CHECK_GT(model.hidden_size, wanted.workload.model.hidden_size);
    IM_CHECK_EQ(model.hidden_size, 64 * model.num_heads);
    IM_CHECK_EQ(model.intermediate_size, 4 * model.hidden_size);
}

void a_switch_makes_a_recipe_of_its_own(ImGuiTestContext* c) {
    window().resize(c, 1600, 1500);  // the switches stand below the other controls
    show(c, {});
    c->ItemClick("//###planner/**/gelu/in_place");
    c->Yield(2);
    const std::vector<std::string> first{"original", "gelu=in_place", "tempo", "checkpoint",
                                         "flash"};
    IM_CHECK(query().recipes == first);
    IM_CHECK_STR_EQ(state().focus.c_str(), "gelu=in_place");
    IM_CHECK(!query().is_chosen);  // it still follows A
    // The next switch changes the new recipe, and back at the preset it is gone.
    c->ItemClick("//###planner/**/gelu/recompute");
    c->Yield(2);
    IM_CHECK_STR_EQ(query().recipes[1].c_str(), "gelu=recompute");
    window().take_picture(c, "planner_switches");
    c->ItemClick("//###planner/**/gelu/original");
    c->Yield(2);
    IM_CHECK(query().recipes == app::PlannerQuery().recipes);
    IM_CHECK_STR_EQ(state().focus.c_str(), "original");
    window().resize(c, 1600, 1000);
}

}  // namespace

void register_planner_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "planner", name)->TestFunc = run;
    };
    add("says_why_there_is_no_plan", says_why_there_is_no_plan);
    add("starts_with_the_step_of_a", starts_with_the_step_of_a);
    add("a_control_changes_the_step", a_control_changes_the_step);
    add("capture_this_fills_the_form", capture_this_fills_the_form);
    add("pins_stay_while_the_step_changes", pins_stay_while_the_step_changes);
    add("past_the_limit_it_offers_what_fits", past_the_limit_it_offers_what_fits);
    add("the_hidden_size_moves_by_heads", the_hidden_size_moves_by_heads);
    add("a_switch_makes_a_recipe_of_its_own", a_switch_makes_a_recipe_of_its_own);
    add("the_command_prints_the_same_plan", the_command_prints_the_same_plan);
}

}  // namespace tests
