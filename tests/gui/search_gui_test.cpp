#include "profiler/analysis/step/ledger.h"
#include "tests/gui/test_window.h"

#include <string>

namespace tests {
namespace {

void open_two(ImGuiTestContext* c) {
    window().reset(c);
    window().ui().found = {};
    window().open(c, {"original", "tempo"});
}

void search_for(ImGuiTestContext* c, const char* words) {
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_K);
    c->KeyChars(words);
    window().settle(c);
}

const app::Selection& selection() { return window().workspace().selection(); }

bool is_in_front(ImGuiTestContext* c, const char* panel) {
    const ImGuiTestItemInfo info = c->WindowInfo(panel);
    return info.Window && !info.Window->Hidden && info.Window->Active;
}

GUI_TEST(search, an_op_is_found_and_stepped_through) {
    open_two(c);
    search_for(c, "addmm");
    window().take_picture(c, "search_ops");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(selection().call.has_value());
    IM_CHECK_STR_EQ(selection().call->name.c_str(), "aten::addmm");
    IM_CHECK(is_in_front(c, "//###kernels"));
    const auto first = selection().call->id;
    window().take_picture(c, "search_found_op");
    window().press(c, ImGuiKey_F3);
    IM_CHECK_GT(selection().call->id.row, first.row);
    IM_CHECK_STR_EQ(selection().call->name.c_str(), "aten::addmm");
    // The call lies in the part of the time axis that is shown, wide enough to be seen.
    const auto& shown = window().workspace().time().window;
    IM_CHECK_GE(selection().call->range.start_ns, shown.start_ns);
    IM_CHECK_LE(selection().call->range.end_ns, shown.end_ns);
    window().press(c, ImGuiMod_Shift | ImGuiKey_F3);
    IM_CHECK(selection().call->id == first);
    // It is of the step that the ledger lists, though earlier steps have such calls too.
    const auto listed_ns =
        static_cast<double>(profiler::start_of_ledger_step(*selection().a->trace));
    IM_CHECK_GE(selection().call->range.start_ns, listed_ns);
    window().press(c, ImGuiMod_Shift | ImGuiKey_F3);
    IM_CHECK_LT(selection().call->range.start_ns, listed_ns);
}

/// A parameter: one place in A and one in B.
GUI_TEST(search, before_the_first_place_comes_the_last) {
    open_two(c);
    search_for(c, "layer.3.intermediate.dense.weight");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(!selection().tensor->in_b);
    window().press(c, ImGuiMod_Shift | ImGuiKey_F3);
    IM_CHECK(selection().tensor->in_b);
}

GUI_TEST(search, a_saved_tensor_is_shown_in_the_ledger) {
    open_two(c);
    window().show_panel(c, "capture");
    search_for(c, "gelu_input");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(selection().tensor.has_value());
    IM_CHECK_STR_EQ(selection().tensor->name.c_str(), "gelu_input");
    window().take_picture(c, "search_found_tensor");
}

GUI_TEST(search, a_module_filters_the_ledger) {
    open_two(c);
    search_for(c, "layer.3.intermediate");
    window().take_picture(c, "search_modules");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(is_in_front(c, "//###ledger"));
    IM_CHECK(window().workspace().views().queries.ledger.filter.starts_with(
        "encoder.layer.3.intermediate"));
    IM_CHECK(selection().layers.has_value());
    IM_CHECK_EQ(selection().layers->first, 3);
}

/// Words for a question lead to a view, in the first row.
GUI_TEST(search, questions_find_their_view) {
    open_two(c);
    app::Ui& ui = window().ui();
    const auto first = [&](const char* word) {
        const app::PaletteContent content = app::palette_content(ui, word);
        return content.groups.empty() ? std::string() : content.groups.front().entries[0].title;
    };
    IM_CHECK_STR_EQ(first("oom").c_str(), "What to do");
    IM_CHECK_STR_EQ(first("del").c_str(), "What to do");
    IM_CHECK_STR_EQ(first("fragmentation").c_str(), "What to do");
    IM_CHECK_STR_EQ(first("leak").c_str(), "Memory timeline");
    IM_CHECK_STR_EQ(first("slow").c_str(), "Movement");
    IM_CHECK_STR_EQ(first("batch").c_str(), "Planner");
    IM_CHECK(first("export").starts_with("Export"));
    IM_CHECK_STR_EQ(first("layer").c_str(), "Layer explorer");
}

GUI_TEST(search, a_layer_is_shown_in_the_layer_explorer) {
    open_two(c);
    search_for(c, "layer 5");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(is_in_front(c, "//###layer"));
    IM_CHECK_EQ(selection().layers->first, 5);
}

GUI_TEST(search, the_slash_opens_the_search_and_escape_closes_it) {
    open_two(c);
    window().press(c, ImGuiKey_Slash);
    IM_CHECK(window().ui().palette.is_open);
    c->KeyChars("zzzzqq");
    window().settle(c);
    window().take_picture(c, "search_nothing");
    c->KeyPress(ImGuiKey_Enter);  // nothing to choose
    c->Yield(2);
    IM_CHECK(window().ui().palette.is_open);
    window().press(c, ImGuiKey_Escape);
    IM_CHECK(!window().ui().palette.is_open);
    IM_CHECK(!selection().call.has_value());
}

/// Enter right after the last letter, before the search thread has answered.
GUI_TEST(search, enter_waits_for_what_is_found) {
    open_two(c);
    window().press(c, ImGuiMod_Ctrl | ImGuiKey_K);
    c->KeyChars("native_layer_norm");
    window().press(c, ImGuiKey_Enter);
    IM_CHECK(!window().ui().palette.is_open);
    IM_CHECK(selection().call.has_value());
    IM_CHECK_STR_EQ(selection().call->name.c_str(), "aten::native_layer_norm");
}

GUI_TEST(search, a_trace_that_is_closed_is_not_stepped_through) {
    open_two(c);
    search_for(c, "addmm");
    window().press(c, ImGuiKey_Enter);
    while (!window().workspace().documents().empty()) {
        window().workspace().close(window().workspace().documents().back());
    }
    window().settle(c);
    window().press(c, ImGuiKey_F3);
    IM_CHECK(!selection().call.has_value());
    window().ui().found = {};
    window().open(c, {"original"});
    window().press(c, ImGuiKey_F3);
    IM_CHECK(!selection().call.has_value());
}

}  // namespace
}  // namespace tests
