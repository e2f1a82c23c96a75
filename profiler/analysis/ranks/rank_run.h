#pragma once

#include "models/config/result.h"
#include "profiler/analysis/ops/gpu_time.h"
#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The traces of several ranks of one run, side by side.
namespace profiler {

// When the stages of a pipeline run, if each of them was modelled alone.
//
// Alone, what a stage receives is there at once. Together, a send and its receive begin when both
// ranks have come to them, and so does a collective that waits for all of its ranks. The durations
// of kernels and copies stay, and so does the gap between an item and the last item it waits for:
//
//     start = gap + max(end of the stream's last item, ends of the items it waits for)
//     end   = duration + max(own start, starts of its peers on the other ranks)
//
// The streams, the waits and the order of the schedule are the recorded ones. All first steps
// begin together. The times are the least that satisfy all equations: from those of the ranks
// alone on, each round passes what one rank learned to its neighbours.

/// How long the last recorded step of all ranks takes. It begins when the step before it ends, and
/// a step ends with the last kernel that any rank runs in it. None: times are not modelled, nothing
/// is sent, the other side of a send has no trace, or the ranks did not record the same steps to
/// their end.
std::optional<int64_t> pipeline_step_ns(std::span<const Trace* const> traces,
                                        std::span<const JoinedCollective> joined);

struct RankSummary {
    int64_t rank = 0;
    std::string file;
    std::string device;  // "cuda:3"
    PeakReport peak;
    int64_t nccl_bytes = 0;       // that NCCL took beside the allocator
    int64_t num_steps = 0;        // recorded
    int64_t last_whole_step = 0;  // its number, from 1; 0: no step is whole
    int64_t num_collectives = 0;  // in RankRun::shared_step, as all below
    int64_t collective_bytes = 0;
    std::optional<int64_t> step_ns;   // of a pipeline, on the GPU, or on the host
    std::optional<GpuTime> gpu_time;  // a stage is idle while it waits for another one
    std::optional<RankWaits> waits;   // of its collectives
    bool is_complete = false;
};

struct RankRun {
    std::string step;  // describe_run of the first rank
    int64_t world_size = 1;
    std::vector<RankSummary> ranks;  // in their order
    Id<Step> shared_step;      // the last that every rank recorded completely; none: no step is
    int64_t median_bytes = 0;  // of the peaks
    std::vector<JoinedCollective> joined;
    RankClocks clocks;
    std::optional<int64_t> pipeline_step_ns;  // of all ranks, if stages of a pipeline are modelled

    /// The number of the shared step, from 1; 0: there is none.
    int64_t shared_step_number() const {
        return shared_step.valid() ? static_cast<int64_t>(shared_step.index()) + 1 : 0;
    }
    /// The rank with the most memory at its peak; the first of them.
    const RankSummary& largest() const;
    /// The largest peak over the median one: 1 when all ranks need the same.
    double imbalance() const;
};

/// The most that NCCL took beside the allocator; 0: nothing, or the trace does not say.
int64_t nccl_bytes_of(const Trace& trace);

/// Errors: no trace; a rank twice, or ranks of several runs. Runs with different ids that recorded
/// at about the same time are one: each node of a launch starts its own `temposcope run`, and not
/// every launcher gives them an id to share.
models::Result<RankRun> summarize_ranks(std::span<const NamedTrace> traces);

}  // namespace profiler
