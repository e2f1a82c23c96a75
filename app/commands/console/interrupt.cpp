#include "app/commands/console/interrupt.h"

#include "profiler/trace/file/temporary_paths.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace app {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<void*> g_work = nullptr;  // null: nothing to cancel
std::atomic<void (*)(void*)> g_cancel = nullptr;
static_assert(std::atomic<void*>::is_always_lock_free);
static_assert(std::atomic<void (*)(void*)>::is_always_lock_free);

std::atomic<int64_t> g_first_signal_ms = 0;  // 0: none yet
constexpr int64_t kSecondSignalAfter_ms = 1000;

int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // may be called from a signal handler
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// The first signal cancels. A signal right after it has the same cause (timeout(1) signals the
/// child and its group) and does nothing more. A later signal has its usual effect.
void cancel_work(int number) {
    const int error_before = errno;  // of the call that the signal interrupted
    if (g_first_signal_ms == 0) g_first_signal_ms = now_ms();
    if (now_ms() - g_first_signal_ms > kSecondSignalAfter_ms) {
        profiler::remove_paths_and_end(number);
    }
    if (void* const work = g_work) g_cancel.load()(work);
    errno = error_before;
}

}  // namespace

void clean_up_on_signals() { profiler::remove_paths_on_signals(); }

CancelOnInterrupt::CancelOnInterrupt(void* work, void (*cancel)(void*)) {
    g_cancel = cancel;
    g_work = work;
    struct sigaction action {};
    action.sa_handler = cancel_work;
    g_first_signal_ms = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        sigaction(kSignals[i], nullptr, &old_[i]);
        if (old_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
}

CancelOnInterrupt::~CancelOnInterrupt() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
    g_work = nullptr;
}

}  // namespace app
