#include "tests/gui/test_window.h"

namespace tests {
namespace {

void shows_a_column_for_each_recipe(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    IM_CHECK(window().workspace().slots().compare.view() != nullptr);
    const profiler::CompareView* view = &window().workspace().slots().compare.view()->view;
    IM_CHECK_EQ(view->columns.size(), size_t{3});
    IM_CHECK(view->columns[0].is_baseline);
    IM_CHECK(view->has_max_batch);
    IM_CHECK(view->has_throughput);
    IM_CHECK(!view->sentence.empty());
}

void a_click_on_a_recipe_makes_it_b(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
    c->ItemClick("//###compare/##recipes/$$2/##row");
    window().settle(c);
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo-packed");
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "original");
    c->KeyPress(ImGuiKey_X);
    window().settle(c);
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "tempo-packed");
}

void a_click_on_a_category_highlights_it(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    IM_CHECK(!window().workspace().selection().category);
    const auto category = window().workspace().slots().compare.view()->view.categories.front();
    const std::string item =
        "//###compare/$$" + std::to_string(static_cast<int>(category)) + "/##category";
    c->ItemClick(item.c_str());
    c->Yield(2);
    IM_CHECK(window().workspace().selection().category == category);
    c->ItemClick(item.c_str());
    c->Yield(2);
    IM_CHECK(!window().workspace().selection().category);
}

void welcomes_when_nothing_is_open(ImGuiTestContext* c) {
    window().reset(c);
    c->ItemClick(
        "//###compare/"
        "\xef\x81\xbc  Open traces");
    c->Yield(2);
    IM_CHECK(c->WindowInfo("Open traces").Window != nullptr);
    c->KeyPress(ImGuiKey_Escape);
    c->Yield(2);
}

}  // namespace

void register_compare_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "compare", name)->TestFunc = run;
    };
    add("shows_a_column_for_each_recipe", shows_a_column_for_each_recipe);
    add("a_click_on_a_recipe_makes_it_b", a_click_on_a_recipe_makes_it_b);
    add("a_click_on_a_category_highlights_it", a_click_on_a_category_highlights_it);
    add("welcomes_when_nothing_is_open", welcomes_when_nothing_is_open);
}

}  // namespace tests
