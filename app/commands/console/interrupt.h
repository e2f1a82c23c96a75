#pragma once

#include "profiler/protocol/worker_client.h"

#include <array>
#include <csignal>

namespace app {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP cancels `worker` instead of ending the
/// program; one that comes a second later ends it (and the worker with it). One at a time.
class CancelOnInterrupt {
public:
    explicit CancelOnInterrupt(profiler::WorkerClient& worker);
    ~CancelOnInterrupt();
    CancelOnInterrupt(const CancelOnInterrupt&) = delete;
    CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

private:
    static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kSignals.size()> old_{};
};

}  // namespace app
