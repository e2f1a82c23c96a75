#pragma once

#include "profiler/planner/data/calibration.h"
#include "profiler/trace/enumerations.h"

#include <cstdint>
#include <span>
#include <string_view>

/// How long a collective takes if all of its ranks begin it together, by NCCL's own model.
///
///     time        min over protocols of latency + wire bytes / (bandwidth · protocol's share)
///     wire bytes  of a rank: all-reduce 2 (R-1)/R · N; all-gather, reduce-scatter, all-to-all
///                 (R-1)/R · N; others N. N is the larger of what it gives and gets.
///     steps       all-reduce 2, or on several nodes a tree's 2 (g-1 + log2 M) if that is
///                 shorter; others R-1; a message 1
///     bandwidth   on one node the link's; on M nodes g ranks of a node use g adapters of the
///                 network, but no more than the link carries
///
/// R ranks on M nodes, at most g on each. Ranks stand on nodes in order, `gpus_per_node` on each.
/// Source of the form: NCCL, src/graph/tuning.cc, from memory. The latencies and bandwidths are the
/// calibration's.
namespace profiler {

/// How the ranks of a communicator stand on nodes.
struct RankPlaces {
    int64_t num_ranks = 1;
    int64_t num_nodes = 1;
    int64_t most_on_node = 1;
};
RankPlaces places_of(std::span<const int64_t> ranks, int64_t gpus_per_node);

class CommunicationModel {
public:
    /// Borrows the calibration.
    CommunicationModel(const Calibration& calibration, std::string_view gpu);

    double time_ns(CollectiveKind kind, int64_t size_bytes, const RankPlaces& places) const;
    double bytes_per_s(const RankPlaces& places) const;
    int64_t gpus_per_node() const;

private:
    const Calibration* calibration_;
    double link_bytes_per_s_ = 0;
    double network_bytes_per_s_ = 0;  // of one GPU's adapter
};

/// The link between GPUs of this kind: the last row that names the GPU, else the row for all GPUs.
const LinkRow* find_link(const Calibration& calibration, std::string_view gpu);

}  // namespace profiler
