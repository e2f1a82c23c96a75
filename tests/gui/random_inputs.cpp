#include "tests/gui/random_inputs.h"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace tests {
namespace {

namespace fs = std::filesystem;

constexpr int kShownEvery = 64;  // frames; drawing pixels takes far longer than building a frame

class RandomUser {
public:
    RandomUser(app::Shell& shell, const RandomInputs& inputs)
        : shell_(shell), random_(inputs.seed) {
        for (const auto& file : fs::directory_iterator(inputs.traces)) traces_.push_back(file);
        std::sort(traces_.begin(), traces_.end());
        if (const char* log = std::getenv("TEMPOSCOPE_LOG_INPUTS")) logs_ = *log == '1';
    }

    void act() {
        struct Habit {
            int weight;
            const char* name;
            void (RandomUser::*act)();
        };
        static constexpr std::array kHabits{
            Habit{34, "move", &RandomUser::move},
            Habit{16, "click", &RandomUser::click},
            Habit{4, "double click", &RandomUser::double_click},
            Habit{4, "right click", &RandomUser::right_click},
            Habit{8, "drag", &RandomUser::drag},
            Habit{9, "wheel", &RandomUser::turn_wheel},
            Habit{13, "key", &RandomUser::press_key},
            Habit{8, "text", &RandomUser::type},
            Habit{1, "resize", &RandomUser::resize},
            Habit{1, "open", &RandomUser::open},
            Habit{1, "close", &RandomUser::close},
            Habit{1, "panel", &RandomUser::show_panel},
        };
        int left = pick(100);
        for (const Habit& habit : kHabits) {
            left -= habit.weight;
            if (left >= 0) continue;
            if (logs_) {
                std::printf("%lld %s\n", static_cast<long long>(frames_), habit.name);
                std::fflush(stdout);
            }
            (this->*habit.act)();
            break;
        }
        draw();
    }

    /// Closes popups and documents, as a user who starts anew.
    void come_to_rest() {
        for (int i = 0; i < 8; ++i) tap(ImGuiKey_Escape);
        while (!shell_.ui().workspace.documents().empty()) {
            shell_.ui().workspace.close(shell_.ui().workspace.documents().back());
        }
        draw();
    }

private:
    int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
    bool is_likely(int percent) { return pick(100) < percent; }

    void draw() {
        glfwPollEvents();
        // The window may lie under the real mouse, and closing it is no test.
        shell_.draw_frame({}, ++frames_ % kShownEvery == 0);
        shell_.ui().quit = false;
        shell_.ui().workspace.take_changed();
    }

    ImVec2 point() {
        // Before the first frame ImGui has a size of -1.
        const auto below = [this](float size) {
            return static_cast<float>(pick(std::max(static_cast<int>(size), 0) + 1));
        };
        const ImVec2 size = ImGui::GetIO().DisplaySize;
        return {below(size.x), below(size.y)};
    }

    void move() {
        const ImVec2 to = is_likely(40) ? near(12) : point();
        at_ = to;
        ImGui::GetIO().AddMousePosEvent(to.x, to.y);
    }
    ImVec2 near(int distance) {
        return {at_.x + static_cast<float>(pick(2 * distance + 1) - distance),
                at_.y + static_cast<float>(pick(2 * distance + 1) - distance)};
    }

    void press(ImGuiMouseButton button) {
        ImGui::GetIO().AddMouseButtonEvent(button, true);
        draw();
        ImGui::GetIO().AddMouseButtonEvent(button, false);
    }
    void click() {
        if (is_likely(60)) move();
        draw();
        press(ImGuiMouseButton_Left);
    }
    void double_click() {
        press(ImGuiMouseButton_Left);
        draw();
        press(ImGuiMouseButton_Left);
    }
    void right_click() { press(is_likely(80) ? ImGuiMouseButton_Right : ImGuiMouseButton_Middle); }

    void drag() {
        const ImGuiMouseButton button = is_likely(80) ? ImGuiMouseButton_Left : pick(3);
        const bool shift = is_likely(30);
        ImGuiIO& io = ImGui::GetIO();
        if (shift) io.AddKeyEvent(ImGuiMod_Shift, true);
        io.AddMouseButtonEvent(button, true);
        for (int i = pick(5) + 1; i > 0; --i) {
            draw();
            move();
        }
        draw();
        if (is_likely(10)) tap(ImGuiKey_Escape);
        io.AddMouseButtonEvent(button, false);
        if (shift) io.AddKeyEvent(ImGuiMod_Shift, false);
    }

    void turn_wheel() {
        const float notches = static_cast<float>(pick(9) - 4);
        ImGui::GetIO().AddMouseWheelEvent(is_likely(10) ? notches : 0, notches);
    }

    void tap(ImGuiKey key) {
        ImGui::GetIO().AddKeyEvent(key, true);
        draw();
        ImGui::GetIO().AddKeyEvent(key, false);
        draw();
    }
    void press_key() {
        ImGuiIO& io = ImGui::GetIO();
        const bool ctrl = is_likely(40), shift = is_likely(20), alt = is_likely(5);
        io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
        io.AddKeyEvent(ImGuiMod_Shift, shift);
        io.AddKeyEvent(ImGuiMod_Alt, alt);
        const int keys = ImGuiKey_GamepadStart - ImGuiKey_NamedKey_BEGIN;
        tap(static_cast<ImGuiKey>(ImGuiKey_NamedKey_BEGIN + pick(keys)));
        for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt}) {
            io.AddKeyEvent(modifier, false);
        }
    }

    void type() {
        // No slash and no dot: what is written goes to the scratch folder.
        static constexpr std::array<unsigned, 20> kCharacters{
            'a', 'e', 'l', 'q', 't', 'z', '0',  '1',   '9',    '-',
            ' ', '=', ',', '%', '"', '_', 0xE9, 0x3B1, 0x4E2D, 0x1F600};
        for (int i = pick(6) + 1; i > 0; --i) {
            ImGui::GetIO().AddInputCharacter(kCharacters[static_cast<size_t>(pick(20))]);
        }
    }

    void resize() {
        glfwSetWindowSize(shell_.window(), 320 + pick(1400), 240 + pick(900));
        draw();
    }
    void open() {
        if (!traces_.empty()) {
            shell_.ui().workspace.open(
                {traces_[static_cast<size_t>(pick(static_cast<int>(traces_.size())))]});
        }
    }
    void close() {
        const auto& documents = shell_.ui().workspace.documents();
        if (documents.empty()) return;
        const auto index = static_cast<size_t>(pick(static_cast<int>(documents.size())));
        shell_.ui().workspace.close(documents[index]);
    }
    void show_panel() {
        const auto index = static_cast<size_t>(pick(static_cast<int>(app::kPanels.size())));
        app::show_panel(shell_.ui(), app::kPanels[index].id);
    }

    app::Shell& shell_;
    std::mt19937 random_;
    std::vector<fs::path> traces_;
    ImVec2 at_{100, 100};
    int64_t frames_ = 0;
    bool logs_ = false;
};

}  // namespace

int check_random_inputs(app::Shell& shell, const RandomInputs& inputs) {
    std::printf("%lld random inputs, seed %u\n", static_cast<long long>(inputs.count), inputs.seed);
    RandomUser user(shell, inputs);
    for (int64_t i = 0; i < inputs.count; ++i) user.act();
    user.come_to_rest();
    shell.ui().workspace.open({inputs.traces / "original.tscope"});
    const auto shows_it = [&] {
        return shell.ui().workspace.settled() && shell.ui().workspace.selection().a &&
               shell.ui().workspace.slots().timeline.view();
    };
    while (!shows_it()) {
        glfwWaitEventsTimeout(0.01);
        shell.draw_frame();
    }
    std::printf("the window still works\n");
    return 0;
}

}  // namespace tests
