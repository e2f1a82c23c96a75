#pragma once

#include "profiler/protocol/messages.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace profiler {

/// A worker process of ours: started with the object, ended with it at the latest.
///
/// The worker dies with this process. It is found in TEMPOSCOPE_WORKER or beside this program.
/// Methods may be called from one thread at a time, `cancel` and `wake` from any.
class WorkerClient {
public:
    /// Starts a worker and asks it who it is. Errors: not found, not executable, of another
    /// version, ended at once: one sentence each.
    static models::Result<WorkerClient> start();

    WorkerClient(WorkerClient&&) noexcept;
    WorkerClient& operator=(WorkerClient&&) noexcept;
    ~WorkerClient();  // ends the worker: SIGTERM, after 5 s SIGKILL

    const HelloResult& hello() const;

    models::Result<void> send(const Request& request);

    /// The next answer, or none when `timeout` passed or `wake` was called. A worker that ended
    /// (its own error, a signal, the kernel's out-of-memory killer) answers with a WorkerError.
    std::optional<Answer> receive(std::chrono::milliseconds timeout);

    /// Makes a `receive` that waits on another thread return.
    void wake();

    /// Asks the worker to stop: a frame, SIGTERM after 2 s, SIGKILL after 5 s, in the background.
    /// `receive` still delivers the end.
    void cancel();

    /// What the worker wrote to its standard output and error, the last 64 KiB.
    std::string log() const;

private:
    struct Impl;
    explicit WorkerClient(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Where the worker is, or one sentence that says how to get it.
models::Result<std::filesystem::path> find_worker();

}  // namespace profiler
