#include "profiler/view/ranks_view.h"

#include "profiler/analysis/throughput.h"
#include "profiler/trace/units.h"
#include "profiler/view/no_value.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace profiler {
namespace {

constexpr int kMostRows = 3;  // of collectives that run at the same time; the others share the last

/// From the axis to the clock of a rank.
double ahead_ns(const RanksRequest& request, std::size_t rank) {
    const std::vector<int64_t>& ahead = request.run->clocks.ahead_ns;
    return static_cast<double>(ahead[rank] - ahead[request.axis_rank]);
}

RankLane make_lane(const RanksRequest& request, std::size_t index) {
    const RankSummary& rank = request.run->ranks[index];
    const TimelineRequest window{.sources = {},
                                 .start_ns = request.start_ns,
                                 .end_ns = request.end_ns,
                                 .width_px = request.width_px,
                                 .alignment = nullptr};
    const double ahead = ahead_ns(request, index);
    const TimeMap map = ahead == 0 ? TimeMap() : TimeMap({{.shared_ns = 0, .own_ns = ahead}});
    const int64_t more = rank.peak.allocated_bytes - request.run->median_bytes();
    return {.rank = rank.rank,
            .peak = format_bytes(rank.peak.allocated_bytes),
            .difference = more == 0 ? std::string() : signed_bytes(more),
            .memory = build_timeline_trace(request.ranks[index], map, window),
            .difference_bytes = {},
            .collectives = {},
            .num_rows = 0};
}

// ---- memory -----------------------------------------------------------------------------------

/// Where a rank is not recorded, or fewer than two are, the difference is 0.
void add_differences(RanksView& view) {
    for (RankLane& lane : view.lanes) lane.difference_bytes.resize(lane.memory.column_count());
    const std::size_t count = view.lanes.front().memory.column_count();
    for (std::size_t column = 0; column < count; ++column) {
        std::vector<int64_t> bytes;
        for (const RankLane& lane : view.lanes) {
            if (!lane.memory.covers(column)) continue;
            bytes.push_back(std::llround(lane.memory.allocated_bytes[column]));
        }
        if (bytes.size() < 2) continue;
        const auto middle = static_cast<double>(median(std::move(bytes)));
        for (RankLane& lane : view.lanes) {
            if (!lane.memory.covers(column)) continue;
            const double difference = lane.memory.allocated_bytes[column] - middle;
            lane.difference_bytes[column] = difference;
            view.max_difference_bytes = std::max(view.max_difference_bytes, std::abs(difference));
        }
    }
}

void add_totals(const RanksRequest& request, RanksView& view) {
    CategoryBytes largest{};
    for (const TimelineSource& source : request.ranks) {
        const MemoryCurve& curve = *source.curve;
        for (const CurveBin& bin : curve.sample(curve.start_ns(), curve.end_ns(), 1)) {
            view.max_bytes =
                std::max(view.max_bytes,
                         static_cast<double>(std::max(bin.allocated_bytes, bin.reserved_bytes)));
            for (std::size_t i = 0; i < largest.size(); ++i) {
                largest[i] = std::max(largest[i], bin.by_category[i]);
            }
        }
    }
    for (const Category category : kCategoryStackOrder) {
        if (largest[static_cast<std::size_t>(category)] > 0) view.categories.push_back(category);
    }
}

// ---- collectives ------------------------------------------------------------------------------

/// A collective of a lane before it is drawn.
struct Part {
    double start_ns = 0;  // on the axis
    double end_ns = 0;
    CollectiveKind kind = CollectiveKind::kOther;
    std::size_t joined = 0;  // index into RankRun::joined
};

/// Of each lane, those that meet the window, in the order of time.
std::vector<std::vector<Part>> parts_of_lanes(const RanksRequest& request) {
    std::vector<std::vector<Part>> lanes(request.ranks.size());
    const std::vector<JoinedCollective>& joined = request.run->joined;
    for (std::size_t i = 0; i < joined.size(); ++i) {
        for (const JoinedCollective::Part& one : joined[i].parts) {
            const Collective row = request.ranks[one.rank].trace->collectives[one.collective];
            const double ahead = ahead_ns(request, one.rank);
            const double start_ns = static_cast<double>(row.start_ns) - ahead;
            const double end_ns = static_cast<double>(std::max(row.end_ns, row.start_ns)) - ahead;
            if (end_ns < request.start_ns || start_ns > request.end_ns) continue;
            lanes[one.rank].push_back({start_ns, end_ns, row.kind, i});
        }
    }
    for (auto& parts : lanes) std::ranges::sort(parts, {}, &Part::start_ns);
    return lanes;
}

/// The first row that is free at `start_ns`.
int take_row(std::vector<double>& ends_ns, const Part& part) {
    const auto is_free = [&](double end_ns) { return end_ns <= part.start_ns; };
    auto row = std::ranges::find_if(ends_ns, is_free);
    if (row == ends_ns.end() && std::ssize(ends_ns) < kMostRows) row = ends_ns.insert(row, 0);
    if (row == ends_ns.end()) --row;
    *row = std::max(*row, part.end_ns);
    return static_cast<int>(row - ends_ns.begin());
}

/// Those narrower than a pixel are merged with a neighbour in the same pixel.
void add_spans(const std::vector<Part>& parts, double pixel_ns, RankLane& lane) {
    std::vector<double> ends_ns;
    for (const Part& part : parts) {
        CollectiveSpan* const last = lane.collectives.empty() ? nullptr : &lane.collectives.back();
        const bool is_narrow = part.end_ns - part.start_ns < pixel_ns;
        if (last && is_narrow && last->end_ns - last->start_ns < pixel_ns &&
            part.end_ns - last->start_ns < pixel_ns) {
            last->end_ns = std::max(last->end_ns, part.end_ns);
            ++last->count;
            continue;
        }
        lane.collectives.push_back(
            {part.start_ns, part.end_ns, part.kind, take_row(ends_ns, part), 1, part.joined});
    }
    lane.num_rows = static_cast<int>(ends_ns.size());
}

/// The group as a reader knows it: "default_pg, 4 ranks".
std::string group_text(const Trace& trace, Id<Communicator> id) {
    if (!id.valid()) return {};
    const Communicator group = trace.communicators[id];
    const std::string_view described = trace.text(group.description);
    const std::string_view name = described.empty() ? trace.text(group.name) : described;
    if (group.num_ranks < 0) return std::string(name);
    return fmt::format("{}, {} {}", name, group.num_ranks, group.num_ranks == 1 ? "rank" : "ranks");
}

/// Who came last, and how much later than the first; empty for one trace, or modelled times.
std::string last_text(const RanksRequest& request, const JoinedCollective& joined) {
    if (joined.parts.size() < 2) return {};
    const auto start_of = [&](const JoinedCollective::Part& part) {
        const auto& collectives = request.ranks[part.rank].trace->collectives;
        return static_cast<double>(collectives.get<&Collective::start_ns>(part.collective)) -
               ahead_ns(request, part.rank);
    };
    const auto [first, last] = std::ranges::minmax_element(joined.parts, {}, start_of);
    if (request.ranks[first->rank].trace->run().source == Source::kPredicted) return {};
    return fmt::format("rank {}, {} after rank {}", request.run->ranks[last->rank].rank,
                       format_duration(std::llround(start_of(*last) - start_of(*first))),
                       request.run->ranks[first->rank].rank);
}

JoinedSpan describe(const RanksRequest& request, const JoinedCollective& joined) {
    const JoinedCollective::Part& first = joined.parts.front();
    const Trace& trace = *request.ranks[first.rank].trace;
    const Collective row = trace.collectives[first.collective];
    JoinedSpan span{.kind = row.kind, .places = {}, .title = {}, .rows = {}};
    span.title = fmt::format("{}  {}", name_of(row.kind),
                             format_bytes(std::max(row.in_bytes, row.out_bytes)));
    if (row.op.valid()) {
        span.rows.emplace_back("op", trace.text(trace.ops.get<&Op::name>(row.op)));
    }
    span.rows.emplace_back("group", group_text(trace, row.communicator));
    span.rows.emplace_back("comes last", last_text(request, joined));
    for (const JoinedCollective::Part& part : joined.parts) {
        const Collective own = request.ranks[part.rank].trace->collectives[part.collective];
        if (trace.run().source == Source::kPredicted || own.end_ns < own.start_ns) continue;
        if (span.rows.size() >= 12) break;  // a tooltip's height
        span.rows.emplace_back(fmt::format("rank {}", request.run->ranks[part.rank].rank),
                               format_duration(own.end_ns - own.start_ns));
    }
    return span;
}

/// Turns the indices into RankRun::joined of spans that stand alone into indices into view.joined.
void add_joined(const RanksRequest& request, RanksView& view) {
    std::vector<std::optional<std::size_t>> known(request.run->joined.size());
    for (std::size_t l = 0; l < view.lanes.size(); ++l) {
        for (CollectiveSpan& span : view.lanes[l].collectives) {
            if (span.count > 1) continue;
            std::optional<std::size_t>& at = known[span.joined];
            if (!at) {
                at = view.joined.size();
                view.joined.push_back(describe(request, request.run->joined[span.joined]));
            }
            view.joined[*at].places.push_back({l, span.start_ns, span.end_ns, span.row});
            span.joined = *at;
        }
    }
}

void add_collectives(const RanksRequest& request, RanksView& view) {
    const double pixel_ns = (request.end_ns - request.start_ns) / std::max(request.width_px, 1);
    const std::vector<std::vector<Part>> lanes = parts_of_lanes(request);
    std::vector<bool> occurs(kCollectiveKindNames.size());
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        add_spans(lanes[l], pixel_ns, view.lanes[l]);
        for (const Part& part : lanes[l]) occurs[static_cast<std::size_t>(part.kind)] = true;
    }
    for (std::size_t i = 0; i < occurs.size(); ++i) {
        if (occurs[i]) view.kinds.push_back(static_cast<CollectiveKind>(i));
    }
    add_joined(request, view);
}

// ---- sentences --------------------------------------------------------------------------------

std::string headline_of(const RankRun& run) {
    if (run.ranks.size() < 2) return {};
    std::string text = fmt::format(
        "Rank {} needs the most memory, {}: {:.2f} times the median.", run.largest().rank,
        format_bytes(run.largest().peak.allocated_bytes), run.imbalance());
    if (run.imbalance() < 1.005) {
        text = fmt::format("All ranks need {}.", format_bytes(run.median_bytes()));
    }
    const auto waits_of = [](const RankSummary& rank) { return rank.wait_ns.value_or(0); };
    const RankSummary& most = *std::ranges::max_element(run.ranks, {}, waits_of);
    if (waits_of(most) > 0) {
        const RankSummary& least = *std::ranges::min_element(run.ranks, {}, waits_of);
        const int64_t least_ns = waits_of(least);
        text += fmt::format(
            " In collectives of the last step, rank {} waits {} for others, rank {} {}.", most.rank,
            format_duration(waits_of(most)), least.rank,
            least_ns > 0 ? format_duration(least_ns) : "not at all");
    }
    return text;
}

std::string clocks_text(const RankRun& run) {
    switch (run.clocks.basis) {
        case RankClocks::Basis::kCollectives:
            return "Clocks: collectives that wait for all of their ranks end together.";
        case RankClocks::Basis::kWallClock:
            return "Clocks: what the machines say the time was, since no collective joins all "
                   "ranks.";
        case RankClocks::Basis::kFirstStep:
            return "Clocks: the first recorded steps begin together. Times are modelled, and no "
                   "rank "
                   "waits for another.";
    }
    return {};
}

}  // namespace

RanksView build_ranks_view(const RanksRequest& request) {
    RanksView view{.headline = headline_of(*request.run), .clocks = clocks_text(*request.run)};
    if (request.ranks.empty()) return view;
    for (std::size_t i = 0; i < request.ranks.size(); ++i) {
        view.lanes.push_back(make_lane(request, i));
    }
    add_differences(view);
    add_totals(request, view);
    add_collectives(request, view);
    return view;
}

}  // namespace profiler
