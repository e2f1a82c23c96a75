#include "tests/gui/test_traces.h"
#include "tests/gui/test_window.h"

#include <set>

namespace tests {
namespace {

GUI_TEST(compare, shows_a_column_for_each_recipe) {
    window().show(c, {"original", "tempo", "tempo-packed"});
    IM_CHECK(window().workspace().slots().compare.view() != nullptr);
    const profiler::CompareView* view = &window().workspace().slots().compare.view()->view;
    IM_CHECK_EQ(view->columns.size(), size_t{3});
    IM_CHECK(view->columns[0].is_baseline);
    IM_CHECK(view->has_max_batch);
    IM_CHECK(view->has_throughput);
    IM_CHECK(!view->sentence.empty());
}

/// The headline says what B saves and what it costs against A, whichever these are.
GUI_TEST(compare, the_headline_follows_a_and_b) {
    window().show(c, {"original", "tempo", "tempo-packed"});
    const std::string tempo = window().workspace().headline();
    IM_CHECK(tempo.find("tempo ") == 0);
    IM_CHECK(tempo.find("less memory than original") != std::string::npos);
    // One measured step each: nobody knows how much their times spread.
    IM_CHECK(tempo.find(" time a step") == std::string::npos);
    window().press(c, ImGuiKey_X);
    const std::string swapped = window().workspace().headline();
    IM_CHECK(swapped.find("original ") == 0);
    IM_CHECK(swapped.find("more memory than tempo") != std::string::npos);
    c->KeyPress(ImGuiKey_X);
    window().focus(c, "//###compare");
    window().click(c, "//###compare/**/$$2/##row");
    IM_CHECK(window().workspace().headline().find("tempo-packed ") == 0);
    IM_CHECK_STR_EQ(window().workspace().selection().a->recipe.c_str(), "original");
}

/// A and B at their peaks, at A's peak, at the end of forward, and what they keep.
GUI_TEST(compare, memory_of_a_and_b_at_four_moments) {
    window().show(c, {"original", "tempo"});
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
    window().click(c, "//###compare/Recipes");
    IM_CHECK(!window().ui().panels.compare.shows_pair);
}

GUI_TEST(compare, a_click_on_a_category_highlights_it) {
    window().show(c, {"original", "tempo"});
    IM_CHECK(!window().workspace().selection().category);
    const auto category = window().workspace().slots().compare.view()->view.categories.front();
    const std::string item =
        "//###compare/$$" + std::to_string(static_cast<int>(category)) + "/##category";
    window().click(c, item.c_str());
    IM_CHECK(window().workspace().selection().category == category);
    window().click(c, item.c_str());
    IM_CHECK(!window().workspace().selection().category);
}

GUI_TEST(compare, welcomes_when_nothing_is_open) {
    window().reset(c);
    window().click(c,
                   "//###timeline/"
                   "\xef\x81\xbc  Open traces");
    IM_CHECK(c->WindowInfo("Open traces").Window != nullptr);
    window().press(c, ImGuiKey_Escape);
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
    window().open_files(c, {folder});
    std::filesystem::remove_all(folder);
}

/// From seven recipes on each is a row with its whole name, and no two look alike.
GUI_TEST(compare, many_recipes_are_rows) {
    for (const int count : {10, 24}) {
        open_many(c, count);
        const profiler::CompareView& view = window().workspace().comparison()->view;
        IM_CHECK_EQ(view.columns.size(), static_cast<size_t>(count));
        std::set<size_t> colors;
        for (const auto& column : view.columns) colors.insert(column.color);
        IM_CHECK_EQ(colors.size(), static_cast<size_t>(count));
        window().take_picture(c, "compare_" + std::to_string(count) + "_files");
        IM_CHECK(c->ItemExists("//###compare/**/$$5/##name"));
        window().click(c, "//###compare/**/$$5/##name");
        const auto b = window().workspace().document_of_column(5);
        IM_CHECK(b != nullptr);
        IM_CHECK(window().workspace().selection().b == b);
        const ImVec2 panel = c->WindowInfo("//###compare").RectFull.GetSize();
        IM_CHECK_LT(c->ItemInfo("//###compare/**/$$5/##name").RectFull.GetWidth(), panel.x * 0.4F);
    }
}

/// The sweeps of two recipes beside the capture of one: two columns, not three.
GUI_TEST(compare, a_sweep_stands_beside_the_captures_of_its_step) {
    window().reset(c);
    const auto folder = window().folder() / "beside";
    write_named_step(folder / "capture.tscope", {.name = "original", .recipe = "original"});
    write_named_step(
        folder / "sweep" / "original.tscope",
        {.name = "original", .recipe = "original", .batch_size = 1, .with_sweep = true});
    write_named_step(folder / "sweep" / "tempo.tscope",
                     {.name = "tempo", .batch_size = 1, .with_sweep = true});
    window().open_files(c, {folder / "sweep", folder / "capture.tscope"});
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
}  // namespace tests
