#pragma once

#include "profiler/analysis/ranks/joined_collectives.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <span>

/// When the stages of a pipeline run, if each of them was modelled alone.
///
/// Alone, what a stage receives is there at once. Together, a send and its receive begin when both
/// ranks have come to them, and so does a collective that waits for all of its ranks. The durations
/// of kernels and copies stay, and so does the gap between an item and the last item it waits for:
///
///     start = gap + max(end of the stream's last item, ends of the items it waits for)
///     end   = duration + max(own start, starts of its peers on the other ranks)
///
/// The streams, the waits and the order of the schedule are the recorded ones. All first steps
/// begin together. The times are the least that satisfy all equations: from those of the ranks
/// alone on, each round passes what one rank learned to its neighbours.
namespace profiler {

/// How long the last recorded step of all ranks takes: from the end of the last kernel of the step
/// before, on any rank, to that of its own. None: times are not modelled, nothing is sent, the
/// other side of a send has no trace, or the ranks did not record the same steps to their end.
std::optional<int64_t> pipeline_step_ns(std::span<const Trace* const> traces,
                                        std::span<const JoinedCollective> joined);

}  // namespace profiler
