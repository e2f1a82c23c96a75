#include "tests/gui/pacing.h"

#include "app/workspace/wake.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

namespace tests {
namespace {

using namespace std::chrono_literals;

/// Frames that the window draws in the time that `meanwhile` takes on a thread of its own.
int64_t frames_during(app::Shell& shell, const std::function<void()>& meanwhile) {
    const int64_t before = shell.frame_count();
    int64_t after = before;
    shell.ui().quit = false;
    std::jthread other([&] {
        meanwhile();
        after = shell.frame_count();
        shell.ui().quit = true;
        app::wake_window();
    });
    shell.run();
    other.join();
    return after - before;
}

bool is_at_most(const char* what, int64_t frames, int64_t limit) {
    std::printf("%s: %lld frames, at most %lld\n", what, static_cast<long long>(frames),
                static_cast<long long>(limit));
    return frames <= limit;
}

}  // namespace

int check_pacing(app::Shell& shell) {
    frames_during(shell, [] { std::this_thread::sleep_for(2s); });  // the first pictures
    bool good = is_at_most("idle for 2 s",
                           frames_during(shell, [] { std::this_thread::sleep_for(2s); }), 6);
    // A frame per report, and the few that every run begins with.
    const int64_t woken = frames_during(shell, [] {
        for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(50ms);
            app::wake_window();
        }
    });
    good &= is_at_most("20 reports", woken, 28);
    // A capture sends some 50 samples a second: five frames, and those of its stages and its end.
    app::CaptureForm form;
    form.recipes = {"original"};
    form.folder = (std::filesystem::temp_directory_path() / "temposcope_pacing").string();
    shell.ui().workspace.apply({.start_capture = form});
    const int64_t captured = frames_during(shell, [&] {
        for (int i = 0; i < 100 && shell.ui().workspace.capture().running(); ++i) {
            std::this_thread::sleep_for(50ms);
        }
    });
    good &= is_at_most("a capture of 1.3 s", captured, 30);
    std::filesystem::remove_all(form.folder);
    return good ? 0 : 1;
}

}  // namespace tests
