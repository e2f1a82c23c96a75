#include "app/commands/worker/meta_traces.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/trace_files.h"
#include "profiler/analysis/run_text.h"
#include "profiler/protocol/meta_trace_client.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using TracePointer = std::shared_ptr<const Trace>;

/// A trace takes a second; for a model with a thousand layers it takes a minute.
constexpr std::chrono::minutes kWorkerPatience{5};

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

MetaTraceSource meta_trace_source(bool& cancelled) {
    // The worker is started when it is first needed, and makes all traces.
    auto worker = std::make_shared<std::optional<WorkerClient>>();
    return [worker, &cancelled](const models::Workload& workload,
                                ComputeCapability capability) -> models::Result<TracePointer> {
        if (cancelled) return models::fail("The plan was cancelled.");
        if (!*worker) {
            auto started = WorkerClient::start();
            if (!started) return tl::unexpected(started.error());
            *worker = std::move(*started);
        }
        const CancelOnInterrupt cancel(**worker);
        auto trace =
            request_meta_trace(**worker, workload, capability, {.timeout = kWorkerPatience});
        if (!trace) {
            cancelled |= trace.error().cancelled;
            return models::fail("{}", trace.error().message);
        }
        return std::make_shared<const Trace>(std::move(*trace));
    };
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
