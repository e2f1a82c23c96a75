// Measures, for traces of a million allocations, the UI time of a frame while the window is still,
// panned and zoomed; also the time to the first frame and the processor time of an idle window.
// Needs a display: xvfb-run -a gui_bench.
#include "app/window/shell.h"
#include "tests/support/synthetic_trace.h"

#include <GLFW/glfw3.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void settle(app::Shell& shell) {
    for (int i = 0; i < 6; ++i) {
        glfwPollEvents();
        shell.draw_frame();
    }
    while (!shell.ui().workspace.settled()) {
        glfwWaitEventsTimeout(0.01);
        shell.draw_frame();
    }
    shell.draw_frame();
}

void measure(app::Shell& shell, const char* what, int frames,
             const std::function<void(int)>& before_frame) {
    std::vector<double> ms;
    for (int i = 0; i < frames; ++i) {
        before_frame(i);
        glfwPollEvents();
        shell.draw_frame();
        ms.push_back(shell.ui_ms());
    }
    std::sort(ms.begin(), ms.end());
    std::printf("%-28s median %5.2f ms   95 %% %5.2f ms   worst %5.2f ms\n", what,
                ms[ms.size() / 2], ms[ms.size() * 95 / 100], ms.back());
}

void measure_frames(app::Shell& shell) {
    app::Workspace& workspace = shell.ui().workspace;
    const profiler::TimeRange all = workspace.time().limits;
    const double length_ns = all.end_ns - all.start_ns;
    const auto show = [&](double from, double share) {
        app::TimeWindow window = workspace.time().window;
        window.start_ns = all.start_ns + from * length_ns;
        window.end_ns = window.start_ns + share * length_ns;
        workspace.apply({.time_window = window});
    };
    glfwSwapInterval(0);
    for (const double zoom : {1.0, 16.0, 256.0, 4096.0}) {
        show(0.4, 1 / zoom);
        if (zoom == 1.0) show(0, 1);
        settle(shell);
        const std::string name = "still, zoom " + std::to_string(static_cast<int>(zoom));
        measure(shell, name.c_str(), 60, [](int) {});
    }
    for (const double zoom : {4.0, 256.0}) {
        const std::string name = "panning, zoom " + std::to_string(static_cast<int>(zoom));
        measure(shell, name.c_str(), 240,
                [&](int i) { show(0.2 + 0.05 / zoom * static_cast<double>(i), 1 / zoom); });
    }
    // The same with the Kernels panel in front, which has as many spans as the trace has ops.
    ImGui::SetWindowFocus("###kernels");
    settle(shell);
    for (const double zoom : {4.0, 256.0}) {
        const std::string name = "kernels, panning, zoom " + std::to_string(static_cast<int>(zoom));
        measure(shell, name.c_str(), 240,
                [&](int i) { show(0.2 + 0.05 / zoom * static_cast<double>(i), 1 / zoom); });
    }
    // The Flame graph, while the moment that it shows moves.
    ImGui::SetWindowFocus("###flame");
    settle(shell);
    measure(shell, "flame graph, still", 60, [](int) {});
    measure(shell, "flame graph, other moments", 120, [&](int i) {
        workspace.apply({.moment_ns = all.start_ns + length_ns * (0.1 + 0.001 * i)});
    });
    workspace.apply({.moment_ns = std::optional<double>()});
    // And the Blocks panel, with every allocation as a shape.
    ImGui::SetWindowFocus("###blocks");
    show(0, 1);
    settle(shell);
    measure(shell, "blocks, still, zoom 1", 60, [](int) {});
    for (const double zoom : {4.0, 256.0}) {
        const std::string name = "blocks, panning, zoom " + std::to_string(static_cast<int>(zoom));
        measure(shell, name.c_str(), 240,
                [&](int i) { show(0.2 + 0.05 / zoom * static_cast<double>(i), 1 / zoom); });
    }
    ImGui::SetWindowFocus("###compare");
    settle(shell);
    measure(shell, "hovering the timeline", 120, [&](int i) {
        int width = 0, height = 0;
        glfwGetWindowSize(shell.window(), &width, &height);
        ImGui::GetIO().AddMousePosEvent(
            static_cast<float>(width) * (0.25F + 0.002F * static_cast<float>(i)),
            static_cast<float>(height) * 0.68F);
    });
}

/// Runs the program's own loop with nothing to do. The frames that follow the last input are over
/// after a second.
void measure_idle(app::Shell& shell) {
    settle(shell);
    double cpu_s = 0, wall_s = 0;
    int64_t frames = 0;
    std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        const auto start = Clock::now();
        const double cpu_before_s = cpu_seconds();
        const int64_t frames_before = shell.frame_count();
        std::this_thread::sleep_for(std::chrono::seconds(10));
        cpu_s = cpu_seconds() - cpu_before_s;
        wall_s = seconds_since(start);
        frames = shell.frame_count() - frames_before;
        shell.ui().quit = true;
        glfwPostEmptyEvent();
    });
    shell.run();
    other.join();
    std::printf("idle for %.1f s: %.2f %% of a core, %lld frames\n", wall_s, cpu_s / wall_s * 100,
                static_cast<long long>(frames));
}

}  // namespace

int main(int argc, char** argv) {
    const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
    const auto start = Clock::now();
    auto shell = app::Shell::open({});
    if (!shell) {
        std::fprintf(stderr, "%s\n", shell.error().message.c_str());
        return 1;
    }
    (*shell)->draw_frame();
    std::printf("first frame after %.0f ms\n", seconds_since(start) * 1e3);

    const auto trace = std::make_shared<const profiler::Trace>(
        tests::make_synthetic_trace({.num_allocations = count}));
    const auto other = std::make_shared<const profiler::Trace>(
        tests::make_synthetic_trace({.num_allocations = count, .in_place = true}));
    const auto derive = Clock::now();
    (*shell)->ui().workspace.add(app::make_document("original.tscope", trace));
    (*shell)->ui().workspace.add(app::make_document("tempo.tscope", other));
    std::printf("%zu + %zu allocations, derived in %.2f s\n", trace->allocations.size(),
                other->allocations.size(), seconds_since(derive));
    settle(**shell);
    measure_frames(**shell);

    measure_idle(**shell);
    return 0;
}
