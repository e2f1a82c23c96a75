#pragma once

#include "profiler/protocol/messages.h"

#include <memory>
#include <optional>

namespace profiler {

/// The worker's end. A thread of its own reads frames, so that a cancel arrives while the
/// workload's thread is busy.
class WorkerServer {
public:
    /// On `descriptor`, which the client has handed over. Fails when it is not a socket: the
    /// program was started by hand.
    static models::Result<WorkerServer> on_descriptor(int descriptor = kWorkerDescriptor);

    WorkerServer(WorkerServer&&) noexcept;
    WorkerServer& operator=(WorkerServer&&) noexcept;
    ~WorkerServer();

    /// Waits for the next request; none when the client has gone.
    std::optional<Request> receive();

    /// Sends an answer to the request received last; from any thread. A client that has gone is
    /// not an error here: `cancelled` says so.
    void send(const Answer& answer);

    /// Whether the client asked to cancel the request received last, or has gone; from any thread.
    bool cancelled() const;

private:
    struct Impl;
    explicit WorkerServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
