#include "app/workspace/export_queue.h"

#include "app/workspace/guarded.h"
#include "app/workspace/wake.h"

#include <utility>

namespace app {

void ExportQueue::start(Job job) {
    std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
    changed_.notify_one();
}

std::vector<models::Result<std::string>> ExportQueue::take() {
    std::scoped_lock lock(mutex_);
    return std::exchange(finished_, {});
}

bool ExportQueue::busy() const {
    std::scoped_lock lock(mutex_);
    return running_ || !waiting_.empty() || !finished_.empty();
}

void ExportQueue::run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    // After a stop this goes on until nothing waits.
    while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
        const Job job = std::move(waiting_.front());
        waiting_.pop_front();
        running_ = true;
        lock.unlock();
        models::Result<std::string> result = run_guarded("Exporting", job);
        lock.lock();
        finished_.push_back(std::move(result));
        running_ = false;
        wake_window();
    }
}

}  // namespace app
