#pragma once

#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// What a rank communicates in a step.
namespace profiler {

/// The collectives of one kind in one communicator.
struct CollectiveTotal {
    CollectiveKind kind = CollectiveKind::kOther;
    Id<Communicator> communicator;
    int64_t count = 0;
    int64_t in_bytes = 0;
    int64_t out_bytes = 0;
    int64_t size_bytes = 0;  // of each collective the larger of both, as nccl-tests counts it
    int64_t time_ns = 0;     // the sum of all, also of those side by side; 0: not known
};

/// The step of each collective of the rank that figures are of. Invalid: it is outside of them, or
/// the trace has no phases.
std::vector<Id<Step>> steps_of_collectives(const Trace& trace);

/// For each collective: whether it belongs to the step and to the rank that the figures describe. A
/// trace without steps or phases counts as one step.
std::vector<bool> are_in(const Trace& trace, Id<Step> step);

/// Whether the times of the trace say what communication costs. Modelled ones do where all ranks do
/// the same. What a stage of a pipeline waits for the one before takes the traces of all stages
/// (rank_run.h).
bool knows_communication(const Trace& trace);

/// Whether the rank sends to another one, or receives from it, as stages of a pipeline do.
bool is_stage(const Trace& trace);

/// The largest first, of the step; of the whole trace if it has no steps or phases.
std::vector<CollectiveTotal> collectives_of(const Trace& trace, Id<Step> step);

// Collectives across the traces of several ranks: which calls are one collective, how far apart
// the clocks of the ranks are, and who waits for whom.

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
    Basis basis = Basis::kCollectives;  // the least exact basis in use
};

/// "collectives", "wall_clock", "first_step".
std::string_view name_of(RankClocks::Basis basis);

/// A collective that waits for all of its ranks ends on every rank at nearly the same time. So the
/// clocks of two ranks differ by the median difference of these ends, over the collectives of both
/// ranks. A rank may have no chain of such collectives to the first trace. Then the wall clock
/// counts, which another machine may have set otherwise. Without a wall clock, the first steps of
/// the two traces begin together. Modelled times say nothing of other ranks: there, all first steps
/// begin together.
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
