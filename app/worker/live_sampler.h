#pragma once

#include "profiler/capture/cuda_source.h"
#include "profiler/protocol/worker_server.h"
#include "profiler/trace/trace.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace app {

/// Sends the live memory counters 20 times a second from a thread of its own.
class LiveSampler {
public:
    /// `read` is called on the sampler's thread.
    LiveSampler(profiler::WorkerServer& server, std::function<profiler::LiveMemory()> read);

    void set_phase(int64_t step, profiler::PhaseKind phase);

private:
    void run(const std::stop_token& stop);

    profiler::WorkerServer& server_;
    const std::function<profiler::LiveMemory()> read_;
    std::chrono::steady_clock::time_point start_;
    std::atomic<int64_t> step_{-1};
    std::atomic<profiler::PhaseKind> phase_{profiler::PhaseKind::kForward};
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // last: stopped before what it uses goes away
};

}  // namespace app
