#pragma once

#include <chrono>

namespace app {

/// Lets pass one of many: what is drawn while a step is timed must not cost it a core.
class RateLimit {
public:
    using Clock = std::chrono::steady_clock;

    explicit RateLimit(Clock::duration period) : period_(period) {}

    /// True the first time, and then once a period at most.
    bool passes(Clock::time_point now) {
        if (now < next_) return false;
        next_ = now + period_;
        return true;
    }

private:
    Clock::duration period_;
    Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace app
