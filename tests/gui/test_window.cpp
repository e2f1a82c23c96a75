#include "tests/gui/test_window.h"

#include <GLFW/glfw3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace tests {
namespace {
TestWindow*& current() {
    static TestWindow* window = nullptr;
    return window;
}
}  // namespace

TestWindow& window() { return *current(); }
void set_window(TestWindow& window) { current() = &window; }

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
    ui().reset_layout = true;
    ui().layout_history = {};
    settle(context);
}

void TestWindow::open(ImGuiTestContext* context, const std::vector<std::string>& recipes) {
    std::vector<std::filesystem::path> files;
    for (const std::string& recipe : recipes) files.push_back(trace(recipe));
    workspace().open(files);
    settle(context);
    IM_CHECK_EQ(workspace().documents().size(), recipes.size());
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
    context->MouseTeleportToPos(point_in(context, timeline, 0.40F, 0.25F));
    context->KeyDown(ImGuiMod_Shift);
    context->Yield(2);
    context->MouseDown(0);
    context->MouseMoveToPos(point_in(context, timeline, 0.60F, 0.30F));
    context->MouseUp(0);
    context->KeyUp(ImGuiMod_Shift);
    settle(context);
}

void TestWindow::click_ledger_row(ImGuiTestContext* context, int index) {
    const std::string name = "//###ledger/**/$$" + std::to_string(index) + "/##row";
    const ImRect row = context->ItemInfo(name.c_str()).RectFull;
    context->MouseMoveToPos({row.Min.x + row.GetHeight(), row.GetCenter().y});
    context->MouseClick();
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
