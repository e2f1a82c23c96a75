#pragma once

#include "models/config/compute_capability.h"
#include "profiler/planner/data/gpu.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/protocol/virtual_gpu_process.h"
#include "profiler/protocol/worker_client.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

/// Workers that trace steps on virtual GPUs, from which plans and predictions are made.
namespace app {

// ---- virtual GPUs -----------------------------------------------------------------------------

/// The oldest generation that torch 2.11 has code for. Older GPUs are traced as this one.
inline constexpr models::ComputeCapability kOldestTraced{7, 5};

/// Of a GPU whose memory does not end.
inline constexpr int64_t kEndlessBytes = int64_t{1} << 40;

/// `gpu` with memory without end: the step is placed into the GPU's own memory afterwards. A GPU
/// that is not CUDA's counts as an A100's generation.
profiler::VirtualCard virtual_card(const profiler::Gpu& gpu);

/// A worker that finds `cards` as its CUDA devices; with none, those of this machine. It runs
/// `torch`, a minor version, or the usual one.
models::Result<profiler::WorkerClient> start_worker_on(
    const std::vector<profiler::VirtualCard>& cards, std::string_view torch = {});

/// The GPU whose traces serve all GPUs of a large plan, an A100. docs/dev/prediction.md lists what
/// differs on others. The size of the cuBLAS workspaces is in profiler::MemoryOptions.
const profiler::Gpu& shared_gpu();

// ---- workers ----------------------------------------------------------------------------------

/// Starts workers on a thread of its own. A worker dies with the thread that started it, so this
/// object must outlive its workers.
class WorkerStarter {
public:
    /// As start_worker_on. Any thread.
    models::Result<profiler::WorkerClient> start(std::vector<profiler::VirtualCard> cards,
                                                 std::string torch);

private:
    using Start = std::packaged_task<models::Result<profiler::WorkerClient>()>;
    void run(const std::stop_token& stop);

    std::mutex mutex_;
    std::condition_variable_any has_work_;
    std::list<Start> waiting_;
    std::jthread thread_;  // declared last: it stops before the other members are destroyed
};

enum class TraceDetail : uint8_t {
    kForPlan,    // the first step of a process, from which the second one follows; no kernels
    kForCapture  // a step after a warm-up, with its kernels
};

/// Workers that trace steps on virtual GPUs. A thread borrows a worker for one trace: an idle one,
/// or a new one if all are busy. Threads may end; their workers stay. A process sees only some tens
/// of GPUs, so each worker has the GPUs of one group.
class TraceWorkers {
public:
    /// Traces each step on the one of `gpus` that the step names, or else on the first. `gpus` is
    /// not empty. The workers run `torch` (torch_for), or the usual one.
    TraceWorkers(std::vector<const profiler::Gpu*> gpus, TraceDetail detail,
                 std::string torch = {});

    /// Any number of threads may call it at once. Must not outlive this object.
    profiler::StepSource source();

    /// Ends all traces; nothing is traced after that. Safe to call from a signal handler.
    void cancel();
    bool is_cancelled() const { return cancelled_; }

    /// The last 64 KiB of what each worker wrote to standard output and error. Any thread.
    std::string log() const;

    /// How many workers were started so far.
    std::size_t started() const;
    /// How many steps were asked for so far.
    std::size_t traces_asked() const { return traces_asked_; }

private:
    struct Worker {
        profiler::WorkerClient client;
        std::size_t group = 0;    // of GPUs that it sees
        Worker* older = nullptr;  // the worker that was started before
    };
    std::vector<profiler::VirtualCard> cards_of(std::size_t group) const;
    models::Result<Worker*> borrow(std::size_t group);
    void give_back(Worker& worker);
    /// Throws std::invalid_argument for a GPU that the workers do not have.
    std::size_t index_of(const std::string& gpu) const;
    models::Result<std::shared_ptr<const profiler::Trace>> trace(const profiler::StepToTrace& step);
    models::Result<std::shared_ptr<const profiler::Trace>> trace_with(
        Worker& worker, const profiler::StepToTrace& step);

    const std::vector<const profiler::Gpu*> gpus_;
    const TraceDetail detail_;
    const std::string torch_;
    WorkerStarter starter_;
    mutable std::mutex mutex_;
    std::list<Worker> workers_;  // none is removed: `cancel` may be reading it
    std::vector<Worker*> idle_;
    std::atomic<Worker*> newest_ = nullptr;  // of workers_; a signal handler cannot take a lock
    std::atomic<bool> cancelled_ = false;
    std::atomic<std::size_t> traces_asked_ = 0;
};

}  // namespace app
