// The Movement panel in the real window, with the predicted BERT-large steps that come with the
// program.
#include "app/user/examples.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/gui/test_window.h"
#include "tests/support/trace_builder.h"

#include <algorithm>

namespace tests {
namespace {

using profiler::MovementOps;
using profiler::MovementView;

app::Workspace& workspace() { return window().workspace(); }
app::MovementState& state() { return window().ui().panels.movement; }
const MovementView* view() { return workspace().slots().movement.view(); }
const app::MovementQuery& query() { return workspace().queries().movement; }

constexpr const char* kMovement = "//###movement";

void show(ImGuiTestContext* c) {
    window().reset(c);
    state() = {};
    workspace().apply({.queries = {.movement = app::MovementQuery()}});
    window().focus(c, kMovement);
}

void show_examples(ImGuiTestContext* c) {
    show(c);
    const auto files = app::write_examples(window().folder() / "examples");
    IM_CHECK_SILENT(files.has_value());
    window().open_files(c, *files);
    window().focus(c, kMovement);
    IM_CHECK_SILENT(view() != nullptr);
    IM_CHECK_EQ_NO_RET(view()->traces.size(), size_t{2});
}

ImVec2 point_on(size_t trace, size_t dot) {
    const auto& one = view()->traces[trace].dots[dot];
    return state().picture.at(*view(), one.x, one.y);
}

GUI_TEST(movement, says_what_it_will_show) {
    show(c);
    IM_CHECK(query().is_drawn);
    IM_CHECK(view() == nullptr);
    window().take_picture(c, "movement_empty");
}

GUI_TEST(movement, draws_the_roofline) {
    show_examples(c);
    IM_CHECK_GT(view()->traces[0].dots.size(), size_t{40});
    IM_CHECK(view()->headline.find("Memory-bound ops take") == 0);
    IM_CHECK(view()->peaks.name.find("A100") != std::string::npos);
    const auto& dots = view()->traces[0].dots;
    IM_CHECK(std::any_of(dots.begin(), dots.end(), [](const auto& d) { return d.other; }));
    window().take_picture(c, "movement");
}

GUI_TEST(movement, a_dot_can_be_hovered_in_a_narrow_panel) {
    show_examples(c);
    window().resize(c, 900, 1000);
    window().take_picture(c, "movement_narrow");
    // Every dot is still inside the panel and can be hovered.
    c->MouseMoveToPos(point_on(1, 0));
    c->Yield(3);
    IM_CHECK(window().has_tooltip());
    window().resize(c, 1600, 1000);
}

GUI_TEST(movement, a_click_selects_the_call_everywhere) {
    show_examples(c);
    const size_t dot = 0;
    c->MouseMoveToPos(point_on(1, dot));
    c->Yield(3);
    window().take_picture(c, "movement_tooltip", true);
    c->MouseClick(0);
    c->Yield(2);
    IM_CHECK_SILENT(workspace().selection().call.has_value());
    // Of dots on top of each other the smallest is meant, so the row is asked, not assumed.
    const bool in_b = workspace().selection().call->in_b;
    const auto& document = in_b ? workspace().selection().b : workspace().selection().a;
    const auto row = profiler::row_of(view()->traces[in_b ? 1 : 0], *document->trace,
                                      workspace().selection().call->op);
    IM_CHECK(row.has_value());
    window().take_picture(c, "movement_selected");
}

GUI_TEST(movement, a_rectangle_lists_its_ops) {
    show_examples(c);
    const app::MovementPicture& picture = state().picture;
    const auto at = [&](float x, float y) {
        return ImVec2{picture.corner.x + picture.size.x * x, picture.corner.y + picture.size.y * y};
    };
    c->MouseMoveToPos(at(0.62F, 0.02F));
    c->MouseDown(0);
    c->MouseMoveToPos(at(0.985F, 0.5F));
    c->Yield(2);
    c->MouseUp(0);
    c->Yield(2);
    IM_CHECK_SILENT(state().box.has_value());
    const auto& dots = view()->traces[0].dots;
    const auto inside = std::count_if(dots.begin(), dots.end(),
                                      [](const auto& dot) { return state().box->contains(dot); });
    IM_CHECK_GT(inside, 3);
    IM_CHECK_LT(static_cast<size_t>(inside), dots.size());
    // Its calls are marked in the Kernels panel.
    window().settle(c);
    const auto& marks = workspace().selection().marks;
    IM_CHECK_SILENT(marks.has_value());
    IM_CHECK_EQ(marks->keys[0].size(), static_cast<size_t>(inside));
    const profiler::MarksView* marked = workspace().slots().marks.view();
    IM_CHECK_SILENT(marked != nullptr);
    IM_CHECK_GE(marked->traces[0].num_calls, inside);
    window().take_picture(c, "movement_rectangle");
    c->ItemClick("//###movement/**/###forget_box");
    IM_CHECK(!state().box.has_value());
    c->Yield(2);
    IM_CHECK(!marks.has_value());
}

GUI_TEST(movement, shows_logical_ops) {
    show_examples(c);
    window().click(c, "//###movement/###ops_logical");
    IM_CHECK(query().ops == MovementOps::kLogical);
    IM_CHECK(!view()->has_times);
    IM_CHECK(view()->traces[0].per_layer.find("43.168 Gflop") != std::string::npos);
    window().take_picture(c, "movement_logical");
    window().click(c, "//###movement/###ops_run");
    const size_t in_layers = view()->traces[0].rows.size();
    window().click(c, "//###movement/Whole step");
    IM_CHECK_GT(view()->traces[0].rows.size(), in_layers);
    window().take_picture(c, "movement_whole_step");
}

bool is_sorted_by_flop(bool descending) {
    const auto& rows = view()->traces[0].rows;
    return std::is_sorted(rows.begin(), rows.end(), [&](const auto& x, const auto& y) {
        return descending ? x.row.work.flop > y.row.work.flop : x.row.work.flop < y.row.work.flop;
    });
}

GUI_TEST(movement, a_header_sorts_the_table) {
    show_examples(c);
    IM_CHECK(!is_sorted_by_flop(true));
    c->SetRef(c->WindowInfo("//###movement/##side").ID);
    const char* const kTable = "##ops_that_ran";
    c->TableClickHeader(kTable, "flop");
    window().settle(c);
    IM_CHECK(query().sort_by == profiler::MovementColumn::kFlop);
    IM_CHECK(is_sorted_by_flop(true));
    c->TableClickHeader(kTable, "flop");
    window().settle(c);
    IM_CHECK(is_sorted_by_flop(false));
    IM_CHECK(!is_sorted_by_flop(true));
}

/// A step whose ops have neither arithmetic nor data.
std::string write_uncounted_step() {
    TraceBuilder b(models::Workload{});
    b.begin_step();
    b.begin_phase(profiler::PhaseKind::kForward);
    const auto module = b.module_path("encoder.layer.0.output.dense", 0);
    b.allocate({.bytes = 4096, .op = b.op("aten::addmm", module)});
    b.end_phase();
    b.end_step();
    const std::string path = (window().folder() / "uncounted.tscope").string();
    return profiler::write_trace(b.finish(), path) ? path : std::string();
}

GUI_TEST(movement, a_trace_without_counted_ops_says_so) {
    show(c);
    window().open_files(c, {write_uncounted_step()});
    window().focus(c, kMovement);
    IM_CHECK_SILENT(view() != nullptr);
    IM_CHECK_EQ(view()->traces.size(), size_t{1});
    IM_CHECK(view()->traces[0].rows.empty());
    IM_CHECK(c->WindowInfo("//###movement/##side", ImGuiTestOpFlags_NoError).ID == 0);
    window().take_picture(c, "movement_no_counted_ops");
}

}  // namespace
}  // namespace tests
