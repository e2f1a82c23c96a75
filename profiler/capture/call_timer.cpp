#include "profiler/capture/call_timer.h"

#include "profiler/capture/median.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace profiler {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const at::Device& device, const Call& call) {
    const auto start = Clock::now();
    call();
    wait_for(device);
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void wait_for(const at::Device& device) {
    if (device.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

TimedCalls time_calls(const at::Device& device, double seconds, const CaptureCallbacks& callbacks,
                      const Call& call) {
    call();
    wait_for(device);
    constexpr double kLongEnoughS = 2e-3;
    const auto repeats = static_cast<int64_t>(
        std::max(1.0, kLongEnoughS / std::max(seconds_of(device, call), 1e-6)));
    const Call repeated = [&] {
        for (int64_t i = 0; i < repeats; ++i) call();
    };
    std::vector<double> times_s;
    const auto start = Clock::now();
    const std::chrono::duration<double> room(seconds);
    while (times_s.empty() || Clock::now() - start < room) {
        if (callbacks.cancelled && callbacks.cancelled()) throw Cancelled();
        times_s.push_back(seconds_of(device, repeated) / static_cast<double>(repeats));
    }
    const auto samples = static_cast<int64_t>(times_s.size());
    return {.median_s = median(std::move(times_s)), .samples = samples};
}

ScopedTf32::ScopedTf32(bool allowed) : before_(at::globalContext().allowTF32CuBLAS()) {
    at::globalContext().setAllowTF32CuBLAS(allowed);
}

ScopedTf32::~ScopedTf32() { at::globalContext().setAllowTF32CuBLAS(before_); }

}  // namespace profiler
