#include "app/commands/interrupt.h"

#include <atomic>
#include <cerrno>

namespace app {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<profiler::WorkerClient*> g_worker = nullptr;
static_assert(std::atomic<profiler::WorkerClient*>::is_always_lock_free);

void cancel_worker(int) {
    const int error_before = errno;  // of whatever call the signal came into
    if (profiler::WorkerClient* worker = g_worker) worker->cancel();
    errno = error_before;
}

}  // namespace

CancelOnInterrupt::CancelOnInterrupt(profiler::WorkerClient& worker) {
    g_worker = &worker;
    struct sigaction action {};
    action.sa_handler = cancel_worker;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second signal does what it always does
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
}

CancelOnInterrupt::~CancelOnInterrupt() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
    g_worker = nullptr;
}

}  // namespace app
