// The whole way: form, temposcope-worker with libtorch, live curve, finished trace, exported chart.
// With one layer and few tokens it takes seconds.
#include "tests/gui/test_window.h"

#include "app/window/export_dialog.h"
#include "app/workspace/planner_form.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace tests {
namespace {

app::CaptureStatus status() { return *window().workspace().capture().status(); }

void fill_form(ImGuiTestContext* c, const char* folder, std::vector<std::string> recipes,
               int64_t steps) {
    window().reset(c);
    app::StepForm form = app::first_capture_form();
    form.model = "bert-base";
    form.layers = 1;
    form.batch_size = 2;
    form.seq_len = 32;
    form.steps = steps;
    form.recipes.names = std::move(recipes);
    form.output = (window().folder() / folder).string();
    window().ui().panels.capture.form = form;
    window().show_panel(c, "capture");
}

/// Starts the filled-in capture and waits for its traces.
void run_form(ImGuiTestContext* c) {
    c->ItemClick("//###capture/**/###start");
    wait_until(c, [] { return !status().running; });
    window().settle(c);
    IM_CHECK_STR_EQ(status().error.c_str(), "");
}

/// In-place GELU keeps its output and the branch instead of its input, which is freed in forward.
void says_what_b_does_without_a_tensor(ImGuiTestContext* c) {
    const app::DocumentPtr a = window().workspace().selection().a;
    for (const profiler::LedgerRow& row : a->index->ledger().rows) {
        if (row.tensor != "gelu_input") continue;
        window().workspace().apply(
            {.selection = {.tensor = app::PickedTensor{a, row.storage, {}}}});
    }
    window().settle(c);
    const profiler::InspectorView* view = window().workspace().views().inspector.view();
    IM_CHECK_SILENT(view != nullptr && view->tensor.has_value());
    const std::string& fate = view->tensor->fate.text;
    IM_CHECK(fate.find("B frees it in forward; A keeps it for backward, until backward") == 0);
    IM_CHECK(fate.find(" Backward of gelu uses ") != std::string::npos);
    IM_CHECK(fate.find("mask") != std::string::npos);
    window().take_picture(c, "inspector_replaced");
}

/// Autograd calls each node through a wrapper of the same name: the panel shows it once, in the
/// colour of the longest call in it.
void calls_are_drawn_once_in_the_colour_of_their_work(ImGuiTestContext* c) {
    window().focus(c, "//###kernels");
    const profiler::KernelsView& view = *window().workspace().slots().kernels.view();
    size_t backward = 0, grey = 0;
    for (const profiler::KernelsLane& lane : view.traces[0].lanes) {
        for (size_t row = 0; row < lane.rows.size(); ++row) {
            for (const profiler::CallBlock& block : lane.rows[row].blocks) {
                if (!block.forward.valid() || block.count > 1 || lane.is_stream) continue;
                ++backward;
                grey += block.call_class == profiler::CallClass::kOther ? 1 : 0;
                if (row + 1 == lane.rows.size()) continue;
                for (const profiler::CallBlock& inner : lane.rows[row + 1].blocks) {
                    const bool lies_in =
                        inner.start_ns >= block.start_ns && inner.end_ns <= block.end_ns;
                    // Ops do call ops of their name: mul of a number calls mul of a tensor.
                    if (!lies_in || block.label.starts_with("aten::")) continue;
                    IM_CHECK_STR_NE(inner.label.c_str(), block.label.c_str());
                }
            }
        }
    }
    IM_CHECK_GT(backward, size_t{5});
    IM_CHECK_LT(grey, backward / 2);
}

/// Of predicted traces alone: memory, largest batch and throughput of these and of other recipes.
void compare_is_never_empty(ImGuiTestContext* c) {
    window().focus(c, "//###compare");
    const auto comparison = window().workspace().comparison();
    const profiler::CompareView& view = comparison->view;
    IM_CHECK_GT(view.columns.size(), size_t{2});
    for (const profiler::CompareColumn& column : view.columns) {
        IM_CHECK_GT(column.peak_bytes, int64_t{0});
        IM_CHECK(column.memory_is_predicted);
        IM_CHECK(column.planned.has_value());
        IM_CHECK_GT(column.planned->max_batch_size.value_or(0), int64_t{0});
        IM_CHECK(!column.planned->curve.empty());
    }
    IM_CHECK(view.columns[2].is_planned);
    const std::string& headline = window().workspace().headline();
    IM_CHECK(headline.find(" time a step") != std::string::npos);
    IM_CHECK(headline.find(" On NVIDIA ") != std::string::npos);
    window().take_picture(c, "compare_predicted");
    c->ItemClick("//###compare/###measure");
    c->Yield(2);
    const app::StepForm& form = window().ui().panels.capture.form;
    IM_CHECK_STR_EQ(form.device.c_str(), "auto");
    IM_CHECK_EQ(form.recipes.names.size(), view.columns.size());
}

GUI_TEST(trains, captures_trains_and_exports) {
    fill_form(c, "trained", {"original", "tempo"}, 4);
    run_form(c);
    IM_CHECK_EQ(status().curves.size(), size_t{2});
    for (const app::LiveCurve& curve : status().curves) {
        IM_CHECK(curve.finished);
        IM_CHECK(!curve.time_ns.empty());
        IM_CHECK_GT(curve.peak_bytes, int64_t{0});
    }
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    const app::Selection& selection = window().workspace().selection();
    IM_CHECK(selection.a && selection.b);
    IM_CHECK_STR_EQ(selection.a->recipe.c_str(), "original");
    IM_CHECK_EQ(selection.a->trace->steps.size(), size_t{4});
    IM_CHECK_LT(selection.b->index->ledger().total_bytes, selection.a->index->ledger().total_bytes);
    window().take_picture(c, "captured");

    const auto chart = window().folder() / "chart.svg";
    c->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    c->Yield(2);
    c->ItemInputValue("//Export/##name", chart.c_str());
    window().settle(c);
    const std::string svg = read_file(chart);
    IM_CHECK(svg.find("<svg") != std::string::npos);
    IM_CHECK_GT(static_cast<int>(svg.size()), 5000);
    std::filesystem::remove(chart);
}

GUI_TEST(trains, predicts_a_gpu_that_is_not_here) {
    fill_form(c, "predicted", {"original", "tempo"}, 1);
    window().ui().panels.capture.form.device = "predict:t4";
    window().ui().panels.capture.form.precision = "amp-fp16";
    c->Yield(2);
    run_form(c);
    IM_CHECK_EQ(status().curves.size(), size_t{2});
    for (const app::LiveCurve& curve : status().curves) {
        IM_CHECK(curve.finished);
        IM_CHECK_GT(curve.peak_bytes, int64_t{0});
    }
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    const profiler::Trace& trace = *window().workspace().selection().a->trace;
    IM_CHECK(trace.run().source == profiler::Source::kPredicted);
    IM_CHECK(std::filesystem::exists(window().workspace().selection().a->file));
    app::show_panel(window().ui(), "capture");
    window().take_picture(c, "capture_predicted");
    says_what_b_does_without_a_tensor(c);
    calls_are_drawn_once_in_the_colour_of_their_work(c);
    compare_is_never_empty(c);
}

/// A sweep holds no recorded step: its memory is predicted.
GUI_TEST(trains, a_sweep_alone_has_predicted_memory) {
    window().reset(c);
    window().open_files(c, {window().folder() / "sweeps" / "tempo.tscope"});
    const auto comparison = window().workspace().comparison();
    const profiler::CompareView& view = comparison->view;
    IM_CHECK(view.has_peak);
    IM_CHECK(view.has_throughput);
    IM_CHECK_STR_EQ(view.columns[0].recipe.c_str(), "tempo");
    IM_CHECK_GT(view.columns[0].peak_bytes, int64_t{0});
    IM_CHECK(view.columns[0].memory_is_predicted);
    IM_CHECK(!view.columns[0].is_planned);
    window().take_picture(c, "sweep_alone_planned");
}

GUI_TEST(trains, plans_and_exports) {
    window().reset(c);
    app::PlannerForm query;
    query.workload.model.num_layers = 2;
    query.recipes = {"original", "tempo"};
    query.is_chosen = true;
    window().workspace().apply({.queries = {.planner = query}});
    window().focus(c, "//###planner");
    const app::PlannerResult* result = window().workspace().slots().planner.view();
    IM_CHECK_SILENT(result != nullptr);
    IM_CHECK_STR_EQ(result->error.c_str(), "");
    const auto file = window().folder() / "plan.csv";
    app::ask_for_export(window().ui(), app::ExportTarget::Kind::kTable, "planner");
    c->Yield(2);
    c->ItemInputValue("//Export/##name", file.c_str());
    window().settle(c);
    const std::string csv = read_file(file);
    std::filesystem::remove(file);
    IM_CHECK(csv.find("tempo") != std::string::npos);
    IM_CHECK_GT(static_cast<int>(std::count(csv.begin(), csv.end(), '\n')), 2);
}

GUI_TEST(trains, sweeps_for_the_maximum_batch) {
    fill_form(c, "swept", {"original"}, 1);
    app::StepForm& form = window().ui().panels.capture.form;
    form.head = "layers";
    form.sweeps = true;
    c->Yield(2);
    IM_CHECK(window().ui().panels.capture.problem.find("memory limit") != std::string::npos);
    form.memory_limit = "300MiB";
    c->Yield(2);
    run_form(c);
    const app::CompareResult* result = window().workspace().slots().compare.view();
    IM_CHECK(result != nullptr);
    IM_CHECK(result->view.columns[0].max_batch_size.has_value());
}

GUI_TEST(trains, cancels_while_it_trains) {
    fill_form(c, "cancelled", {"original"}, 100'000);
    c->ItemClick("//###capture/**/###start");
    wait_until(c, [] { return !status().curves.empty() && status().curves[0].time_ns.size() > 3; });
    c->ItemClick("//###capture/**/###cancel");
    wait_until(c, [] { return !status().running; });
    window().settle(c);
    IM_CHECK(status().error.find("ancelled") != std::string::npos);
    IM_CHECK(window().workspace().documents().empty());
}

}  // namespace
}  // namespace tests
