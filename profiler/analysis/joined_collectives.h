#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Collectives across the traces of several ranks: which calls are one collective, how far apart
/// the clocks of the ranks are, and who waits for whom.
namespace profiler {

/// A collective, or a send with its receive, as the ranks saw it that have a trace.
struct JoinedCollective {
    struct Part {
        std::size_t rank = 0;  // index of its trace
        Id<Collective> collective;
    };
    std::vector<Part> parts;  // in the order of the traces
};

/// The n-th call of a kind in a communicator is the same collective on all of its ranks. A send is
/// the n-th from its rank to that peer. In the order of the calls of the first rank that has each.
std::vector<JoinedCollective> join_collectives(std::span<const Trace* const> traces);

/// How far the clock of each trace is ahead of the first one's.
struct RankClocks {
    enum class Basis : uint8_t {
        kCollectives,  // all of them end at one instant
        kWallClock,    // what the machines say the time was
        kFirstStep     // the first recorded steps begin at one instant
    };
    std::vector<int64_t> ahead_ns;
    Basis basis = Basis::kFirstStep;  // the least exact of those that were used
};

/// A collective that waits for all of its ranks ends on all of them at nearly the same time: the
/// clocks of two ranks differ by the median over those that both took part in. Ranks that no chain
/// of such collectives joins with the first trace take the wall clock, which another machine may
/// have set otherwise. Modelled times say nothing of other ranks: there, first steps begin together.
RankClocks compare_clocks(std::span<const Trace* const> traces,
                          std::span<const JoinedCollective> joined);

/// For each trace, how long its collectives of the last step wait for the rank that comes last: the
/// sum of (latest start − own start). Only those in which two or more traces take part and which
/// wait for all of their ranks.
std::vector<int64_t> waits_in_last_step(std::span<const Trace* const> traces,
                                        std::span<const JoinedCollective> joined,
                                        const RankClocks& clocks);

}  // namespace profiler
