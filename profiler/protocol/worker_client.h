#pragma once

#include "profiler/protocol/messages.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

/// The side of `temposcope`: starts a worker and asks it for work.
///
///     auto worker = WorkerClient::start();
///     if (!worker) return worker.error();
///     auto outcome = worker->run({.kind = RequestKind::kCapture, ...}, {.progress = show});
///
/// `start`, `run` and the destructor belong to one thread, and the worker dies with that thread: a
/// window runs a capture on a thread of its own. `cancel` and `log` may be called from any thread.
namespace profiler {

/// Called by `run` on its thread. Any member may be empty.
struct WorkerEvents {
    std::function<void(const Progress&)> progress;
    std::function<void(const Sample&)> sample;
    std::chrono::milliseconds timeout{0};  // with a worker that says nothing; 0: endless
};

class WorkerClient {
public:
    /// Starts the worker that `find_worker` finds, or `program`.
    static models::Result<WorkerClient> start();
    static models::Result<WorkerClient> start(const std::filesystem::path& program);
    WorkerClient(WorkerClient&&) noexcept;
    WorkerClient& operator=(WorkerClient&&) noexcept;
    ~WorkerClient();  // ends the worker

    /// Sends the request and waits for its answer. A worker that is missing, of another build,
    /// killed or cancelled is an ErrorFrame of one sentence; after those `run` works no more.
    WorkerOutcome run(const Request& request, const WorkerEvents& events = {});

    /// Makes `run` end: a cancel frame, SIGTERM after 2 s, SIGKILL after 5 s. Any thread, before
    /// or during `run`; also from a signal handler.
    void cancel();

    /// The last 64 KiB of what the worker wrote to standard output and error. Any thread.
    std::string log() const;

private:
    struct Impl;
    explicit WorkerClient(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
