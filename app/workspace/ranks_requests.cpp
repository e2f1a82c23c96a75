#include "app/workspace/ranks_requests.h"

#include "app/workspace/view_requests.h"

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

std::optional<Wanted<std::vector<DocumentPtr>>> wanted_rank_run(const SlotInputs& inputs) {
    if (inputs.ranks.width_px <= 0) return std::nullopt;
    std::vector<DocumentPtr> ranks = ranks_beside(inputs.selection.a, inputs.documents);
    if (ranks.empty()) return std::nullopt;
    return Wanted<std::vector<DocumentPtr>>{.request = ranks, .documents = ranks};
}

models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents) {
    std::vector<profiler::NamedTrace> traces;
    for (const DocumentPtr& document : documents) {
        traces.push_back({document->file.filename().string(), document->trace, document->report});
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

std::optional<Wanted<profiler::RanksRequest>> wanted_ranks(const SlotInputs& inputs) {
    const auto& ranks = inputs.rank_run;
    const DocumentPtr& a = inputs.selection.a;
    if (!ranks || ranks->documents != ranks_beside(a, inputs.documents)) return std::nullopt;
    TimeWindow window = inputs.time.window;
    window.width_px = inputs.ranks.width_px;
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
        request.ranks.push_back({.trace = document->trace.get(),
                                 .curve = &document->curve,
                                 .peak = &document->report->peak,
                                 .name = document->recipe});
    }
    return Wanted<profiler::RanksRequest>{.request = std::move(request),
                                          .documents = ranks->documents};
}

}  // namespace app
