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
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    c->Yield(3);
    c->KeyChars(words);
    window().settle(c);
}

const app::Selection& selection() { return window().workspace().selection(); }

bool is_in_front(ImGuiTestContext* c, const char* panel) {
    const ImGuiTestItemInfo info = c->WindowInfo(panel);
    return info.Window && !info.Window->Hidden && info.Window->Active;
}

void an_op_is_found_and_stepped_through(ImGuiTestContext* c) {
    open_two(c);
    search_for(c, "addmm");
    window().take_picture(c, "search_ops");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(selection().activity.has_value());
    IM_CHECK_STR_EQ(selection().activity->name.c_str(), "aten::addmm");
    IM_CHECK(is_in_front(c, "//###kernels"));
    const auto first = selection().activity->id;
    window().take_picture(c, "search_found_op");
    c->KeyPress(ImGuiKey_F3);
    window().settle(c);
    IM_CHECK_GT(selection().activity->id.row, first.row);
    IM_CHECK_STR_EQ(selection().activity->name.c_str(), "aten::addmm");
    // The call lies in the part of the time axis that is shown, wide enough to be seen.
    const auto& shown = window().workspace().time().window;
    IM_CHECK_GE(selection().activity->range.start_ns, shown.start_ns);
    IM_CHECK_LE(selection().activity->range.end_ns, shown.end_ns);
    c->KeyPress(ImGuiMod_Shift | ImGuiKey_F3);
    window().settle(c);
    IM_CHECK(selection().activity->id == first);
    // It is of the step that the ledger lists, though earlier steps have such calls too.
    const auto listed_ns =
        static_cast<double>(profiler::start_of_ledger_step(*selection().a->trace));
    IM_CHECK_GE(selection().activity->range.start_ns, listed_ns);
    c->KeyPress(ImGuiMod_Shift | ImGuiKey_F3);
    window().settle(c);
    IM_CHECK_LT(selection().activity->range.start_ns, listed_ns);
}

/// A parameter: one place in A and one in B.
void before_the_first_place_comes_the_last(ImGuiTestContext* c) {
    open_two(c);
    search_for(c, "layer.3.intermediate.dense.weight");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(!selection().tensor->in_b);
    c->KeyPress(ImGuiMod_Shift | ImGuiKey_F3);
    window().settle(c);
    IM_CHECK(selection().tensor->in_b);
}

void a_saved_tensor_is_shown_in_the_ledger(ImGuiTestContext* c) {
    open_two(c);
    app::show_panel(window().ui(), "capture");
    c->Yield(3);
    search_for(c, "gelu_input");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(selection().tensor.has_value());
    IM_CHECK_STR_EQ(selection().tensor->name.c_str(), "gelu_input");
    window().take_picture(c, "search_found_tensor");
}

void a_module_filters_the_ledger(ImGuiTestContext* c) {
    open_two(c);
    search_for(c, "layer.3.intermediate");
    window().take_picture(c, "search_modules");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(is_in_front(c, "//###ledger"));
    IM_CHECK(window().workspace().views().queries.ledger.filter.starts_with(
        "encoder.layer.3.intermediate"));
    IM_CHECK(selection().layers.has_value());
    IM_CHECK_EQ(selection().layers->first, 3);
}

void a_layer_is_shown_in_the_layer_explorer(ImGuiTestContext* c) {
    open_two(c);
    search_for(c, "layer 5");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(is_in_front(c, "//###layer"));
    IM_CHECK_EQ(selection().layers->first, 5);
}

void the_slash_opens_the_search_and_escape_closes_it(ImGuiTestContext* c) {
    open_two(c);
    c->KeyPress(ImGuiKey_Slash);
    c->Yield(3);
    IM_CHECK(window().ui().palette.is_open);
    c->KeyChars("zzzzqq");
    window().settle(c);
    window().take_picture(c, "search_nothing");
    c->KeyPress(ImGuiKey_Enter);  // nothing to choose
    c->Yield(2);
    IM_CHECK(window().ui().palette.is_open);
    c->KeyPress(ImGuiKey_Escape);
    c->Yield(2);
    IM_CHECK(!window().ui().palette.is_open);
    IM_CHECK(!selection().activity.has_value());
}

/// Enter right after the last letter, before the search thread has answered.
void enter_waits_for_what_is_found(ImGuiTestContext* c) {
    open_two(c);
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    c->Yield(3);
    c->KeyChars("native_layer_norm");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    IM_CHECK(!window().ui().palette.is_open);
    IM_CHECK(selection().activity.has_value());
    IM_CHECK_STR_EQ(selection().activity->name.c_str(), "aten::native_layer_norm");
}

void a_trace_that_is_closed_is_not_stepped_through(ImGuiTestContext* c) {
    open_two(c);
    search_for(c, "addmm");
    c->KeyPress(ImGuiKey_Enter);
    window().settle(c);
    while (!window().workspace().documents().empty()) {
        window().workspace().close(window().workspace().documents().back());
    }
    window().settle(c);
    c->KeyPress(ImGuiKey_F3);
    c->Yield(2);
    IM_CHECK(!selection().activity.has_value());
    window().ui().found = {};
    window().open(c, {"original"});
    c->KeyPress(ImGuiKey_F3);
    c->Yield(2);
    IM_CHECK(!selection().activity.has_value());
}

}  // namespace

void register_search_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "search", name)->TestFunc = run;
    };
    add("an_op_is_found_and_stepped_through", an_op_is_found_and_stepped_through);
    add("before_the_first_place_comes_the_last", before_the_first_place_comes_the_last);
    add("a_saved_tensor_is_shown_in_the_ledger", a_saved_tensor_is_shown_in_the_ledger);
    add("a_module_filters_the_ledger", a_module_filters_the_ledger);
    add("a_layer_is_shown_in_the_layer_explorer", a_layer_is_shown_in_the_layer_explorer);
    add("the_slash_opens_the_search_and_escape_closes_it",
        the_slash_opens_the_search_and_escape_closes_it);
    add("enter_waits_for_what_is_found", enter_waits_for_what_is_found);
    add("a_trace_that_is_closed_is_not_stepped_through",
        a_trace_that_is_closed_is_not_stepped_through);
}

}  // namespace tests
