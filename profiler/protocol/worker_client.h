#pragma once

#include "profiler/protocol/messages.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

/// The side of `temposcope`: starts a worker and asks it for work.
///
///     auto worker = WorkerClient::start();
///     if (!worker) return worker.error();
///     auto outcome = worker->run({.kind = RequestKind::kCapture, ...}, {.progress = show});
///
/// All members but `cancel` and `log` belong to one thread at a time, and the worker dies with the
/// thread that called `start`: a window runs a capture on a thread of its own.
namespace profiler {

/// Called by `run`, `begin` and `resume` on their thread. Any member may be empty.
struct WorkerEvents {
    std::function<void(const Progress&)> progress;
    std::function<void(const Sample&)> sample;
    std::chrono::milliseconds timeout{0};  // ends a worker that is silent for longer; 0: no limit
};

/// Where a request stands: its worker waits for its turn, or it has ended.
using WorkerState = std::variant<WaitsForTurn, WorkerOutcome>;

class WorkerClient {
public:
    /// Starts the worker that `find_worker` finds, or `program`.
    static models::Result<WorkerClient> start();
    static models::Result<WorkerClient> start(const std::filesystem::path& program);
    /// With more variables, "NAME=value", in its environment; "NAME" is left out of it.
    static models::Result<WorkerClient> start(const std::filesystem::path& program,
                                              const std::vector<std::string>& environment);
    WorkerClient(WorkerClient&&) noexcept;
    WorkerClient& operator=(WorkerClient&&) noexcept;
    ~WorkerClient();  // ends the worker

    /// Sends the request and waits for its answer; a worker that takes turns gets each turn at
    /// once. A worker that is missing, of another build, killed or cancelled gives an ErrorFrame of
    /// one sentence. After such an error the client cannot be used again.
    WorkerOutcome run(const Request& request, const WorkerEvents& events = {});

    /// The parts of `run` for a request that takes turns: `begin` sends the request, `resume` lets
    /// the worker run one step. Both return when the worker waits for its next turn or has
    /// answered.
    WorkerState begin(const Request& request, const WorkerEvents& events = {});
    WorkerState resume(const TakeTurn& turn, const WorkerEvents& events = {});

    /// Makes the call in progress end, or the next one: the worker gets a cancel frame, SIGTERM
    /// after 2 s and SIGKILL after 5 s. Any thread, also from a signal handler.
    void cancel();

    /// Ends the worker, which gives its memory back. A worker that does not leave within 2 s is
    /// killed. The log stays.
    void end();

    /// Whether a request was sent: a cancel before that ends `begin` at once.
    bool has_begun() const;

    /// The last 64 KiB of what the worker wrote to standard output and error. Any thread.
    std::string log() const;

private:
    struct Impl;
    explicit WorkerClient(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
