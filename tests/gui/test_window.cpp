#include "tests/gui/test_window.h"

#include <GLFW/glfw3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tests {
namespace {
TestWindow*& current() {
    static TestWindow* window = nullptr;
    return window;
}

std::vector<GuiTest>& gui_tests() {
    static std::vector<GuiTest> tests;
    return tests;
}
}  // namespace

TestWindow& window() { return *current(); }
void set_window(TestWindow& window) { current() = &window; }

bool add_gui_test(const GuiTest& test) {
    gui_tests().push_back(test);
    return true;
}

void register_gui_tests(ImGuiTestEngine* engine) {
    std::ranges::sort(gui_tests(), {}, [](const GuiTest& test) {
        return std::pair(std::string_view(test.file), test.line);
    });
    for (const GuiTest& test : gui_tests()) {
        ImGuiTest* const known =
            ImGuiTestEngine_RegisterTest(engine, test.group, test.name, test.file, test.line);
        known->TestFunc = test.run;
        known->GuiFunc = test.watch;
    }
}

void TestWindow::settle(ImGuiTestContext* context) {
    context->Yield(3);
    wait_until(context, [this] { return workspace().settled(); });
    context->Yield(3);
    wait_until(context, [this] { return workspace().settled(); });
}

void TestWindow::reset(ImGuiTestContext* context) {
    while (!workspace().documents().empty()) {
        workspace().close(workspace().documents().back());
    }
    workspace().clear_selection();
    workspace().apply({.window = {.ledger = app::LedgerQuery{}, .flame = app::FlameQuery{}}});
    ui().panels.ledger = {};
    ui().panels.flame = {};
    ui().panels.blocks = {};
    ui().further_panels = {};
    workspace().apply({.window = {.ledger = app::LedgerQuery{}, .blocks = app::BlocksQuery{}}});
    ui().panels.ledger.filter.clear();
    ui().toasts = {};
    ui().settings.dark = true;
    ui().settings.layout = 0;
    ui().settings.kept_layouts.clear();
    ui().reset_layout = true;
    ui().layout_history = {};
    settle(context);
}

void TestWindow::open(ImGuiTestContext* context, const std::vector<std::string>& recipes) {
    std::vector<std::filesystem::path> files;
    for (const std::string& recipe : recipes) files.push_back(trace(recipe));
    open_files(context, std::move(files));
    IM_CHECK_EQ(workspace().documents().size(), recipes.size());
}

void TestWindow::open_files(ImGuiTestContext* context, std::vector<std::filesystem::path> files) {
    workspace().open(std::move(files));
    settle(context);
}

void TestWindow::show(ImGuiTestContext* context, const std::vector<std::string>& recipes) {
    reset(context);
    open(context, recipes);
}

void TestWindow::click(ImGuiTestContext* context, const char* item) {
    context->ItemClick(item);
    settle(context);
}

void TestWindow::press(ImGuiTestContext* context, ImGuiKeyChord chord) {
    context->KeyPress(chord);
    settle(context);
}

void TestWindow::focus(ImGuiTestContext* context, const char* panel) {
    show_panel(context, panel + std::string_view("//###").size());
}

void TestWindow::show_panel(ImGuiTestContext* context, const char* id) {
    app::show_panel(ui(), id);
    settle(context);
}

void TestWindow::apply(ImGuiTestContext* context, const app::PanelEvents& events, int number) {
    workspace().apply(events, number);
    settle(context);
}

void TestWindow::click_at(ImGuiTestContext* context, ImVec2 point) {
    context->MouseMoveToPos(point);
    context->MouseClick(0);
    settle(context);
}

void TestWindow::drag_to(ImGuiTestContext* context, ImVec2 point) {
    context->MouseDown(0);
    context->MouseMoveToPos(point);
    context->MouseUp(0);
    settle(context);
}

void TestWindow::turn_wheel(ImGuiTestContext* context, int notches) {
    for (int i = 0; i < std::abs(notches); ++i) {
        context->MouseWheelY(notches > 0 ? 1.0F : -1.0F);
        context->Yield();
    }
}

void TestWindow::take_picture(ImGuiTestContext* context, const std::string& name, bool keep_mouse) {
    if (!keep_mouse) context->MouseTeleportToPos({2, 2});
    settle(context);
    take_running_picture(context, name);
}

void TestWindow::take_running_picture(ImGuiTestContext* context, const std::string& name) {
    ui().toasts = {};
    ui().picture = pictures_ / (name + ".png");
    std::filesystem::create_directories(pictures_);
    context->Yield(2);
    ui().workspace.take_notices();
    ui().toasts = {};
    IM_CHECK(std::filesystem::exists(pictures_ / (name + ".png")));
}

bool TestWindow::has_tooltip() const {
    const auto& windows = ImGui::GetCurrentContext()->Windows;
    return std::any_of(windows.begin(), windows.end(), [](const ImGuiWindow* window) {
        return (window->Flags & ImGuiWindowFlags_Tooltip) != 0 && window->WasActive;
    });
}

void TestWindow::resize(ImGuiTestContext* context, int width, int height) {
    glfwSetWindowSize(shell_.window(), width, height);
    context->Yield(4);
    settle(context);
}

void TestWindow::select_range(ImGuiTestContext* context) {
    const char* const timeline = "//###timeline";
    if (!is_open("timeline")) show_panel(context, "timeline");
    context->MouseTeleportToPos(point_in(context, timeline, 0.40F, 0.30F));
    context->KeyDown(ImGuiMod_Shift);
    context->Yield(2);
    drag_to(context, point_in(context, timeline, 0.60F, 0.30F));
    context->KeyUp(ImGuiMod_Shift);
    settle(context);
}

void TestWindow::click_ledger_row(ImGuiTestContext* context, int index) {
    if (!is_open("ledger")) show_panel(context, "ledger");
    const std::string name = "//###ledger/**/$$" + std::to_string(index) + "/##row";
    const ImRect row = context->ItemInfo(name.c_str()).RectFull;
    click_at(context, {row.Min.x + row.GetHeight(), row.GetCenter().y});
}

double TestWindow::shown_ns() const {
    const app::TimeWindow& shown = shell_.ui().workspace.time().window;
    return shown.end_ns - shown.start_ns;
}

bool TestWindow::is_open(const std::string& id) const {
    const auto window = app::find_window(id);
    return window && app::is_open(shell_.ui(), *window);
}

ImVec2 TestWindow::point_in(ImGuiTestContext* context, const char* window, float x, float y) {
    const ImGuiTestItemInfo info = context->WindowInfo(window);
    return {info.RectFull.Min.x + info.RectFull.GetWidth() * x,
            info.RectFull.Min.y + info.RectFull.GetHeight() * y};
}

std::string read_file(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void wait_until(ImGuiTestContext* context, const std::function<bool()>& holds) {
    while (!holds() && !context->IsError()) {
        // Leaves the processor to the work that is waited for: an unthrottled frame takes all of
        // it.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        context->Yield();
    }
}

}  // namespace tests
