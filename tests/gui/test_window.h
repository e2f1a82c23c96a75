#pragma once

#include "app/window/shell.h"

#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <filesystem>
#include <functional>
#include <string>

/// The window under test, and helpers for the tests.
namespace tests {

class TestWindow {
public:
    TestWindow(app::Shell& shell, std::filesystem::path pictures, std::filesystem::path traces)
        : shell_(shell), pictures_(std::move(pictures)), traces_(std::move(traces)) {}

    app::Ui& ui() { return shell_.ui(); }
    app::Workspace& workspace() { return shell_.ui().workspace; }
    app::Shell& shell() { return shell_; }

    /// A file written by test_traces.h: "original", "tempo" or "tempo-packed".
    std::filesystem::path trace(const std::string& recipe) const {
        return traces_ / (recipe + ".tscope");
    }
    const std::filesystem::path& folder() const { return traces_; }
    /// The folder for pictures.
    const std::filesystem::path& pictures() const { return pictures_; }

    /// Closes all traces and restores default layout, theme and selection.
    void reset(ImGuiTestContext* context);
    /// Waits until nothing loads and every view is the one wanted.
    void settle(ImGuiTestContext* context);
    void open(ImGuiTestContext* context, const std::vector<std::string>& recipes);
    void open_files(ImGuiTestContext* context, std::vector<std::filesystem::path> files);
    /// Resets the window, then opens these.
    void show(ImGuiTestContext* context, const std::vector<std::string>& recipes);

    /// What a user does. Each waits until the window has settled.
    void click(ImGuiTestContext* context, const char* item);
    void press(ImGuiTestContext* context, ImGuiKeyChord chord);
    void focus(ImGuiTestContext* context, const char* panel);
    void show_panel(ImGuiTestContext* context, const char* id);
    void apply(ImGuiTestContext* context, const app::PanelEvents& events, int number = 1);
    void click_at(ImGuiTestContext* context, ImVec2 point);
    void drag_to(ImGuiTestContext* context, ImVec2 point);

    void turn_wheel(ImGuiTestContext* context, int notches);

    /// Waits until the window has settled and writes a picture of it. Moves the mouse away first,
    /// unless `keep_mouse`.
    void take_picture(ImGuiTestContext* context, const std::string& name, bool keep_mouse = false);
    /// Writes a picture without waiting.
    void take_running_picture(ImGuiTestContext* context, const std::string& name);
    void resize(ImGuiTestContext* context, int width, int height);

    /// Selects a fifth of the Memory timeline, from 40 % of its width, as a user does.
    void select_range(ImGuiTestContext* context);

    /// Clicks near the left end: the border of a column may lie in the middle and take the click.
    void click_ledger_row(ImGuiTestContext* context, int index);

    /// Whether a tooltip is shown.
    bool has_tooltip() const;
    /// Length of the visible part of the time axis.
    double shown_ns() const;
    /// Whether the window with this id is open: "ledger", "ledger-2".
    bool is_open(const std::string& id) const;

    /// A point in a window, as shares of its size.
    ImVec2 point_in(ImGuiTestContext* context, const char* window, float x, float y);

private:
    app::Shell& shell_;
    std::filesystem::path pictures_;
    std::filesystem::path traces_;
};

/// The window of this run; gui_test_main.cpp sets it.
TestWindow& window();
void set_window(TestWindow& window);

struct GuiTest {
    const char* group;
    const char* name;
    void (*run)(ImGuiTestContext*);
    void (*watch)(ImGuiTestContext*);  // called at the begin of each frame, unless it is null
    const char* file;
    int line;
};
bool add_gui_test(const GuiTest& test);
/// Gives all tests of the program to the engine: file by file, those of a file in their order.
void register_gui_tests(ImGuiTestEngine* engine);

/// GUI_TEST(blocks, the_moment_plays) { ... } is a test of the group `blocks`; `c` is its context.
#define GUI_TEST(group, name) GUI_TEST_WATCHED(group, name, nullptr)
#define GUI_TEST_WATCHED(group, name, watch)                                               \
    void group##_##name(ImGuiTestContext* c);                                              \
    [[maybe_unused]] const bool group##_##name##_is_added =                                \
        ::tests::add_gui_test({#group, #name, group##_##name, watch, __FILE__, __LINE__}); \
    void group##_##name([[maybe_unused]] ImGuiTestContext* c)

/// All bytes of a file; empty if it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Draws frames until it holds. Has no time limit: on a loaded machine everything takes longer. The
/// watchdog of the test engine ends a test that hangs.
void wait_until(ImGuiTestContext* context, const std::function<bool()>& holds);

}  // namespace tests
