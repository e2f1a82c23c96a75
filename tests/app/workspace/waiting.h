#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <thread>

/// Waiting for work on other threads, in tests.
namespace tests {

/// The test's own timeout ends a wait that never succeeds.
inline void wait_for(const std::function<bool()>& holds) {
    while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Jobs wait at the gate until the test opens it.
class Gate {
public:
    void open() { promise_.set_value(); }
    void wait() const { future_.wait(); }

private:
    std::promise<void> promise_;
    std::shared_future<void> future_{promise_.get_future()};
};

}  // namespace tests
