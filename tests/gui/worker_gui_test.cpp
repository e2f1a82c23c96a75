// The whole way: form, temposcope-worker with libtorch, live curve, finished trace, exported chart.
// With one layer and few tokens it takes seconds.
#include "tests/gui/test_window.h"

#include <fstream>
#include <iterator>
#include <string>

namespace tests {
namespace {

app::CaptureStatus status() { return *window().workspace().capture().status(); }

void fill_form(ImGuiTestContext* c, const char* folder, std::vector<std::string> recipes,
               int64_t steps) {
    window().reset(c);
    app::CaptureForm form;
    form.model = "bert-base";
    form.num_layers = 1;
    form.batch_size = 2;
    form.seq_len = 32;
    form.steps = steps;
    form.recipes = std::move(recipes);
    form.folder = (window().folder() / folder).string();
    window().ui().panels.capture.form = form;
    app::show_panel(window().ui(), "capture");
    c->Yield(4);
}

/// Starts the filled-in capture and waits for its traces.
void run_form(ImGuiTestContext* c) {
    c->ItemClick("//###capture/**/###start");
    wait_until(c, [] { return !status().running; });
    window().settle(c);
    IM_CHECK_STR_EQ(status().error.c_str(), "");
}

void predicts_a_gpu_that_is_not_here(ImGuiTestContext* c) {
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
}

void sweeps_for_the_maximum_batch(ImGuiTestContext* c) {
    fill_form(c, "swept", {"original"}, 1);
    app::CaptureForm& form = window().ui().panels.capture.form;
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

void captures_trains_and_exports(ImGuiTestContext* c) {
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
    IM_CHECK_LT(selection.b->report->ledger.total_bytes, selection.a->report->ledger.total_bytes);
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

void cancels_while_it_trains(ImGuiTestContext* c) {
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

void register_worker_tests(ImGuiTestEngine* engine) {
    const auto add = [&](const char* name, void (*run)(ImGuiTestContext*)) {
        IM_REGISTER_TEST(engine, "trains", name)->TestFunc = run;
    };
    add("captures_trains_and_exports", captures_trains_and_exports);
    add("predicts_a_gpu_that_is_not_here", predicts_a_gpu_that_is_not_here);
    add("sweeps_for_the_maximum_batch", sweeps_for_the_maximum_batch);
    add("cancels_while_it_trains", cancels_while_it_trains);
}

}  // namespace tests
