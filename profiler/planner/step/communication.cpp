#include "profiler/planner/step/communication.h"

#include "profiler/trace/units.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

namespace profiler {
namespace {

/// What a rank does in a collective of R ranks.
struct RingWork {
    double wire_share = 1;  // of the collective's bytes
    int64_t steps = 1;      // hops that follow each other
    int64_t rounds = 1;     // ways around the ring
};

RingWork ring_work(CollectiveKind kind, int64_t num_ranks) {
    const double others = static_cast<double>(num_ranks - 1) / static_cast<double>(num_ranks);
    switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kBarrier:  // torch reduces one element
            return {.wire_share = 2 * others, .steps = 2 * (num_ranks - 1), .rounds = 2};
        case CollectiveKind::kAllGather:
        case CollectiveKind::kReduceScatter:
        case CollectiveKind::kAllToAll:
            return {.wire_share = others, .steps = num_ranks - 1};
        case CollectiveKind::kBroadcast:
        case CollectiveKind::kReduce:
            return {.steps = num_ranks - 1};
        default:
            return {};  // messages
    }
}

double ring_latency_ns(const RingWork& work, const RankPlaces& places, const ProtocolRow& row) {
    const int64_t between_nodes = std::min(work.rounds * (places.num_nodes - 1), work.steps);
    return row.base_ns + static_cast<double>(work.steps - between_nodes) * row.step_ns +
           static_cast<double>(between_nodes) * row.network_step_ns;
}

/// A chain on each node, and a tree of the nodes, up and down.
double tree_latency_ns(const RankPlaces& places, const ProtocolRow& row) {
    const auto depth = std::bit_width(static_cast<uint64_t>(places.num_nodes - 1));
    return row.base_ns + 2 * (static_cast<double>(places.most_on_node - 1) * row.step_ns +
                              static_cast<double>(depth) * row.network_step_ns);
}

}  // namespace

RankPlaces places_of(std::span<const int64_t> ranks, int64_t gpus_per_node) {
    std::map<int64_t, int64_t> on_node;
    for (const int64_t rank : ranks) ++on_node[rank / gpus_per_node];
    RankPlaces places{.num_ranks = static_cast<int64_t>(ranks.size()),
                      .num_nodes = static_cast<int64_t>(on_node.size())};
    for (const auto& [node, count] : on_node) {
        places.most_on_node = std::max(places.most_on_node, count);
    }
    return places;
}

CommunicationModel::CommunicationModel(const Calibration& calibration, std::string_view gpu)
    : calibration_(&calibration) {
    if (const LinkRow* link = find_link(calibration, gpu)) {
        link_bytes_per_s_ = link->bus_bytes_per_s.value;
    }
    if (const NetworkRow* network = last_row_about(calibration.networks, gpu)) {
        network_bytes_per_s_ = network->bytes_per_s.value;
    }
}

int64_t CommunicationModel::gpus_per_node() const {
    return static_cast<int64_t>(calibration_->gpus_per_node.value);
}

double CommunicationModel::bytes_per_s(const RankPlaces& places) const {
    if (places.num_nodes == 1) return link_bytes_per_s_;
    const double network = static_cast<double>(places.most_on_node) * network_bytes_per_s_;
    return places.most_on_node == 1 ? network : std::min(link_bytes_per_s_, network);
}

double CommunicationModel::time_ns(CollectiveKind kind, int64_t size_bytes,
                                   const RankPlaces& places) const {
    if (places.num_ranks < 2) return 0;
    const RingWork work = ring_work(kind, places.num_ranks);
    const bool may_be_tree = work.rounds == 2;  // NCCL has trees for all-reduce only
    const double wire_bytes = work.wire_share * static_cast<double>(size_bytes);
    double best_ns = std::numeric_limits<double>::infinity();
    for (const ProtocolRow& row : calibration_->protocols) {
        double latency_ns = ring_latency_ns(work, places, row);
        if (may_be_tree) latency_ns = std::min(latency_ns, tree_latency_ns(places, row));
        const double wire_ns = wire_bytes / (bytes_per_s(places) * row.bandwidth_share) * kNsPerS;
        best_ns = std::min(best_ns, latency_ns + wire_ns);
    }
    return best_ns;
}

const LinkRow* find_link(const Calibration& calibration, std::string_view gpu) {
    const LinkRow* own = last_row_about(calibration.links, gpu,
                                        [](const LinkRow& row) { return !row.gpus.empty(); });
    return own != nullptr ? own : last_row_about(calibration.links, gpu);
}

}  // namespace profiler
