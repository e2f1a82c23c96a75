#include "app/workspace/ranks_requests.h"

#include "app/workspace/view_orders.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace app {
namespace {

int64_t rank_of(const DocumentPtr& document) { return document->trace->run().rank; }

}  // namespace

std::vector<DocumentPtr> ranks_beside(const DocumentPtr& a,
                                      const std::vector<DocumentPtr>& documents) {
    if (!a || !a->has_step || a->trace->run().world_size < 2) return {};
    const std::filesystem::path folder = a->file.parent_path();
    std::vector<DocumentPtr> ranks;
    for (const DocumentPtr& document : documents) {
        const bool is_of_run = document->trace->run().world_size == a->trace->run().world_size;
        const bool is_beside = is_of_run && document->file.parent_path() == folder;
        if (is_beside && document->has_step) ranks.push_back(document);
    }
    std::ranges::stable_sort(ranks, {}, rank_of);
    return ranks;
}

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state) {
    if (state.queries.ranks.width_px <= 0) return std::nullopt;
    std::vector<DocumentPtr> ranks = ranks_beside(state.selection.a, state.documents);
    if (ranks.empty()) return std::nullopt;
    return ViewOrder<std::vector<DocumentPtr>>{.request = ranks, .documents = ranks};
}

models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& document : documents) {
        traces.push_back(document->named(document->file.filename().string()));
    }
    auto run = profiler::summarize_ranks(traces);
    if (!run) return tl::unexpected(run.error());
    profiler::TextTable peaks = profiler::rank_memory_table(*run);
    profiler::TextTable times = profiler::rank_time_table(*run);
    return RanksOfRun{.documents = documents,
                      .run = std::move(*run),
                      .peaks = std::move(peaks),
                      .times = std::move(times)};
}

std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state) {
    const auto& ranks = state.rank_run;
    const DocumentPtr& a = state.selection.a;
    if (!ranks || ranks->documents != ranks_beside(a, state.documents)) return std::nullopt;
    TimeWindow window = state.time.window;
    window.width_px = state.queries.ranks.width_px;
    window = with_margins(window);
    profiler::RanksRequest request{
        .run = std::shared_ptr<const profiler::RankRun>(ranks, &ranks->run),
        .ranks = {},
        .axis_rank = 0,
        .start_ns = window.start_ns,
        .end_ns = window.end_ns,
        .width_px = window.width_px};
    for (const DocumentPtr& document : ranks->documents) {
        if (document == a) request.axis_rank = request.ranks.size();
        request.ranks.push_back(document->index.get());
    }
    return ViewOrder<profiler::RanksRequest>{.request = std::move(request),
                                             .documents = ranks->documents};
}

}  // namespace app
