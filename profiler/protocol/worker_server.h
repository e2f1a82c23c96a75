#pragma once

#include "profiler/protocol/frame.h"
#include "profiler/protocol/messages.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

/// The side of `temposcope-worker`: answers requests one after another.
///
///     WorkerServer server;
///     return server.serve([&](const Request& request) -> WorkerOutcome {
///         ... server.send(Progress{"warm-up", 1, 1}); if (server.cancelled()) ...
///     });
namespace profiler {

class WorkerServer {
public:
    using Handler = std::function<WorkerOutcome(const Request&)>;

    /// Takes over the worker's end of the socket pair.
    explicit WorkerServer(int descriptor = kWorkerDescriptor);
    /// Was this program started by `temposcope`, so that there is a socket to serve?
    static bool has_program(int descriptor = kWorkerDescriptor);

    /// Calls `handler` on the calling thread for each request until the program goes away. Then it
    /// returns the exit status of main; if a handler is at work, it ends the process at once. An
    /// exception that leaves the handler is answered as an error.
    int serve(const Handler& handler);

    // For the handler, any thread.
    void send(const Progress& progress);
    void send(const Sample& sample);  // drops what is more than 30 a second
    bool cancelled() const { return cancelled_; }

private:
    struct Job {
        int64_t id = 0;
        Request request;
    };
    void read_messages();  // on a thread of its own
    void answer(const Job& job, const Handler& handler);
    std::optional<Job> next_job();

    FrameSocket socket_;
    std::atomic<bool> cancelled_ = false;
    std::atomic<int64_t> current_id_ = 0;  // 0 = idle
    std::atomic<int64_t> next_sample_ns_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;      // guarded by mutex_
    int64_t cancelled_id_ = 0;  // guarded by mutex_
    bool ended_ = false;        // guarded by mutex_
};

}  // namespace profiler
