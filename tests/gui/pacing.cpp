#include "tests/gui/pacing.h"

#include "app/widgets/imgui_internals.h"
#include "app/widgets/theme.h"
#include "app/window/windows.h"
#include "app/workspace/jobs/wake.h"
#include "tests/gui/test_traces.h"

#include <imgui_internal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>

namespace tests {
namespace {

using namespace std::chrono_literals;

/// Number of frames that the window draws while `meanwhile` runs on another thread, and one to end.
int64_t frames_during(app::Shell& shell, const std::function<void()>& meanwhile) {
    const int64_t before = shell.frame_count();
    std::atomic<bool> is_done = false;
    const std::jthread other([&] {
        meanwhile();
        is_done = true;
        app::wake_window();
    });
    shell.run([&] { return is_done.load(); });
    return shell.frame_count() - before;
}

int64_t frames_during(app::Shell& shell, std::chrono::milliseconds time) {
    return frames_during(shell, [time] { std::this_thread::sleep_for(time); });
}

/// Number of frames that the window draws while keys wait.
int64_t frames_of_queued_keys(app::Shell& shell) {
    // A window that sleeps while keys wait takes more than 20 s; the limit is for loaded machines.
    const auto end = std::chrono::steady_clock::now() + 15s;
    const int64_t before = shell.frame_count();
    shell.run([&] { return !app::has_queued_input() || std::chrono::steady_clock::now() > end; });
    return shell.frame_count() - before;
}

bool is_at_most(const char* what, int64_t frames, int64_t limit) {
    std::printf("%s: %lld frames, at most %lld\n", what, static_cast<long long>(frames),
                static_cast<long long>(limit));
    return frames <= limit;
}

/// Forty keys that arrive at once, as over a slow connection, in a text field.
bool takes_queued_keys(app::Shell& shell) {
    constexpr std::string_view kTyped = "what uses the memory of layer eleven now";
    app::PaletteState& palette = shell.ui().palette;
    palette.request_open = true;
    frames_during(shell, 500ms);
    ImGuiIO& io = ImGui::GetIO();
    for (const char c : kTyped) {
        const auto key = c == ' ' ? ImGuiKey_Space : static_cast<ImGuiKey>(ImGuiKey_A + (c - 'a'));
        io.AddKeyEvent(key, true);
        io.AddInputCharacter(static_cast<unsigned>(c));
        io.AddKeyEvent(key, false);
    }
    const int64_t frames = frames_of_queued_keys(shell);
    std::printf("typed '%s' in %lld frames\n", palette.query.c_str(),
                static_cast<long long>(frames));
    // On a machine with nothing else to do, all are visible within a second: few frames are shown.
    const bool complete =
        palette.query == kTyped && is_at_most("shown while 40 keys wait", frames, 20);
    // A text field with the focus is as idle as any other: five frames after the last key, one a
    // second, and one to end.
    const bool idle = is_at_most("idle in a text field for 2 s", frames_during(shell, 2s), 8);
    io.AddKeyEvent(ImGuiKey_Escape, true);
    io.AddKeyEvent(ImGuiKey_Escape, false);
    return complete && idle;
}

void add_key(ImGuiKey key) {
    ImGui::GetIO().AddKeyEvent(key, true);
    ImGui::GetIO().AddKeyEvent(key, false);
}

bool is_tooltip_shown() {
    const auto& windows = ImGui::GetCurrentContext()->Windows;
    return std::any_of(windows.begin(), windows.end(), [](const ImGuiWindow* window) {
        return (window->Flags & ImGuiWindowFlags_Tooltip) != 0 && window->WasActive;
    });
}

bool holds(const char* what, bool it_holds) {
    std::printf("%s: %s\n", what, it_holds ? "yes" : "no");
    return it_holds;
}

/// A shortcut behind keys that wait, a theme behind it, and a tooltip after the mouse has stopped:
/// each needs frames that no event asks for.
bool draws_what_is_due(app::Shell& shell) {
    app::Ui& ui = shell.ui();
    ImGuiIO& io = ImGui::GetIO();
    // Shorter than the longest sleep of the window, which draws a frame in any case.
    const auto drain = [&] {
        frames_of_queued_keys(shell);
        frames_during(shell, 500ms);
    };
    ui.palette.request_open = true;
    frames_during(shell, 300ms);
    for (int i = 0; i < 10; ++i) add_key(ImGuiKey_A);
    add_key(ImGuiKey_Escape);
    // The picture of the window: what else could be exported, no trace has brought.
    for (const ImGuiKey held : {ImGuiMod_Ctrl, ImGuiMod_Shift}) io.AddKeyEvent(held, true);
    add_key(ImGuiKey_E);
    for (const ImGuiKey held : {ImGuiMod_Ctrl, ImGuiMod_Shift}) io.AddKeyEvent(held, false);
    drain();
    bool good = holds("a shortcut behind queued keys opens its dialog",
                      ImGui::FindWindowByName("Export") != nullptr &&
                          ImGui::FindWindowByName("Export")->WasActive);
    add_key(ImGuiKey_Escape);
    frames_during(shell, 300ms);

    // The theme changes in the middle of a frame and is applied before the next one.
    ui.palette.request_open = true;
    frames_during(shell, 300ms);
    io.AddInputCharactersUTF8("light th");
    drain();
    add_key(ImGuiKey_Enter);
    drain();
    good &= holds("a new theme is drawn", !ui.settings.dark && !app::palette().dark);
    ui.settings.dark = true;

    const ImRect bar = ImGui::FindWindowByName("##toolbar")->Rect();
    io.AddMousePosEvent(bar.Min.x + app::em(2), bar.GetCenter().y);
    frames_during(shell, 4s);
    good &= holds("a tooltip comes after the mouse has stopped", is_tooltip_shown());
    io.AddMousePosEvent(-1, -1);
    return good;
}

/// Clicks on tabs that arrive together with their move, as over a slow connection.
bool takes_clicks_on_tabs(app::Shell& shell) {
    ImGuiIO& io = ImGui::GetIO();
    const auto drain = [&] { shell.run([] { return !app::has_queued_input(); }); };
    constexpr int kClicks = 20;
    int taken = 0;
    for (int i = 0; i < kClicks; ++i) {
        const ImGuiWindow* const panel =
            ImGui::FindWindowByName(i % 2 == 0 ? "###kernels" : "###layer");
        if (panel == nullptr) break;
        const ImVec2 tab = panel->DC.DockTabItemRect.GetCenter();
        io.AddMousePosEvent(tab.x, tab.y);
        io.AddMouseButtonEvent(0, true);
        io.AddMouseButtonEvent(0, false);
        drain();
        const auto end = std::chrono::steady_clock::now() + 3s;  // on a loaded machine
        shell.run(
            [&] { return panel->DockTabIsVisible || std::chrono::steady_clock::now() > end; });
        taken += panel->DockTabIsVisible ? 1 : 0;
        io.AddMousePosEvent(-1, -1);
        drain();
    }
    std::printf("clicks on tabs: %d of %d\n", taken, kClicks);
    return taken == kClicks;
}

}  // namespace

int check_pacing(app::Shell& shell) {
    frames_during(shell, 2s);  // the first pictures
    bool good = is_at_most("idle for 2 s", frames_during(shell, 2s), 7);
    good &= takes_queued_keys(shell);
    good &= draws_what_is_due(shell);
    good &= takes_clicks_on_tabs(shell);
    // One frame per report, and the few with which every run begins.
    const int64_t woken = frames_during(shell, [] {
        for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(50ms);
            app::wake_window();
        }
    });
    good &= is_at_most("20 reports", woken, 29);
    // The fake worker sends some 50 samples a second. Five frames a second are drawn for them, and
    // some more for the stages and the end of the capture. A loaded machine takes longer, so the
    // limit grows with the time that the capture took.
    app::StepForm form = app::first_capture_form();
    form.recipes.names = {"original"};
    form.output = (std::filesystem::temp_directory_path() / "temposcope_pacing").string();
    shell.ui().workspace.apply({.capture = {.start = form}});
    const auto start = std::chrono::steady_clock::now();
    const int64_t before = shell.frame_count();
    shell.run([&] { return !shell.ui().workspace.capture().running(); });
    const int64_t captured = shell.frame_count() - before;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    good &= is_at_most("a capture", captured, 22 + static_cast<int64_t>(6 * took.count()));
    std::filesystem::remove_all(form.output);
    return good ? 0 : 1;
}

int check_arrivals(app::Shell& shell) {
    app::Workspace& workspace = shell.ui().workspace;
    bool good = true;
    const auto arrives = [&](const std::string& what, const std::function<bool()>& is_there) {
        // What does not arrive by itself never does; the limit is for loaded machines.
        const auto end = std::chrono::steady_clock::now() + 60s;
        const auto has_arrived = [&] { return workspace.settled() && is_there(); };
        shell.run([&] { return has_arrived() || std::chrono::steady_clock::now() > end; });
        std::printf("%s: %s\n", what.c_str(), has_arrived() ? "arrived" : "did not arrive");
        good = good && has_arrived();
    };
    const app::DocumentPtr small = predicted_step();
    const app::DocumentPtr original = predicted_step("a100-80gb", /*num_layers=*/24);
    if (!small || !original) return 1;
    workspace.add(original);
    arrives("A", [&] { return workspace.selection().a == original && workspace.comparison(); });
    for (const char* panel : {"timeline", "kernels", "ledger", "blocks", "flame", "movement",
                              "inspector", "planner", "compare"}) {
        const int64_t before = shell.frame_count();
        app::show_panel(shell.ui(), panel);
        arrives(panel, [&] {
            return shell.frame_count() > before && shell.ui().focus_queue.empty() &&
                   shell.ui().panel_rects.contains(panel);
        });
    }
    for (const char* recipe : {"gelu=in_place", "gelu=in_place,layer_norm=from_output",
                               "gelu=recompute", "attention=flash", "checkpoint=per_layer"}) {
        workspace.apply({.recipes = {.try_recipe = recipe}});
        arrives(recipe, [&] {
            const app::DocumentPtr& b = workspace.selection().b;
            return b && b->canonical_recipe == recipe &&
                   workspace.headline().find("would fit") != std::string::npos;
        });
    }
    app::show_panel(shell.ui(), "layer");
    arrives("what is one switch away", [&] { return workspace.is_made_ahead(); });
    workspace.add(small);  // the frontier of a large one takes half a minute
    workspace.set_a(small);
    app::show_panel(shell.ui(), "frontier");
    arrives("the whole frontier", [&] { return workspace.frontier_plans().is_complete(); });
    return good ? 0 : 1;
}

}  // namespace tests
