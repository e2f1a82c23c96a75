#include "app/workspace/ranks_of_run.h"

#include "profiler/view/ranks/ranks_view.h"

#include <algorithm>
#include <cstdint>
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

}  // namespace app
