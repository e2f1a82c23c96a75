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

/// Sends the live memory counters 20 times a second, from its own thread.
class LiveSampler {
public:
    /// `read` is called on the sampler's thread.
    LiveSampler(profiler::WorkerServer& server, std::function<profiler::LiveMemory()> read);

    void set_phase(int64_t step, profiler::PhaseKind phase);

    /// While it lives, no sample is sent, and the samples' clock stands still.
    class Pause {
    public:
        explicit Pause(LiveSampler& sampler) : sampler_(sampler), lock_(sampler.mutex_) {}
        ~Pause() { sampler_.start_ += std::chrono::steady_clock::now() - begin_; }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

    private:
        LiveSampler& sampler_;
        std::unique_lock<std::mutex> lock_;
        std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    };

private:
    void run(const std::stop_token& stop);

    profiler::WorkerServer& server_;
    const std::function<profiler::LiveMemory()> read_;
    std::chrono::steady_clock::time_point start_;
    std::atomic<int64_t> step_{-1};
    std::atomic<profiler::PhaseKind> phase_{profiler::PhaseKind::kForward};
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // last: it stops before the members that it uses are destroyed
};

}  // namespace app
