// The Inspector, its chips and its history; the moment and the range of the Memory timeline.
#include "tests/gui/test_window.h"

namespace tests {
namespace {

constexpr const char* kTimeline = "//###timeline";

const app::Selection& selection() { return window().workspace().selection(); }

void open_two(ImGuiTestContext* c) {
    window().show(c, {"original", "tempo"});
    window().press(c, ImGuiKey_F);
}

void click_timeline(ImGuiTestContext* c, float x) {
    window().click_at(c, window().point_in(c, kTimeline, x, 0.28F));
    // So that the next click is no double click.
    c->SleepNoSkip(0.6F, 0.1F);
    window().settle(c);
}

void pick_row(ImGuiTestContext* c, int index) { window().click_ledger_row(c, index); }

GUI_TEST(inspector, is_in_sight_from_the_start) {
    open_two(c);
    IM_CHECK(window().is_open("inspector"));
    const ImGuiWindow* inspector = c->WindowInfo("//###inspector").Window;
    IM_CHECK(inspector != nullptr && inspector->DockTabIsVisible);
    IM_CHECK(!c->ItemExists("//###inspector/category/###remove"));
}

/// Also where another panel lies before it, but not over the panel of the click.
GUI_TEST(inspector, comes_to_the_front_when_something_is_selected) {
    open_two(c);
    window().show_panel(c, "traces");
    c->DockInto("//###traces", "//###inspector");
    window().focus(c, "//###traces");
    const ImGuiWindow* inspector = c->WindowInfo("//###inspector").Window;
    IM_CHECK(!inspector->DockTabIsVisible);
    pick_row(c, 1);
    IM_CHECK(inspector->DockTabIsVisible);
    window().reset(c);
}

GUI_TEST(inspector, a_range_is_summed_up_and_filters_the_ledger) {
    open_two(c);
    const size_t all = window().workspace().views().ledger.view()->rows.size();
    window().select_range(c);
    IM_CHECK(selection().range.has_value());
    const profiler::RangeView* range = window().workspace().views().range.view();
    IM_CHECK(range != nullptr);
    IM_CHECK_EQ(range->figures.size(), size_t{6});
    IM_CHECK(range->has_other);
    const profiler::LedgerView* ledger = window().workspace().views().ledger.view();
    IM_CHECK(!ledger->span_text.empty());
    IM_CHECK_LE(ledger->rows.size(), all);
    window().take_picture(c, "inspector_range");
    window().click(c, "//###inspector/range/###remove");
    IM_CHECK(!selection().range.has_value());
    IM_CHECK(window().workspace().views().range.view() == nullptr);
    IM_CHECK_EQ(window().workspace().views().ledger.view()->rows.size(), all);
    IM_CHECK(window().workspace().views().ledger.view()->span_text.empty());
}

GUI_TEST(inspector, a_tensor_is_described) {
    open_two(c);
    pick_row(c, 1);
    IM_CHECK(selection().tensor.has_value());
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK(view != nullptr && view->tensor.has_value());
    IM_CHECK(!view->tensor->fate.text.empty());
    IM_CHECK_GT(static_cast<int>(view->tensor->rows.size()), 4);
    window().take_picture(c, "inspector_tensor");
    window().click(c, "//###inspector/tensor/###remove");
    IM_CHECK(!selection().tensor.has_value());
    IM_CHECK(window().workspace().views().inspector.view() == nullptr);
}

GUI_TEST(inspector, a_click_sets_the_moment) {
    open_two(c);
    click_timeline(c, 0.5F);
    IM_CHECK(selection().moment_ns.has_value());
    const double first_ns = *selection().moment_ns;
    IM_CHECK(c->ItemExists("//###inspector/moment/###remove"));
    // A double click shows all and leaves the moment as it was.
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.7F, 0.28F));
    c->MouseDoubleClick(0);
    window().settle(c);
    IM_CHECK_EQ(selection().moment_ns.value_or(0), first_ns);
    window().press(c, ImGuiKey_Escape);
    IM_CHECK(!selection().moment_ns.has_value());
    click_timeline(c, 0.5F);
    window().click(c, "//###inspector/moment/###remove");
    IM_CHECK(!selection().moment_ns.has_value());
}

GUI_TEST(inspector, a_drag_sets_no_moment) {
    open_two(c);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    window().drag_to(c, window().point_in(c, kTimeline, 0.3F, 0.28F));
    window().select_range(c);
    IM_CHECK(!selection().moment_ns.has_value());
    IM_CHECK(selection().range.has_value());
}

GUI_TEST(inspector, selections_come_back) {
    open_two(c);
    pick_row(c, 1);
    const auto first = selection().tensor->storage;
    pick_row(c, 2);
    IM_CHECK(selection().tensor->storage != first);
    window().press(c, ImGuiMod_Alt | ImGuiKey_LeftArrow);
    IM_CHECK(selection().tensor->storage == first);
    window().click(c, "//###inspector/###back");
    IM_CHECK(!selection().tensor.has_value());
    c->ItemClick("//###inspector/###forward");
    window().press(c, ImGuiMod_Alt | ImGuiKey_RightArrow);
    IM_CHECK(selection().tensor.has_value() && selection().tensor->storage != first);
}

GUI_TEST(inspector, a_category_is_described) {
    open_two(c);
    window().apply(c, {.selection = {.category = profiler::Category::kActivation}});
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK(view != nullptr);
    IM_CHECK_EQ(view->category.size(), 2U);  // of A and of B
    IM_CHECK(!view->category[0].largest.empty());
    window().take_picture(c, "inspector_category");
}

GUI_TEST(inspector, chips_of_everything) {
    open_two(c);
    pick_row(c, 1);
    window().select_range(c);
    click_timeline(c, 0.5F);
    window().apply(c, {.selection = {.category = profiler::Category::kActivation,
                                     .layers = profiler::LayerRange{1, 2}}});
    window().take_picture(c, "inspector_all");
    for (const char* chip : {"category", "range", "moment", "layers", "tensor"}) {
        window().click(c, (std::string("//###inspector/") + chip + "/###remove").c_str());
    }
    IM_CHECK(!selection().category && !selection().range && !selection().moment_ns);
    IM_CHECK(!selection().tensor.has_value() && !selection().layers);
}

/// The op that the ledger's first tensor is saved by, which runs once in each layer.
void pick_saver(ImGuiTestContext* c) {
    const profiler::LedgerView* ledger = window().workspace().views().ledger.view();
    const auto op = ledger->rows[0].ops[0].savers[0];
    window().apply(
        c, {.selection = {.call = app::PickedCall{false, {profiler::CallKind::kOp, op.value}}}});
}

GUI_TEST(inspector, all_calls_of_an_op_have_a_histogram) {
    open_two(c);
    pick_saver(c);
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK_SILENT(view && view->call);
    const profiler::CallGroup& group = view->call->group;
    IM_CHECK_EQ(group.sources.size(), size_t{2});
    IM_CHECK_GT(group.sources[0].num_calls, 1);
    const profiler::CallId longest = group.longest;  // a click replaces the view
    window().take_picture(c, "inspector_calls");
    window().click(c, "//###inspector/**/###longest_call");
    IM_CHECK(selection().call->id == longest);
    view = window().workspace().views().inspector.view();
    IM_CHECK_EQ(view->call->group.num_longer, 0);
}

GUI_TEST(inspector, marked_calls_stand_out_among_the_kernels) {
    open_two(c);
    pick_saver(c);
    window().click(c, "//###inspector/**/###mark_calls");
    IM_CHECK_SILENT(selection().marks.has_value());
    const profiler::KernelsView* kernels = window().workspace().slots().kernels.view();
    IM_CHECK_SILENT(kernels != nullptr);
    int marked = 0, pale = 0;
    for (const auto& lane : kernels->traces[0].lanes) {
        for (const auto& row : lane.rows) {
            for (const auto& block : row.blocks) ++(block.is_marked ? marked : pale);
        }
    }
    IM_CHECK_GT(marked, 0);
    IM_CHECK_GT(pale, 0);
    window().take_picture(c, "inspector_marks");
    window().click(c, "//###inspector/marks/###remove");
    IM_CHECK(!selection().marks.has_value());
    IM_CHECK(window().workspace().slots().marks.view() == nullptr);
}

}  // namespace
}  // namespace tests
