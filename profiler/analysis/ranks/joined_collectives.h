#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Collectives across the traces of several ranks: which calls are one collective, how far apart
/// the clocks of the ranks are, and who waits for whom.
namespace profiler {

/// A collective, or a send with its receive, as the ranks saw it that have a trace.
struct JoinedCollective {
    struct Part {
        std::size_t trace = 0;  // index of the rank's trace
        Id<Collective> collective;
    };
    std::vector<Part> parts;  // in the order of the traces
};

/// Whether no rank is done with such a collective before the last one has begun.
bool waits_for_all(CollectiveKind kind);

/// The n-th call of a kind in a communicator is the same collective on all of its ranks. Sends to a
/// peer count within a step, and from its end: a trace lacks what a stage received for its first
/// forward. Calls that contradict each other in type or size stay apart. In the order of the first
/// trace with each.
std::vector<JoinedCollective> join_collectives(std::span<const Trace* const> traces);

/// How far the clock of each trace is ahead of the first one's.
struct RankClocks {
    enum class Basis : uint8_t {
        kCollectives,  // all of them end at one instant
        kWallClock,    // what the machines say the time was
        kFirstStep     // the first recorded steps begin at one instant
    };
    std::vector<int64_t> ahead_ns;
    Basis basis = Basis::kCollectives;  // the least exact of those that were used
};

/// "collectives", "wall_clock", "first_step".
std::string_view name_of(RankClocks::Basis basis);

/// A collective that waits for all of its ranks ends on all of them at nearly the same time: the
/// clocks of two ranks differ by the median over those that both took part in. Ranks that no chain
/// of such collectives joins with the first trace take the wall clock, which another machine may
/// have set otherwise, or begin with its first step where the wall clock is not known. Modelled
/// times say nothing of other ranks: there, all first steps begin together.
RankClocks compare_clocks(std::span<const Trace* const> traces,
                          std::span<const JoinedCollective> joined);

/// Of a step of a rank.
struct RankWaits {
    int64_t wait_ns = 0;        // of its collectives for the rank that comes last
    int64_t waited_for_ns = 0;  // of other ranks, where it comes last itself
};

/// In a step of each trace; none: in no step. For each trace the time that [own start, latest
/// start] of any collective covers, and where its own start is the latest, [first start, own
/// start]. Of collectives that wait for all of their ranks and that two or more traces hold. A
/// trace without such a collective, or without measured times, gets none.
std::vector<std::optional<RankWaits>> waits_in(std::span<const Id<Step>> steps,
                                               std::span<const Trace* const> traces,
                                               std::span<const JoinedCollective> joined,
                                               const RankClocks& clocks);

}  // namespace profiler
