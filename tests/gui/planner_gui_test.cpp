// The Planner in the real window. The worker of these tests traces no step, so every recipe is
// refused.
#include "tests/gui/test_window.h"

#include "app/workspace/planner_query.h"

namespace tests {
namespace {

const app::PlannerQuery& query() { return window().workspace().planner_query(); }

void show(ImGuiTestContext* c, const std::vector<std::string>& recipes) {
    window().reset(c);
    window().ui().panels.planner = {};
    window().workspace().apply({.planner_query = app::PlannerQuery()});
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
    IM_CHECK(!result->view.recipes.front().why.empty());
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
    window().workspace().apply({.planner_query = wanted});
    c->Yield(2);
    const app::CaptureForm before = window().ui().panels.capture.form;
    c->ItemClick("//###planner/**/###capture_this");
    c->Yield(3);
    const app::CaptureForm& form = window().ui().panels.capture.form;
    IM_CHECK_STR_EQ(form.model.c_str(), "bert-large");
    IM_CHECK_EQ(form.batch_size, int64_t{3});
    IM_CHECK_EQ(form.seq_len, int64_t{256});
    IM_CHECK_EQ(form.recipes.size(), size_t{1});
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

}  // namespace

void register_planner_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "planner", name)->TestFunc = run;
    };
    add("says_why_there_is_no_plan", says_why_there_is_no_plan);
    add("starts_with_the_step_of_a", starts_with_the_step_of_a);
    add("a_control_changes_the_step", a_control_changes_the_step);
    add("capture_this_fills_the_form", capture_this_fills_the_form);
    add("the_command_prints_the_same_plan", the_command_prints_the_same_plan);
}

}  // namespace tests
