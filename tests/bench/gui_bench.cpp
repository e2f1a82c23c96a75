// Measures, for traces of a million allocations, the processor time that a frame takes of the UI
// thread: with each panel in front, still, while time is panned and while the moment moves. Also
// how long it takes to open such a trace and other files, and the processor time of an idle window.
// Needs a display: xvfb-run -a gui_bench [ALLOCATIONS [FILE...]].
#include "app/window/shell.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/support/synthetic_trace.h"

#include <GLFW/glfw3.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// As in the program: work that goes on or is done wakes the window before.
constexpr double kLongestWait_s = 1;

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
        glfwWaitEventsTimeout(kLongestWait_s);
        shell.draw_frame();
    }
    shell.draw_frame();
}

/// Draws frames and prints what the UI thread needs for each.
void measure(app::Shell& shell, const std::string& what, int frames,
             const std::function<void(int)>& before_frame) {
    std::vector<double> ms;
    for (int i = 0; i < frames; ++i) {
        before_frame(i);
        glfwPollEvents();
        shell.draw_frame();
        ms.push_back(shell.ui_cpu_ms());
    }
    std::sort(ms.begin(), ms.end());
    std::printf("%-36s median %5.2f ms   95 %% %5.2f ms   worst %5.2f ms\n", what.c_str(),
                ms[ms.size() / 2], ms[ms.size() * 95 / 100], ms.back());
}

/// Each panel in front once: still, while the time axis moves, and while the moment moves.
void measure_panels(app::Shell& shell) {
    app::Workspace& workspace = shell.ui().workspace;
    const profiler::TimeRange all = workspace.time().limits;
    const double length_ns = all.end_ns - all.start_ns;
    const auto show = [&](double from, double share) {
        app::TimeWindow window = workspace.time().window;
        window.start_ns = all.start_ns + from * length_ns;
        window.end_ns = window.start_ns + share * length_ns;
        workspace.apply({.time = {.window = window}});
    };
    for (const app::PanelRow& row : app::kPanels) {
        const std::string title = row.title;
        app::show_panel(shell.ui(), row.id);
        show(0, 1);
        settle(shell);
        measure(shell, title + ", still", 60, [](int) {});
        for (const int zoom : {4, 256}) {
            measure(shell, title + ", panning, zoom " + std::to_string(zoom), 120,
                    [&](int i) { show(0.2 + 0.05 / zoom * i, 1.0 / zoom); });
        }
        show(0, 1);
        settle(shell);
        measure(shell, title + ", other moments", 60, [&](int i) {
            workspace.apply(
                {.selection = {.moment_ns = all.start_ns + length_ns * (0.1 + 0.001 * i)}});
        });
        workspace.apply({.selection = {.moment_ns = std::optional<double>()}});
    }
}

void measure_hovering(app::Shell& shell) {
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
    std::atomic<bool> is_settled = false, is_over = false;
    const std::jthread other([&] {
        for (const auto& [time, flag] : {std::pair(1, &is_settled), std::pair(10, &is_over)}) {
            std::this_thread::sleep_for(std::chrono::seconds(time));
            *flag = true;
            glfwPostEmptyEvent();
        }
    });
    std::optional<Clock::time_point> start;
    double cpu_before_s = 0;
    int64_t frames_before = 0;
    shell.run([&] {
        if (is_settled && !start) {
            start = Clock::now();
            cpu_before_s = cpu_seconds();
            frames_before = shell.frame_count();
        }
        return is_over.load();
    });
    const double wall_s = seconds_since(*start);
    std::printf("idle for %.1f s: %.2f %% of a core, %lld frames\n", wall_s,
                (cpu_seconds() - cpu_before_s) / wall_s * 100,
                static_cast<long long>(shell.frame_count() - frames_before - 1));  // one to end
}

/// From nothing to a window that shows the timeline of the file, and to one that shows all of it.
void measure_opening(const std::filesystem::path& file) {
    const auto start = Clock::now();
    auto shell =
        app::Shell::open({.before_window = [&](app::Ui& ui) { ui.workspace.open({file}); }});
    if (!shell) {
        std::fprintf(stderr, "%s\n", shell.error().message.c_str());
        return;
    }
    const app::Workspace& workspace = (*shell)->ui().workspace;
    (*shell)->draw_frame();
    const double window_s = seconds_since(start);
    const auto wait_until = [&](const std::function<bool()>& holds) {
        while (!holds()) {
            glfwWaitEventsTimeout(kLongestWait_s);
            (*shell)->draw_frame();
        }
    };
    wait_until([&] { return !workspace.loading(); });
    const double read_s = seconds_since(start);
    wait_until([&] { return workspace.slots().timeline.view() || workspace.settled(); });
    (*shell)->draw_frame();
    const double picture_s = seconds_since(start);
    settle(**shell);
    std::printf(
        "%s: window after %.2f s, read after %.2f s, timeline after %.2f s, all after %.2f s\n",
        file.filename().c_str(), window_s, read_s, picture_s, seconds_since(start));
}

std::string write_synthetic(int64_t count) {
    const auto file = std::filesystem::temp_directory_path() / "gui_bench.tscope";
    const auto trace = tests::make_synthetic_trace({.num_allocations = count});
    const auto written = profiler::write_trace(trace, file);
    if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return file;
}

}  // namespace

int main(int argc, char** argv) {
    const int64_t count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
    for (int i = 2; i < argc; ++i) measure_opening(argv[i]);
    const std::filesystem::path synthetic = write_synthetic(count);
    measure_opening(synthetic);
    std::filesystem::remove(synthetic);

    auto shell = app::Shell::open({});
    if (!shell) {
        std::fprintf(stderr, "%s\n", shell.error().message.c_str());
        return 1;
    }
    const auto trace = std::make_shared<const profiler::Trace>(
        tests::make_synthetic_trace({.num_allocations = count}));
    const auto other = std::make_shared<const profiler::Trace>(
        tests::make_synthetic_trace({.num_allocations = count, .in_place = true}));
    (*shell)->ui().workspace.add(app::make_document("original.tscope", trace));
    (*shell)->ui().workspace.add(app::make_document("tempo.tscope", other));
    std::printf("%zu + %zu allocations\n", trace->allocations.size(), other->allocations.size());
    settle(**shell);
    glfwSwapInterval(0);
    measure_panels(**shell);
    measure_hovering(**shell);
    measure_idle(**shell);
    return 0;
}
