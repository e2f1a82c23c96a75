#include "app/workspace/jobs/wake.h"

#include <atomic>

namespace app {
namespace {
std::atomic<void (*)()> wake_function{nullptr};
}

void wake_window() {
    if (const auto wake = wake_function.load()) wake();
}

void set_wake_window(void (*wake)()) { wake_function = wake; }

}  // namespace app
