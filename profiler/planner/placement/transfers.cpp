#include "profiler/planner/placement/transfers.h"

#include "models/config/parallel.h"
#include "profiler/trace/collective_rows.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace profiler {
namespace {

std::vector<int64_t> ranks_of(const Trace& trace, const Collective& row) {
    std::vector<int64_t> ranks;
    int64_t num_ranks = trace.run().world_size;
    if (row.communicator.valid()) {
        const Communicator group = trace.communicators[row.communicator];
        ranks = ranks_in(trace.text(group.ranks));
        if (group.num_ranks > 0) num_ranks = group.num_ranks;
    }
    if (ranks.empty()) {  // not told: as if they stood side by side
        ranks.resize(
            static_cast<std::size_t>(std::clamp<int64_t>(num_ranks, 1, models::kMostRanks)));
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    const auto peer = static_cast<std::size_t>(row.peer);
    if (row.peer < 0 || peer >= ranks.size()) return ranks;
    return {trace.run().rank, ranks[peer]};
}

/// The times of the parts of a kernel: what sends, and all else.
struct Parts {
    std::array<double, 2> times_ns{};
    bool leaves_node = false;
};

}  // namespace

std::unordered_map<int64_t, Transfer> transfers_of(const Trace& trace,
                                                   const CommunicationModel& model) {
    std::unordered_map<int64_t, Parts> parts;
    const std::vector<Id<Kernel>> kernels = kernels_of_collectives(trace);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        const Id<Kernel> kernel = kernels[i];
        if (!kernel.valid()) continue;
        const RankPlaces places = places_of(ranks_of(trace, row), model.gpus_per_node());
        Parts& of_kernel = parts[kernel.value];
        of_kernel.times_ns[row.kind == CollectiveKind::kSend ? 0 : 1] +=
            model.time_ns(row.kind, std::max(row.in_bytes, row.out_bytes), places);
        of_kernel.leaves_node |= places.num_nodes > 1;
    }
    std::unordered_map<int64_t, Transfer> transfers;
    for (const auto& [kernel, of_kernel] : parts) {
        transfers[kernel] = {.time_ns = std::ranges::max(of_kernel.times_ns),
                             .leaves_node = of_kernel.leaves_node};
    }
    return transfers;
}

}  // namespace profiler
