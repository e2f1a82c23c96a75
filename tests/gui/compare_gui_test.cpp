#include "tests/gui/test_traces.h"
#include "tests/gui/test_window.h"

#include <set>

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

/// The headline says what B saves and what it costs against A, whichever these are.
void the_headline_follows_a_and_b(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo", "tempo-packed"});
    const std::string tempo = window().workspace().headline();
    IM_CHECK(tempo.find("tempo ") == 0);
    IM_CHECK(tempo.find("less memory than original") != std::string::npos);
    // One measured step each: nobody knows how much their times spread.
    IM_CHECK(tempo.find(" time a step") == std::string::npos);
    c->KeyPress(ImGuiKey_X);
    window().settle(c);
    const std::string swapped = window().workspace().headline();
    IM_CHECK(swapped.find("original ") == 0);
    IM_CHECK(swapped.find("more memory than tempo") != std::string::npos);
    c->KeyPress(ImGuiKey_X);
    c->ItemClick("//###compare/##recipes/$$2/##row");
    window().settle(c);
    IM_CHECK(window().workspace().headline().find("tempo-packed ") == 0);
}

/// A and B at their peaks, at A's peak, at the end of forward, and what they keep.
void memory_of_a_and_b_at_four_moments(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    const profiler::PairView* pair = window().workspace().slots().pair.view();
    IM_CHECK_SILENT(pair != nullptr);
    IM_CHECK_EQ(pair->moments.size(), size_t{4});
    IM_CHECK_EQ(pair->moments[0].bars[1].size_bytes,
                window().workspace().selection().b->index->peak().allocated_bytes);
    IM_CHECK_EQ(pair->moments[3].bars[0].size_bytes,
                window().workspace().selection().a->index->ledger().total_bytes);
    c->ItemClick("//###compare/A and B");
    window().take_picture(c, "compare_a_and_b");
    IM_CHECK(window().ui().panels.compare.shows_pair);
    c->ItemClick("//###compare/Recipes");
    c->Yield(2);
    IM_CHECK(!window().ui().panels.compare.shows_pair);
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

/// Opens `count` recipes whose names are as long as those of real experiments; one has 200 letters.
void open_many(ImGuiTestContext* c, int count) {
    window().reset(c);
    const auto folder = window().folder() / "many";
    std::filesystem::remove_all(folder);
    for (int i = 0; i < count; ++i) {
        std::string name = "tempo-gelu_in_place-layers_" + std::to_string(i);
        if (i == 0) name = "original";
        if (i == 2) name = "a_name_without_an_end_" + std::string(178, 'x');
        write_named_step(
            folder / ("step_" + std::to_string(i) + ".tscope"),
            {.name = name, .recipe = i == 0 ? "original" : "tempo", .with_sweep = true});
    }
    window().workspace().open({folder});
    window().settle(c);
    std::filesystem::remove_all(folder);
}

/// From seven recipes on each is a row with its whole name, and no two look alike.
void many_recipes_are_rows(ImGuiTestContext* c) {
    for (const int count : {10, 24}) {
        open_many(c, count);
        const profiler::CompareView& view = window().workspace().comparison()->view;
        IM_CHECK_EQ(view.columns.size(), static_cast<size_t>(count));
        std::set<size_t> colors;
        for (const auto& column : view.columns) colors.insert(column.color);
        IM_CHECK_EQ(colors.size(), static_cast<size_t>(count));
        window().take_picture(c, "compare_" + std::to_string(count) + "_files");
        IM_CHECK(c->ItemExists("//###compare/**/$$5/##name"));
        c->ItemClick("//###compare/**/$$5/##name");
        window().settle(c);
        const auto b = window().workspace().document_of_column(5);
        IM_CHECK(b != nullptr);
        IM_CHECK(window().workspace().selection().b == b);
        const ImVec2 panel = c->WindowInfo("//###compare").RectFull.GetSize();
        IM_CHECK_LT(c->ItemInfo("//###compare/**/$$5/##name").RectFull.GetWidth(), panel.x * 0.4F);
    }
    window().ui().settings.dark = false;
    c->Yield(3);
    window().take_picture(c, "compare_24_files_light");
    window().ui().settings.dark = true;
    c->Yield(3);
}

/// The sweeps of two recipes beside the capture of one: two columns, not three.
void a_sweep_stands_beside_the_captures_of_its_step(ImGuiTestContext* c) {
    window().reset(c);
    const auto folder = window().folder() / "beside";
    write_named_step(folder / "capture.tscope", {.name = "original", .recipe = "original"});
    write_named_step(
        folder / "sweep" / "original.tscope",
        {.name = "original", .recipe = "original", .batch_size = 1, .with_sweep = true});
    write_named_step(folder / "sweep" / "tempo.tscope",
                     {.name = "tempo", .batch_size = 1, .with_sweep = true});
    window().workspace().open({folder / "sweep", folder / "capture.tscope"});
    window().settle(c);
    const profiler::CompareView& view = window().workspace().comparison()->view;
    IM_CHECK_EQ(view.columns.size(), size_t{2});
    IM_CHECK_STR_EQ(view.columns[0].recipe.c_str(), "original");
    IM_CHECK_STR_EQ(view.columns[0].batch_text.c_str(), "batch 8");
    IM_CHECK_STR_EQ(view.columns[1].batch_text.c_str(), "batch 1");
    IM_CHECK(view.columns[1].peak_change.empty());
    window().take_picture(c, "sweep_beside_capture");
    std::filesystem::remove_all(folder);
}

}  // namespace

void register_compare_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "compare", name)->TestFunc = run;
    };
    add("shows_a_column_for_each_recipe", shows_a_column_for_each_recipe);
    add("a_click_on_a_recipe_makes_it_b", a_click_on_a_recipe_makes_it_b);
    add("the_headline_follows_a_and_b", the_headline_follows_a_and_b);
    add("memory_of_a_and_b_at_four_moments", memory_of_a_and_b_at_four_moments);
    add("a_click_on_a_category_highlights_it", a_click_on_a_category_highlights_it);
    add("many_recipes_are_rows", many_recipes_are_rows);
    add("a_sweep_stands_beside_the_captures_of_its_step",
        a_sweep_stands_beside_the_captures_of_its_step);
    add("welcomes_when_nothing_is_open", welcomes_when_nothing_is_open);
}

}  // namespace tests
