#include "app/commands/console/interrupt.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace app {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<profiler::WorkerClient*> g_worker = nullptr;
static_assert(std::atomic<profiler::WorkerClient*>::is_always_lock_free);

std::atomic<int64_t> g_first_signal_ms = 0;  // 0: none yet
constexpr int64_t kImpatient_ms = 1000;

int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // may be called from a signal handler
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// The first cancels. One that follows at once is the same wish (timeout(1) signals the child and
/// its group); a later one does what the signal always does.
void cancel_worker(int number) {
    const int error_before = errno;  // of whatever call the signal came into
    if (g_first_signal_ms == 0) g_first_signal_ms = now_ms();
    if (now_ms() - g_first_signal_ms > kImpatient_ms) {
        std::signal(number, SIG_DFL);
        std::raise(number);
    }
    if (profiler::WorkerClient* worker = g_worker) worker->cancel();
    errno = error_before;
}

}  // namespace

CancelOnInterrupt::CancelOnInterrupt(profiler::WorkerClient& worker) {
    g_worker = &worker;
    struct sigaction action {};
    action.sa_handler = cancel_worker;
    g_first_signal_ms = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &old_[i]);
}

CancelOnInterrupt::~CancelOnInterrupt() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
    g_worker = nullptr;
}

}  // namespace app
