#pragma once

#include "app/workspace/guarded.h"
#include "app/workspace/wake.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

/// Work off the frame thread, of which only the newest request matters.
namespace app {

/// Runs the newest job it was given on a thread of its own and keeps its result until the frame
/// thread takes it. A job that waits when a newer one comes is dropped; one that runs finishes,
/// and its result counts: while the user pans, each picture is at most one request behind.
template <typename T>
class LatestTask {
public:
    using Job = std::function<models::Result<T>()>;

    /// `what` begins the sentence about a job that throws: "Drawing the timeline".
    explicit LatestTask(std::string what) : what_(std::move(what)) {}

    void start(Job job) {
        std::scoped_lock lock(mutex_);
        waiting_ = std::move(job);
        if (!thread_.joinable())
            thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
        changed_.notify_one();
    }

    /// The newest finished result, once.
    std::optional<models::Result<T>> take() {
        std::scoped_lock lock(mutex_);
        return std::exchange(result_, std::nullopt);
    }

    /// A job waits or runs, or a result lies ready.
    bool busy() const {
        std::scoped_lock lock(mutex_);
        return waiting_ || running_ || result_;
    }

private:
    void run(std::stop_token stop) {
        std::unique_lock lock(mutex_);
        while (changed_.wait(lock, stop, [this] { return static_cast<bool>(waiting_); })) {
            const Job job = std::exchange(waiting_, nullptr);
            running_ = true;
            lock.unlock();
            models::Result<T> result = run_guarded(what_, job);
            lock.lock();
            result_ = std::move(result);
            running_ = false;
            wake_window();
        }
    }

    const std::string what_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    Job waiting_;
    std::optional<models::Result<T>> result_;
    bool running_ = false;
    std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace app
