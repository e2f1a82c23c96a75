#pragma once

#include "app/window/shell.h"

#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <filesystem>
#include <functional>
#include <string>

/// The window under test and what tests do with it again and again.
namespace tests {

class TestWindow {
public:
    TestWindow(app::Shell& shell, std::filesystem::path pictures, std::filesystem::path traces)
        : shell_(shell), pictures_(std::move(pictures)), traces_(std::move(traces)) {}

    app::Ui& ui() { return shell_.ui(); }
    app::Workspace& workspace() { return shell_.ui().workspace; }
    app::Shell& shell() { return shell_; }

    /// A trace file that test_traces.h has written: "original", "tempo", "tempo-packed".
    std::filesystem::path trace(const std::string& recipe) const {
        return traces_ / (recipe + ".tscope");
    }
    const std::filesystem::path& folder() const { return traces_; }
    /// Where pictures go.
    const std::filesystem::path& pictures() const { return pictures_; }

    /// Closes everything, default layout and theme, no selection, window as at the start.
    void reset(ImGuiTestContext* context);
    /// Waits until nothing loads and every view is the one wanted.
    void settle(ImGuiTestContext* context);
    void open(ImGuiTestContext* context, const std::vector<std::string>& recipes);
    /// Writes a picture of the whole window, mouse out of the way unless `keep_mouse`.
    void take_picture(ImGuiTestContext* context, const std::string& name, bool keep_mouse = false);
    /// The same without waiting until nothing moves.
    void take_running_picture(ImGuiTestContext* context, const std::string& name);
    void resize(ImGuiTestContext* context, int width, int height);

    /// Length of the visible part of the time axis.
    double shown_ns() const;
    /// Whether the panel with this id is open.
    bool is_open(const std::string& id) const;

    /// A point inside a window, by shares of its size.
    ImVec2 point_in(ImGuiTestContext* context, const char* window, float x, float y);

private:
    app::Shell& shell_;
    std::filesystem::path pictures_;
    std::filesystem::path traces_;
};

/// Of the run; set by gui_test_main.cpp.
TestWindow& window();
void set_window(TestWindow& window);

void register_capture_tests(ImGuiTestEngine* engine);
void register_files_tests(ImGuiTestEngine* engine);
void register_compare_tests(ImGuiTestEngine* engine);
void register_kernels_tests(ImGuiTestEngine* engine);
void register_timeline_tests(ImGuiTestEngine* engine);
void register_ledger_tests(ImGuiTestEngine* engine);
void register_layout_tests(ImGuiTestEngine* engine);
void register_picture_tests(ImGuiTestEngine* engine);
void register_worker_tests(ImGuiTestEngine* engine);

/// Draws frames until it holds. Has no time limit: on a loaded machine everything takes longer. The
/// watchdog of the test engine ends a test that hangs.
void wait_until(ImGuiTestContext* context, const std::function<bool()>& holds);

}  // namespace tests
