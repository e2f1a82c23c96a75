#pragma once

#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/protocol/worker_client.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

/// Sources of the traced steps from which plans are made.
namespace app {

/// Workers that trace models on libtorch's Meta device. A worker belongs to one thread, so each
/// thread that traces starts its own worker and uses it again. A worker ends with its thread.
class TraceWorkers {
public:
    /// Must not outlive this object.
    profiler::MetaTraceSource source();

    /// Ends all traces; nothing is traced after that. Safe to call from a signal handler.
    void cancel();
    bool is_cancelled() const { return cancelled_; }

private:
    models::Result<profiler::WorkerClient*> worker_of_this_thread();
    models::Result<std::shared_ptr<const profiler::Trace>> trace(
        const models::Workload& workload, profiler::ComputeCapability capability);

    std::mutex mutex_;
    std::map<std::thread::id, profiler::WorkerClient> workers_;
    std::array<std::atomic<profiler::WorkerClient*>, 16> running_{};  // of workers_, for `cancel`
    std::atomic<bool> cancelled_ = false;
};

/// The traces in a folder, as `temposcope capture` writes them, by workload and batch size.
/// Errors: the folder cannot be read. If a workload is missing, only its row gets an error.
models::Result<profiler::MetaTraceSource> trace_folder_source(const std::string& folder);

}  // namespace app
