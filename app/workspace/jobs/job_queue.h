#pragma once

#include "app/workspace/jobs/rate_limit.h"
#include "app/workspace/jobs/wake.h"
#include "models/config/result.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// Work off the frame thread: reading files, building views, writing charts.
namespace app {

/// Runs a job on a background thread. An exception that left the thread would end the program and
/// lose every open trace; instead it becomes one sentence that begins with `what` ("Drawing the
/// timeline").
template <typename Job>
auto run_guarded(std::string_view what, const Job& job) -> decltype(job()) {
    try {
        return job();
    } catch (const std::bad_alloc&) {
        return models::fail("{} needs more memory than is free; close other traces and try again.",
                            what);
    } catch (const std::exception& error) {
        return models::fail("{} failed ({}), which is a mistake in temposcope; please report it.",
                            what, error.what());
    }
}

/// What a new job does to the jobs that still wait.
enum class Waiting {
    kKeep,  // every job runs, in the order in which they were started
    kDrop  // only the newest job matters: while the user pans, a view is at most one request behind
};

/// Runs jobs one after the other on a thread of its own and keeps their results until the frame
/// thread takes them. The thread starts with the first job. The destructor waits until all jobs
/// have run; call cancel() before it where unfinished work is not wanted.
template <typename T>
class JobQueue {
public:
    /// Stores how much of the job is done, in [0, 1]. Returns false when the job should stop.
    using Report = std::function<bool(double share)>;
    using Job = std::function<models::Result<T>(const Report&)>;
    struct Progress {
        std::string name;    // of the job that runs
        double share = 0;    // how much of it is done, in [0, 1]
        size_t waiting = 0;  // number of jobs after it
    };

    explicit JobQueue(Waiting waiting) : policy_(waiting) {}

    /// `name` begins the sentence about a job that throws: "Drawing the timeline".
    void start(std::string name, Job job) {
        std::scoped_lock lock(mutex_);
        if (policy_ == Waiting::kDrop) waiting_.clear();
        waiting_.push_back({std::move(name), std::move(job)});
        if (!thread_.joinable())
            thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
        changed_.notify_one();
    }

    /// Drops the waiting jobs, and the result of the running job.
    void cancel() {
        std::scoped_lock lock(mutex_);
        waiting_.clear();
        cancelled_ = running_.has_value();
    }

    /// The results since the last call, oldest first.
    std::vector<models::Result<T>> take() {
        std::scoped_lock lock(mutex_);
        return std::exchange(finished_, {});
    }

    /// Destroys a result on the jobs' thread, before the next job: a large one takes longer than a
    /// frame may wait. If no job was ever started, on the caller's thread.
    void discard(T result) {
        std::scoped_lock lock(mutex_);
        if (!thread_.joinable()) return;
        discarded_.push_back(std::move(result));
        changed_.notify_one();
    }

    /// A job waits or runs, or a result has not been taken yet.
    bool busy() const {
        std::scoped_lock lock(mutex_);
        return !waiting_.empty() || running_ || !finished_.empty();
    }

    /// nullopt when no job waits or runs.
    std::optional<Progress> progress() const {
        std::scoped_lock lock(mutex_);
        if (running_) return Progress{running_->name, running_->share, waiting_.size()};
        if (waiting_.empty()) return std::nullopt;
        return Progress{waiting_.front().name, 0, waiting_.size() - 1};
    }

private:
    struct Named {
        std::string name;
        Job job;
    };

    bool report(double share) {
        bool go_on = false, wakes = false;
        {
            std::scoped_lock lock(mutex_);
            const bool is_due = wakes_.passes(RateLimit::Clock::now());
            wakes = is_due || share - drawn_share_ >= kDrawnStep;
            if (wakes) drawn_share_ = share;
            running_->share = share;
            go_on = !cancelled_;
        }
        if (wakes) wake_window();
        return go_on;
    }

    /// A job and its result may hold the last reference to a trace of millions of rows. Both are
    /// destroyed here, where the mutex is free and the frame thread does not wait for it.
    void run(std::stop_token stop) {
        // After a stop this continues until no job waits.
        while (std::optional<Named> next = take_next(stop)) {
            models::Result<T> result = run_guarded(next->name, [&] {
                return next->job([this](double share) { return report(share); });
            });
            next.reset();
            finish(result);
            wake_window();
        }
    }

    /// nullopt after a stop, once no job waits.
    std::optional<Named> take_next(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        const auto has_work = [this] { return !waiting_.empty() || !discarded_.empty(); };
        while (changed_.wait(lock, stop, has_work) && !discarded_.empty()) destroy_discarded(lock);
        if (waiting_.empty()) return std::nullopt;
        std::optional<Named> next = std::move(waiting_.front());
        waiting_.pop_front();
        running_ = Progress{next->name, 0, 0};
        drawn_share_ = 0;
        wakes_.restart(RateLimit::Clock::now());  // whoever started the job draws its start
        cancelled_ = false;
        return next;
    }

    void destroy_discarded(std::unique_lock<std::mutex>& lock) {
        std::vector<T> gone = std::exchange(discarded_, {});
        lock.unlock();
        gone.clear();
        lock.lock();
    }

    /// Leaves the result of a cancelled job to the caller.
    void finish(models::Result<T>& result) {
        std::scoped_lock lock(mutex_);
        if (!cancelled_) finished_.push_back(std::move(result));
        running_.reset();
    }

    const Waiting policy_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Named> waiting_;
    std::optional<Progress> running_;
    bool cancelled_ = false;  // the running job
    std::vector<models::Result<T>> finished_;
    std::vector<T> discarded_;  // to be destroyed
    /// A frame for each report would take processor time from the job: with software OpenGL on two
    /// cores, ten frames a second take a third of it. So a report wakes the window 250 ms after the
    /// last one that did, or when the share has grown by kDrawnStep since.
    static constexpr double kDrawnStep = 0.5;
    RateLimit wakes_{std::chrono::milliseconds(250)};
    double drawn_share_ = 0;
    std::jthread thread_;  // declared last: it stops before the other members are destroyed
};

}  // namespace app
