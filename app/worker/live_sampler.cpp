#include "app/worker/live_sampler.h"

#include <utility>

namespace app {
namespace {

constexpr std::chrono::milliseconds kPeriod{50};

}  // namespace

LiveSampler::LiveSampler(profiler::WorkerServer& server, std::function<profiler::LiveMemory()> read)
    : server_(server),
      read_(std::move(read)),
      start_(std::chrono::steady_clock::now()),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void LiveSampler::set_phase(int64_t step, profiler::PhaseKind phase) {
    step_ = step;
    phase_ = phase;
}

void LiveSampler::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, kPeriod, [] { return false; }) && !stop.stop_requested()) {
        const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start_;
        const int64_t step = step_;
        const profiler::LiveMemory memory = read_();
        server_.send(profiler::Sample{
            .time_ns = elapsed.count(),
            .allocated_bytes = memory.allocated_bytes,
            .peak_bytes = memory.peak_bytes,
            .step = step,
            .phase = step < 0 ? "" : std::string(profiler::name_of(phase_.load()))});
    }
}

}  // namespace app
