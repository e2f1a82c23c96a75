#include "app/commands/worker/trace_folder.h"

#include "app/commands/console/trace_files.h"
#include "profiler/analysis/run_text.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace app {
namespace {

using namespace profiler;
using TracePointer = std::shared_ptr<const Trace>;

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

models::Result<StepSource> trace_folder_source(const std::string& folder) {
    const auto paths = expand_paths({folder});
    if (!paths) return tl::unexpected(paths.error());
    const auto named = open_traces(*paths);
    if (!named) return tl::unexpected(named.error());
    std::vector<std::pair<models::Workload, TracePointer>> traces;
    std::set<int64_t> batches;
    for (const NamedTrace& one : *named) {
        const auto workload = workload_of(*one.trace);
        if (!workload || one.trace->steps.empty()) continue;
        traces.emplace_back(*workload, one.trace);
        batches.insert(workload->batch_size);
    }
    const auto find = [traces = std::move(traces)](const models::Workload& workload) {
        for (const bool with_optimizer : {true, false}) {
            for (const auto& [traced, trace] : traces) {
                if (is_same_step(workload, traced, with_optimizer)) return trace;
            }
        }
        return TracePointer();
    };
    const auto trace = [folder, find](const StepToTrace& step) -> models::Result<TracePointer> {
        if (TracePointer found = find(step.workload)) return found;
        return models::fail(
            "{} holds no step of {}, {}, {}: capture one into it with temposcope capture.", folder,
            step.workload.recipe_name, describe(step.workload),
            models::name_of(step.workload.head));
    };
    const auto batches_of = [batches = std::move(batches), find](models::Workload workload) {
        std::vector<int64_t> found;
        for (const int64_t batch_size : batches) {
            workload.batch_size = batch_size;
            if (find(workload)) found.push_back(batch_size);
        }
        return found;
    };
    return StepSource(trace, batches_of);
}

}  // namespace app
