#pragma once

#include <chrono>

namespace app {

/// Limits how often something happens. The live curve of a capture is redrawn at most a few times
/// a second, because drawing takes processor time from the step that is being measured.
class RateLimit {
public:
    using Clock = std::chrono::steady_clock;

    explicit RateLimit(Clock::duration period) : period_(period) {}

    /// Nothing passes for a period from now on.
    void restart(Clock::time_point now) { next_ = now + period_; }

    /// True for the first call, and then at most once per period.
    bool passes(Clock::time_point now) {
        if (now < next_) return false;
        restart(now);
        return true;
    }

private:
    Clock::duration period_;
    Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace app
