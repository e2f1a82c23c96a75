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
    /// Whether `temposcope` started this program, so that there is a socket to serve.
    static bool has_program(int descriptor = kWorkerDescriptor);

    /// Calls `handler` on the calling thread for each request until the program goes away, then
    /// returns the exit status of main. If the program goes away while a handler is at work, the
    /// process ends at once. An exception that leaves the handler is answered as an error.
    int serve(const Handler& handler);

    // For the handler, any thread.
    void send(const Progress& progress);
    void send(const Sample& sample);  // drops samples beyond 30 a second
    bool cancelled() const { return cancelled_; }
    /// Sleeps until the program gives the worker its turn. None: the request was cancelled.
    std::optional<TakeTurn> wait_for_turn(const WaitsForTurn& waits);

private:
    struct PendingRequest {
        int64_t id = 0;
        Request request;
    };
    void read_messages();  // on a thread of its own
    void handle(const AddressedMessage& message);
    void answer(const PendingRequest& pending, const Handler& handler);
    std::optional<PendingRequest> next_request();

    FrameSocket socket_;
    std::atomic<bool> cancelled_ = false;
    std::atomic<int64_t> current_id_ = 0;  // 0 = idle
    std::atomic<int64_t> next_sample_ns_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_.
    std::deque<PendingRequest> pending_;
    std::optional<TakeTurn> turn_;
    int64_t cancelled_id_ = 0;
    bool ended_ = false;
};

}  // namespace profiler
