#pragma once

#include "models/config/result.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace app {

/// Files written off the frame thread, in the order they were asked for. Unlike views, all of them
/// count: none is dropped for a newer one, and those that wait when the window closes are written.
class ExportQueue {
public:
    /// Writes the file; returns the sentence that says so.
    using Job = std::function<models::Result<std::string>()>;

    void start(Job job);

    /// How those ended that have finished since the last call, in order.
    std::vector<models::Result<std::string>> take();

    /// A job waits or runs, or a result lies ready.
    bool busy() const;

private:
    void run(std::stop_token stop);

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Job> waiting_;
    std::vector<models::Result<std::string>> finished_;
    bool running_ = false;
    std::jthread thread_;  // last: it stops before the rest goes
};

}  // namespace app
