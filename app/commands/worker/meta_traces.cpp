#include "app/commands/worker/meta_traces.h"

#include "app/commands/console/trace_files.h"
#include "profiler/analysis/run_text.h"
#include "profiler/protocol/meta_trace_client.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using TracePointer = std::shared_ptr<const Trace>;

/// A trace takes a second; for a model with a thousand layers it takes a minute.
constexpr std::chrono::minutes kTimeout{5};

/// Whether a trace of `b` can be used for `a`. The name of the recipe, the seed and the learning
/// rate do not matter. The optimizer of `a` may come from the software environment, so it may
/// differ.
bool is_same_step(models::Workload a, const models::Workload& b, bool with_optimizer) {
    if (!with_optimizer) a.recipe.optimizer = b.recipe.optimizer;
    a.recipe_name = b.recipe_name;
    a.seed = b.seed;
    a.learning_rate = b.learning_rate;
    return a == b;
}

}  // namespace

void TraceWorkers::cancel() {
    cancelled_ = true;
    for (std::atomic<WorkerClient*>& worker : running_) {
        if (WorkerClient* const one = worker) one->cancel();
    }
}

MetaTraceSource TraceWorkers::source() {
    return [this](const models::Workload& workload, ComputeCapability capability) {
        return trace(workload, capability);
    };
}

models::Result<WorkerClient*> TraceWorkers::worker_of_this_thread() {
    const auto thread = std::this_thread::get_id();
    {
        const std::lock_guard lock(mutex_);
        const auto known = workers_.find(thread);
        if (known != workers_.end()) return &known->second;
    }
    auto started = WorkerClient::start();
    if (!started) return tl::unexpected(started.error());
    const std::lock_guard lock(mutex_);
    if (workers_.size() == running_.size()) return models::fail("Too many threads trace at once.");
    WorkerClient& worker = workers_.emplace(thread, std::move(*started)).first->second;
    running_[workers_.size() - 1] = &worker;
    return &worker;
}

models::Result<TracePointer> TraceWorkers::trace(const models::Workload& workload,
                                                 ComputeCapability capability) {
    if (cancelled_) return models::fail("The plan was cancelled.");
    const auto worker = worker_of_this_thread();
    if (!worker) return tl::unexpected(worker.error());
    auto trace = request_meta_trace(**worker, workload, capability, {.timeout = kTimeout});
    if (trace) return std::make_shared<const Trace>(std::move(*trace));
    if (trace.error().cancelled) cancelled_ = true;
    return models::fail("{}", trace.error().message);
}

models::Result<MetaTraceSource> trace_folder_source(const std::string& folder) {
    const auto paths = expand_paths({folder});
    if (!paths) return tl::unexpected(paths.error());
    const auto named = open_traces(*paths);
    if (!named) return tl::unexpected(named.error());
    std::vector<std::pair<models::Workload, TracePointer>> traces;
    for (const NamedTrace& one : *named) {
        const auto workload = workload_of(*one.trace);
        if (workload && !one.trace->steps.empty()) traces.emplace_back(*workload, one.trace);
    }
    return [folder, traces = std::move(traces)](const models::Workload& workload,
                                                ComputeCapability) -> models::Result<TracePointer> {
        for (const bool with_optimizer : {true, false}) {
            for (const auto& [traced, trace] : traces) {
                if (is_same_step(workload, traced, with_optimizer)) return trace;
            }
        }
        return models::fail(
            "{} holds no step of {}, {}, {}: capture one into it with temposcope capture.", folder,
            workload.recipe_name, describe(workload), models::name_of(workload.head));
    };
}

}  // namespace app
