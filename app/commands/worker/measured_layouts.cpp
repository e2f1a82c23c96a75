#include "app/commands/worker/measured_layouts.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "profiler/layouts/encoder_ops.h"
#include "profiler/protocol/worker_client.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

/// Whether the graph is of the layer that this program knows: the search names its tensors.
bool is_encoder_layer(const profiler::LayoutGraph& graph) {
    const profiler::EncoderLayer& layer = profiler::encoder_layer();
    return std::equal(graph.tensors.begin(), graph.tensors.end(), layer.tensors.begin(),
                      layer.tensors.end(),
                      [](const auto& a, const auto& b) { return a.name == b.name; }) &&
           std::equal(graph.ops.begin(), graph.ops.end(), layer.ops.begin(), layer.ops.end(),
                      [](const auto& a, const auto& b) { return a.name == b.name; });
}

tl::expected<nlohmann::json, Failure> ask(const profiler::Request& request) {
    auto worker = profiler::WorkerClient::start();
    if (!worker) return failed(worker.error());
    const CancelOnInterrupt cancel(*worker);
    Progress progress;
    const auto outcome = worker->run(
        request, {.progress = [&](const profiler::Progress& stage) {
            progress.update(static_cast<double>(stage.done) / static_cast<double>(stage.total),
                            fmt::format("measuring: {}", stage.stage));
        }});
    if (!outcome) return failed(to_error(outcome.error()));
    return outcome->summary;
}

profiler::Request request_of(profiler::RequestKind kind, const LayoutWork& work) {
    return {.kind = kind,
            .workload = models::to_json(work.workload),
            .device = work.device,
            .steps = work.num_rounds};
}

}  // namespace

tl::expected<profiler::LayoutGraph, Failure> measure_layouts(const LayoutWork& work) {
    const auto answer = ask(request_of(profiler::RequestKind::kMeasureLayouts, work));
    if (!answer) return tl::unexpected(answer.error());
    auto graph = profiler::layout_graph_from_json(*answer);
    if (!graph) return failed(graph.error());
    if (!is_encoder_layer(*graph)) {
        return fail_with(ExitCode::kFailed,
                         "The worker measured another layer: it is of another build.");
    }
    return std::move(*graph);
}

tl::expected<LayoutTimes, Failure> time_layout_runs(const LayoutWork& work,
                                                    const std::vector<profiler::LayoutRun>& runs) {
    profiler::Request request = request_of(profiler::RequestKind::kTimeLayoutRuns, work);
    for (const profiler::LayoutRun& run : runs) request.layout_runs.push_back(to_json(run));
    const auto answer = ask(request);
    if (!answer) return tl::unexpected(answer.error());
    const auto times = answer->find("times_ns");
    const bool is_right =
        times != answer->end() && times->is_array() && times->size() == runs.size() &&
        std::all_of(times->begin(), times->end(), [](const auto& ns) { return ns.is_number(); });
    if (!is_right) {
        return fail_with(ExitCode::kFailed,
                         "The worker answered without times: it is of another build.");
    }
    return LayoutTimes{.whole_ns = times->get<std::vector<double>>(),
                       .note = answer->value("note", "")};
}

}  // namespace app
