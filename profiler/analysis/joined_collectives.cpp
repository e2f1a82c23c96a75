#include "profiler/analysis/joined_collectives.h"

#include "profiler/analysis/collectives.h"
#include "profiler/analysis/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace profiler {
namespace {

/// Whether no rank is done before the last one has begun.
bool waits_for_all(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kAllGather:
        case CollectiveKind::kReduceScatter:
        case CollectiveKind::kAllToAll:
        case CollectiveKind::kBarrier:
            return true;
        default:
            return false;
    }
}

/// The numbers in "[0, 8, 16]".
std::vector<int64_t> numbers_in(std::string_view text) {
    std::vector<int64_t> numbers;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        int64_t number = 0;
        const auto [after, error] = std::from_chars(at, end, number);
        if (error == std::errc()) numbers.push_back(number);
        at = error == std::errc() ? after : at + 1;
    }
    return numbers;
}

/// What a communicator is called on all of its ranks, and which of them this one is.
struct Group {
    std::string name;
    int64_t own = 0;
};

std::vector<Group> groups_of(const Trace& trace) {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < trace.communicators.size(); ++i) {
        const Communicator one = trace.communicators[Id<Communicator>(i)];
        const std::string_view ranks = trace.text(one.ranks);
        const std::vector<int64_t> numbers = numbers_in(ranks);
        const auto own = std::ranges::find(numbers, trace.run().rank);
        groups.push_back({fmt::format("{} {}", trace.text(one.name), ranks),
                          own != numbers.end() ? own - numbers.begin() : trace.run().rank});
    }
    return groups;
}

/// What the calls of one collective have in common, but for their number.
std::string name_of(const Collective& row, const Group& group) {
    if (row.kind == CollectiveKind::kSend) {
        return fmt::format("{} from {} to {}", group.name, group.own, row.peer);
    }
    if (row.kind == CollectiveKind::kRecv) {
        return fmt::format("{} from {} to {}", group.name, row.peer, group.own);
    }
    return fmt::format("{} {}", group.name, profiler::name_of(row.kind));
}

struct Times {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
};

Times times_of(std::span<const Trace* const> traces, const JoinedCollective::Part& part) {
    const Collective row = traces[part.rank]->collectives[part.collective];
    return {row.start_ns, row.end_ns};
}

CollectiveKind kind_of(std::span<const Trace* const> traces, const JoinedCollective& joined) {
    const auto& first = joined.parts.front();
    return traces[first.rank]->collectives.get<&Collective::kind>(first.collective);
}

/// By pair of ranks: how far the second clock is ahead at the end of each collective of both.
std::map<std::pair<std::size_t, std::size_t>, std::vector<int64_t>> differences_at_ends(
    std::span<const Trace* const> traces, std::span<const JoinedCollective> joined) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<int64_t>> differences;
    for (const JoinedCollective& one : joined) {
        if (!waits_for_all(kind_of(traces, one))) continue;
        // Neighbours are enough: a chain of them joins all ranks of a communicator.
        for (std::size_t i = 1; i < one.parts.size(); ++i) {
            const auto& before = one.parts[i - 1];
            const int64_t end_ns = times_of(traces, one.parts[i]).end_ns;
            const int64_t before_ns = times_of(traces, before).end_ns;
            if (end_ns < 0 || before_ns < 0) continue;
            differences[{before.rank, one.parts[i].rank}].push_back(end_ns - before_ns);
        }
    }
    return differences;
}

bool is_measured(const Trace& trace) { return trace.run().source != Source::kPredicted; }

int64_t first_step_ns(const Trace& trace) {
    return trace.steps.empty() ? 0 : trace.steps.get<&Step::start_ns>(Id<Step>(0));
}

}  // namespace

std::vector<JoinedCollective> join_collectives(std::span<const Trace* const> traces) {
    std::vector<JoinedCollective> joined;
    std::map<std::pair<std::string, int64_t>, std::size_t> known;  // by name and number
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
        const Trace& trace = *traces[rank];
        const std::vector<Group> groups = groups_of(trace);
        std::map<std::string, int64_t> count;
        for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
            const Collective row = trace.collectives[Id<Collective>(i)];
            const Group none{.name = "", .own = trace.run().rank};
            const std::string name =
                name_of(row, row.communicator.valid() ? groups[row.communicator.index()] : none);
            const auto [at, is_new] = known.try_emplace({name, count[name]++}, joined.size());
            if (is_new) joined.emplace_back();
            joined[at->second].parts.push_back({rank, Id<Collective>(i)});
        }
    }
    return joined;
}

RankClocks compare_clocks(std::span<const Trace* const> traces,
                          std::span<const JoinedCollective> joined) {
    RankClocks clocks{.ahead_ns = std::vector<int64_t>(traces.size(), 0),
                      .basis = RankClocks::Basis::kCollectives};
    if (!std::ranges::all_of(traces, [](const Trace* trace) { return is_measured(*trace); })) {
        for (std::size_t i = 1; i < traces.size(); ++i) {
            clocks.ahead_ns[i] = first_step_ns(*traces[i]) - first_step_ns(*traces[0]);
        }
        clocks.basis = RankClocks::Basis::kFirstStep;
        return clocks;
    }
    std::vector<bool> is_known(traces.size(), false);
    if (!traces.empty()) is_known[0] = true;
    auto differences = differences_at_ends(traces, joined);
    for (bool grows = true; grows;) {
        grows = false;
        for (auto& [pair, all_ns] : differences) {
            const auto [before, after] = pair;
            if (is_known[before] == is_known[after]) continue;
            const int64_t apart_ns = median(all_ns);
            if (is_known[before]) clocks.ahead_ns[after] = clocks.ahead_ns[before] + apart_ns;
            if (is_known[after]) clocks.ahead_ns[before] = clocks.ahead_ns[after] - apart_ns;
            is_known[before] = is_known[after] = grows = true;
        }
    }
    for (std::size_t i = 0; i < traces.size(); ++i) {
        if (is_known[i]) continue;
        clocks.ahead_ns[i] = traces[0]->run().start_unix_ns - traces[i]->run().start_unix_ns;
        clocks.basis = RankClocks::Basis::kWallClock;
    }
    return clocks;
}

std::vector<int64_t> waits_in_last_step(std::span<const Trace* const> traces,
                                        std::span<const JoinedCollective> joined,
                                        const RankClocks& clocks) {
    std::vector<int64_t> waits_ns(traces.size(), 0);
    std::vector<std::vector<bool>> is_in_last;
    for (const Trace* trace : traces) is_in_last.push_back(are_in_last_step(*trace));
    for (const JoinedCollective& one : joined) {
        if (one.parts.size() < 2 || !waits_for_all(kind_of(traces, one))) continue;
        const auto start_of = [&](const JoinedCollective::Part& part) {
            return times_of(traces, part).start_ns - clocks.ahead_ns[part.rank];
        };
        const int64_t last_ns = start_of(std::ranges::max(one.parts, {}, start_of));
        for (const JoinedCollective::Part& part : one.parts) {
            if (!is_in_last[part.rank][part.collective.index()]) continue;
            waits_ns[part.rank] += last_ns - start_of(part);
        }
    }
    return waits_ns;
}

}  // namespace profiler
