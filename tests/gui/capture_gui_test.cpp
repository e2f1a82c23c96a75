#include "tests/gui/test_window.h"

#include <filesystem>
#include <fstream>

namespace tests {
namespace {

app::CaptureStatus status() { return *window().workspace().capture().status(); }

std::filesystem::path capture_folder() { return window().workspace().capture().folder(); }

std::filesystem::path folder() { return window().folder() / "captured"; }

constexpr const char* kLimit = "4GiB";

/// While it exists, the fake worker waits halfway, so that a test can look at a running capture
/// however slow the machine is.
class Hold {
public:
    Hold() {
        std::filesystem::create_directories(folder());
        std::ofstream(folder() / "hold");
    }
    ~Hold() { release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void release() const { std::filesystem::remove(folder() / "hold"); }
};

void show_capture_panel(ImGuiTestContext* c, int64_t batch_size) {
    window().reset(c);
    app::StepForm form = app::first_capture_form();
    form.output = folder().string();
    form.batch_size = batch_size;
    window().ui().panels.capture.form = form;
    window().show_panel(c, "capture");
}

void start(ImGuiTestContext* c) { c->ItemClick("//###capture/**/###start"); }

void wait_for_end(ImGuiTestContext* c) {
    wait_until(c, [] { return !status().running; });
    window().settle(c);
}

GUI_TEST(capture, captures_and_opens_the_traces) {
    show_capture_panel(c, 8);
    const Hold hold;
    start(c);
    // Held halfway, one recipe is in its second step and the other waits for its turn.
    wait_until(c, [] {
        return status().curves.size() == 2 && status().curves[0].time_ns.size() > 8 &&
               status().curves[1].time_ns.size() > 8;
    });
    IM_CHECK(status().running);
    IM_CHECK(!status().curves[0].finished);
    IM_CHECK(!status().curves[1].finished);
    IM_CHECK_GT(status().share, 0.0);
    // The output of the worker appears while it works.
    IM_CHECK(status().log.find("fake worker: batch 8") != std::string::npos);
    window().take_running_picture(c, "capture_running");
    hold.release();
    wait_for_end(c);
    IM_CHECK_STR_EQ(status().error.c_str(), "");
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    IM_CHECK_STR_EQ(window().workspace().selection().b->recipe.c_str(), "tempo");
    IM_CHECK(status().log.find("fake worker: batch 8") != std::string::npos);
    // Each capture has a folder of its own, and the recent files name it once.
    const std::filesystem::path first = window().workspace().selection().a->file;
    IM_CHECK(first.parent_path().parent_path() == folder());
    IM_CHECK(window().ui().settings.recent_files.front() == first.parent_path());
    window().show_panel(c, "capture");  // the traces chose another layout
    start(c);
    wait_for_end(c);
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{4});
    IM_CHECK(std::filesystem::exists(first));
    // While nothing happens, nothing is copied.
    const auto& capture = window().workspace().capture();
    IM_CHECK(capture.status() == capture.status());
}

GUI_TEST(capture, cancels_a_capture) {
    show_capture_panel(c, 8);
    const Hold hold;
    start(c);
    wait_until(c, [] { return !status().curves.empty() && !status().curves[0].time_ns.empty(); });
    c->ItemClick("//###capture/**/###cancel");
    wait_for_end(c);
    IM_CHECK(window().workspace().documents().empty());
    IM_CHECK(status().error.find("cancelled") != std::string::npos);
    // The fake worker leaves no partial trace, so nothing is left of the capture.
    IM_CHECK(!std::filesystem::exists(capture_folder()));
}

/// Out of memory is a result: the other recipe runs, and the trace up to there opens.
GUI_TEST(capture, shows_what_ran_out_of_memory) {
    show_capture_panel(c, 97);
    window().ui().panels.capture.form.memory_limit = kLimit;
    start(c);
    wait_for_end(c);
    IM_CHECK(!status().curves[0].out_of_memory.empty());
    IM_CHECK(status().curves[1].out_of_memory.empty());
    IM_CHECK(status().curves[1].finished);
    window().take_picture(c, "capture_out_of_memory");
    IM_CHECK_EQ(window().workspace().documents().size(), size_t{2});
    const app::Selection& selection = window().workspace().selection();
    IM_CHECK_STR_EQ(selection.a->recipe.c_str(), "original");
    IM_CHECK(selection.a->is_cut_off);
    const std::string& headline = window().workspace().headline();
    IM_CHECK(headline.find("tempo trains the step in") == 0);
    IM_CHECK(headline.find("GiB of 4.00 GiB; original ran out of memory at") != std::string::npos);
    const auto comparison = window().workspace().comparison();
    IM_CHECK(comparison->view.columns[0].is_cut_off);
    IM_CHECK_STR_EQ(comparison->view.columns[0].why_no_peak.c_str(), "out of memory");
    IM_CHECK_GT(comparison->view.step_limit_bytes, int64_t{0});
    const profiler::TimelineTrace& timeline =
        window().workspace().slots().timeline.view()->traces[0];
    IM_CHECK(timeline.out_of_memory.has_value());
    IM_CHECK_GT(timeline.limit_bytes, 0.0);
    window().take_picture(c, "out_of_memory");
}

GUI_TEST(capture, says_why_a_capture_failed) {
    show_capture_panel(c, 99);
    start(c);
    wait_for_end(c);
    // What does not fit is a result of its recipe.
    IM_CHECK(status().curves[0].out_of_memory.find("Not enough memory") != std::string::npos);
    IM_CHECK(status().error.find("ran out of memory") != std::string::npos);
    IM_CHECK(!window().ui().toasts.toasts.empty());
}

GUI_TEST(capture, survives_a_worker_that_dies) {
    show_capture_panel(c, 98);
    start(c);
    wait_for_end(c);
    IM_CHECK(!status().error.empty());
    IM_CHECK(window().workspace().documents().empty());
}

GUI_TEST(capture, the_log_is_copied_and_cleared) {
    show_capture_panel(c, 8);
    window().ui().panels.log = {};
    start(c);
    wait_until(c, [] { return !status().running && !status().log.empty(); });
    window().settle(c);
    window().show_panel(c, "log");
    const app::LogState& log = window().ui().panels.log;
    IM_CHECK(!log.capture.lines.empty());
    IM_CHECK_STR_EQ(log.capture.lines.back().c_str(), "fake worker: batch 8");
    window().take_picture(c, "log");
    c->ItemClick("//###log/###copy");
    IM_CHECK(std::string(ImGui::GetClipboardText()).find("fake worker: batch 8") !=
             std::string::npos);
    c->ItemClick("//###log/###clear");
    c->Yield(2);
    IM_CHECK(log.capture.lines.empty());
    window().take_picture(c, "log_empty");
}

GUI_TEST(capture, refuses_what_cannot_run) {
    show_capture_panel(c, 8);
    window().ui().panels.capture.form.seq_len = 100'000;
    c->Yield(3);
    window().take_picture(c, "capture_refused");
    // The form says why, before anything is clicked, and names no options of the command line.
    const std::string problem = window().ui().panels.capture.problem;
    IM_CHECK(problem.find("attention scores") != std::string::npos);
    IM_CHECK(problem.find("--") == std::string::npos);
    IM_CHECK((c->ItemInfo("//###capture/**/###start").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    IM_CHECK(!status().running);
}

}  // namespace
}  // namespace tests
