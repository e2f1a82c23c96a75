#pragma once

#include "profiler/protocol/worker_client.h"

#include <csignal>

namespace app {

/// While it lives, the first SIGINT or SIGTERM cancels `worker` instead of ending the program; the
/// second one ends it (and the worker with it). One at a time.
class CancelOnInterrupt {
public:
    explicit CancelOnInterrupt(profiler::WorkerClient& worker);
    ~CancelOnInterrupt();
    CancelOnInterrupt(const CancelOnInterrupt&) = delete;
    CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

private:
    struct sigaction old_interrupt_ {};
    struct sigaction old_terminate_ {};
};

}  // namespace app
