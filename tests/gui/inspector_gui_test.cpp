// The Inspector, its chips and its history; the moment and the range of the Memory timeline.
#include "tests/gui/test_window.h"

namespace tests {
namespace {

constexpr const char* kTimeline = "//###timeline";

const app::Selection& selection() { return window().workspace().selection(); }

void open_two(ImGuiTestContext* c) {
    window().reset(c);
    window().open(c, {"original", "tempo"});
    c->KeyPress(ImGuiKey_F);
    window().settle(c);
}

void click_timeline(ImGuiTestContext* c, float x) {
    c->MouseMoveToPos(window().point_in(c, kTimeline, x, 0.28F));
    c->MouseClick();
    // So that the next click is no double click.
    c->SleepNoSkip(0.6F, 0.1F);
    window().settle(c);
}

void pick_row(ImGuiTestContext* c, int index) {
    window().click_ledger_row(c, index);
    window().settle(c);
}

void lies_in_front_of_diagnostics(ImGuiTestContext* c) {
    open_two(c);
    IM_CHECK(window().is_open("inspector"));
    const ImGuiWindow* inspector = c->WindowInfo("//###inspector").Window;
    IM_CHECK(inspector != nullptr && inspector->DockTabIsVisible);
    IM_CHECK(!c->ItemExists("//###inspector/category/###remove"));
}

void a_range_is_summed_up_and_filters_the_ledger(ImGuiTestContext* c) {
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
    c->ItemClick("//###inspector/range/###remove");
    window().settle(c);
    IM_CHECK(!selection().range.has_value());
    IM_CHECK(window().workspace().views().range.view() == nullptr);
    IM_CHECK_EQ(window().workspace().views().ledger.view()->rows.size(), all);
}

void a_tensor_is_described(ImGuiTestContext* c) {
    open_two(c);
    pick_row(c, 1);
    IM_CHECK(selection().tensor.has_value());
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK(view != nullptr && view->tensor.has_value());
    IM_CHECK(!view->tensor->fate.text.empty());
    IM_CHECK_GT(static_cast<int>(view->tensor->rows.size()), 4);
    window().take_picture(c, "inspector_tensor");
    c->ItemClick("//###inspector/tensor/###remove");
    window().settle(c);
    IM_CHECK(!selection().tensor.has_value());
    IM_CHECK(window().workspace().views().inspector.view() == nullptr);
}

void a_click_sets_the_moment(ImGuiTestContext* c) {
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
    c->KeyPress(ImGuiKey_Escape);
    c->Yield(2);
    IM_CHECK(!selection().moment_ns.has_value());
    click_timeline(c, 0.5F);
    c->ItemClick("//###inspector/moment/###remove");
    c->Yield(2);
    IM_CHECK(!selection().moment_ns.has_value());
}

void a_drag_sets_no_moment(ImGuiTestContext* c) {
    open_two(c);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.5F, 0.28F));
    c->MouseDown(0);
    c->MouseMoveToPos(window().point_in(c, kTimeline, 0.3F, 0.28F));
    c->MouseUp(0);
    window().select_range(c);
    IM_CHECK(!selection().moment_ns.has_value());
    IM_CHECK(selection().range.has_value());
}

void selections_come_back(ImGuiTestContext* c) {
    open_two(c);
    pick_row(c, 1);
    const auto first = selection().tensor->storage;
    pick_row(c, 2);
    IM_CHECK(selection().tensor->storage != first);
    c->KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    window().settle(c);
    IM_CHECK(selection().tensor->storage == first);
    c->ItemClick("//###inspector/###back");
    window().settle(c);
    IM_CHECK(!selection().tensor.has_value());
    c->ItemClick("//###inspector/###forward");
    c->KeyPress(ImGuiMod_Alt | ImGuiKey_RightArrow);
    window().settle(c);
    IM_CHECK(selection().tensor.has_value() && selection().tensor->storage != first);
}

void a_category_is_described(ImGuiTestContext* c) {
    open_two(c);
    app::PanelEvents events;
    events.selection.category = profiler::Category::kActivation;
    window().workspace().apply(events);
    window().settle(c);
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK(view != nullptr);
    IM_CHECK_EQ(view->category.size(), 2U);  // of A and of B
    IM_CHECK(!view->category[0].largest.empty());
    window().take_picture(c, "inspector_category");
}

void chips_of_everything(ImGuiTestContext* c) {
    open_two(c);
    pick_row(c, 1);
    window().select_range(c);
    click_timeline(c, 0.5F);
    app::PanelEvents events;
    events.selection.category = profiler::Category::kActivation;
    events.selection.layers = profiler::LayerRange{1, 2};
    window().workspace().apply(events);
    window().take_picture(c, "inspector_all");
    for (const char* chip : {"category", "range", "moment", "layers", "tensor"}) {
        c->ItemClick((std::string("//###inspector/") + chip + "/###remove").c_str());
        c->Yield(2);
    }
    IM_CHECK(!selection().category && !selection().range && !selection().moment_ns);
    IM_CHECK(!selection().tensor.has_value() && !selection().layers);
}

/// The op that the ledger's first tensor is saved by, which runs once in each layer.
void pick_saver(ImGuiTestContext* c) {
    const profiler::LedgerView* ledger = window().workspace().views().ledger.view();
    const auto op = ledger->rows[0].ops[0].savers[0];
    window().workspace().apply(
        {.selection = {.activity =
                           app::PickedActivity{false, {profiler::ActivityKind::kOp, op.value}}}});
    window().settle(c);
}

void all_calls_of_an_op_have_a_histogram(ImGuiTestContext* c) {
    open_two(c);
    pick_saver(c);
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK_SILENT(view && view->call);
    const profiler::CallGroup& group = view->call->group;
    IM_CHECK_EQ(group.sources.size(), size_t{2});
    IM_CHECK_GT(group.sources[0].num_calls, 1);
    const profiler::ActivityId longest = group.longest;  // a click replaces the view
    window().take_picture(c, "inspector_calls");
    c->ItemClick("//###inspector/**/###longest_call");
    window().settle(c);
    IM_CHECK(selection().activity->id == longest);
    view = window().workspace().views().inspector.view();
    IM_CHECK_EQ(view->call->group.num_longer, 0);
}

void marked_calls_stand_out_among_the_kernels(ImGuiTestContext* c) {
    open_two(c);
    pick_saver(c);
    c->ItemClick("//###inspector/**/###mark_calls");
    window().settle(c);
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
    c->ItemClick("//###inspector/marks/###remove");
    window().settle(c);
    IM_CHECK(!selection().marks.has_value());
    IM_CHECK(window().workspace().slots().marks.view() == nullptr);
}

}  // namespace

void register_inspector_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "inspector", name)->TestFunc = run;
    };
    add("lies_in_front_of_diagnostics", lies_in_front_of_diagnostics);
    add("a_range_is_summed_up_and_filters_the_ledger", a_range_is_summed_up_and_filters_the_ledger);
    add("a_tensor_is_described", a_tensor_is_described);
    add("a_category_is_described", a_category_is_described);
    add("a_click_sets_the_moment", a_click_sets_the_moment);
    add("a_drag_sets_no_moment", a_drag_sets_no_moment);
    add("selections_come_back", selections_come_back);
    add("chips_of_everything", chips_of_everything);
    add("all_calls_of_an_op_have_a_histogram", all_calls_of_an_op_have_a_histogram);
    add("marked_calls_stand_out_among_the_kernels", marked_calls_stand_out_among_the_kernels);
}

}  // namespace tests
