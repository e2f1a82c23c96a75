#include "profiler/view/ranks/ranks_view.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/units.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace profiler {
namespace {

constexpr std::size_t kMostRanksInTooltip = 8;

/// From the axis to the clock of a rank.
double ahead_ns(const RanksRequest& request, std::size_t rank) {
    const std::vector<int64_t>& ahead = request.run->clocks.ahead_ns;
    return static_cast<double>(ahead[rank] - ahead[request.axis_rank]);
}

RankLane make_lane(const RanksRequest& request, std::size_t index) {
    const RankSummary& rank = request.run->ranks[index];
    const TimelineRequest window{.start_ns = request.start_ns,
                                 .end_ns = request.end_ns,
                                 .width_px = request.width_px,
                                 .alignment = nullptr};
    const double ahead = ahead_ns(request, index);
    const TimeMap map = ahead == 0 ? TimeMap() : TimeMap({{.shared_ns = 0, .own_ns = ahead}});
    const int64_t more = rank.peak.allocated_bytes - request.run->median_bytes;
    return {.rank = rank.rank,
            .peak = format_bytes(rank.peak.allocated_bytes),
            .difference = more == 0 ? std::string() : signed_bytes(more),
            .difference_tone = more > 0 ? Tone::kBad : Tone::kGood,
            .memory = build_timeline_trace(*request.ranks[index], map, window)};
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

double highest_bytes(const RankRun& run) {
    int64_t highest = 0;
    for (const RankSummary& rank : run.ranks) {
        highest = std::max({highest, rank.peak.allocated_bytes, rank.peak.reserved_bytes});
    }
    return static_cast<double>(highest);
}

// ---- collectives ------------------------------------------------------------------------------

/// A collective of a lane before it is drawn.
struct Part {
    double start_ns = 0;  // on the axis
    double end_ns = 0;
    CollectiveKind kind = CollectiveKind::kOther;
    std::size_t joined = 0;  // index into RankRun::joined
    Id<Collective> row;
};

Part part_of(const RanksRequest& request, std::size_t joined, const JoinedCollective::Part& one) {
    const Collective row = request.ranks[one.trace]->trace().collectives[one.collective];
    const double ahead = ahead_ns(request, one.trace);
    return {.start_ns = static_cast<double>(row.start_ns) - ahead,
            .end_ns = static_cast<double>(std::max(row.end_ns, row.start_ns)) - ahead,
            .kind = row.kind,
            .joined = joined,
            .row = one.collective};
}

/// Of each lane, in the order of time.
std::vector<std::vector<Part>> parts_of_lanes(const RanksRequest& request) {
    std::vector<std::vector<Part>> lanes(request.ranks.size());
    const std::vector<JoinedCollective>& joined = request.run->joined;
    for (std::size_t i = 0; i < joined.size(); ++i) {
        for (const JoinedCollective::Part& one : joined[i].parts) {
            lanes[one.trace].push_back(part_of(request, i, one));
        }
    }
    const auto order = [](const Part& part) { return std::pair(part.start_ns, part.joined); };
    for (auto& parts : lanes) std::ranges::sort(parts, {}, order);
    return lanes;
}

/// Each gets the first row that is free at its start, or the last one. All collectives count, not
/// those of the window, so that rows stay where they are while the user pans.
void assign_rows(const std::vector<Part>& parts, RankLane& lane) {
    std::vector<double> ends_ns;
    lane.rows.resize(parts.size());
    for (const Part& part : parts) {
        const auto is_free = [&](double end_ns) { return end_ns <= part.start_ns; };
        auto row = std::ranges::find_if(ends_ns, is_free);
        if (row == ends_ns.end() && std::ssize(ends_ns) < kMostCollectiveRows) {
            row = ends_ns.insert(row, part.end_ns);
        }
        if (row == ends_ns.end()) --row;
        *row = std::max(*row, part.end_ns);
        lane.rows[part.row.index()] = static_cast<int>(row - ends_ns.begin());
    }
    lane.num_rows = static_cast<int>(ends_ns.size());
}

/// One is merged with the last in its row where they would share pixels: where they overlap, or
/// where both are narrower than a pixel and lie in one. So a row holds two spans a pixel at most.
void add_spans(const RanksRequest& request, const std::vector<Part>& parts, RankLane& lane) {
    const double pixel_ns = (request.end_ns - request.start_ns) / std::max(request.width_px, 1);
    std::array<std::optional<std::size_t>, kMostCollectiveRows> last_of_row;
    for (const Part& part : parts) {
        if (part.end_ns < request.start_ns || part.start_ns > request.end_ns) continue;
        const int row = lane.rows[part.row.index()];
        auto& last_at = last_of_row.at(static_cast<std::size_t>(row));
        if (last_at) {
            CollectiveSpan& last = lane.collectives[*last_at];
            const bool overlaps = part.start_ns < last.end_ns;
            if (overlaps || part.end_ns - last.start_ns < pixel_ns) {
                last.end_ns = std::max(last.end_ns, part.end_ns);
                ++last.count;
                continue;
            }
        }
        last_at = lane.collectives.size();
        lane.collectives.push_back({part.start_ns, part.end_ns, part.kind, row, 1, part.joined});
    }
}

void add_collectives(const RanksRequest& request, RanksView& view) {
    const std::vector<std::vector<Part>> lanes = parts_of_lanes(request);
    std::array<bool, kCollectiveKindNames.size()> occurs{};
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        assign_rows(lanes[l], view.lanes[l]);
        add_spans(request, lanes[l], view.lanes[l]);
        for (const CollectiveSpan& span : view.lanes[l].collectives) {
            occurs[static_cast<std::size_t>(span.kind)] = true;
        }
    }
    for (std::size_t i = 0; i < occurs.size(); ++i) {
        if (occurs[i]) view.kinds.push_back(static_cast<CollectiveKind>(i));
    }
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

bool is_measured(const RanksRequest& request, std::size_t rank) {
    return request.ranks[rank]->trace().run().time_basis == TimeBasis::kMeasured;
}

/// Who came last, and how much later than the first; empty for one trace, or modelled times.
std::string last_text(const RanksRequest& request, const std::vector<JoinedSpan::Place>& places) {
    if (places.size() < 2) return {};
    const auto [first, last] = std::ranges::minmax(places, {}, &JoinedSpan::Place::start_ns);
    if (!is_measured(request, first.lane) || !is_measured(request, last.lane)) return {};
    return fmt::format("rank {}, {} after rank {}", request.run->ranks[last.lane].rank,
                       format_duration(std::llround(last.start_ns - first.start_ns)),
                       request.run->ranks[first.lane].rank);
}

std::string clocks_text(const RankRun& run) {
    if (run.ranks.size() < 2) return {};
    switch (run.clocks.basis) {
        case RankClocks::Basis::kCollectives:
            return "Clocks: collectives that wait for all of their ranks end together.";
        case RankClocks::Basis::kWallClock:
            return "Clocks: what the machines say the time was, because no collective joins all "
                   "ranks.";
        case RankClocks::Basis::kFirstStep:
            return "Clocks: the first recorded steps begin together, because times are modelled "
                   "or no clock is known. Modelled ranks do not wait for each other.";
    }
    return {};
}

}  // namespace

RanksView build_ranks_view(const RanksRequest& request) {
    RanksView view{.request = request,
                   .max_bytes = highest_bytes(*request.run),
                   .headline = rank_headline(*request.run),
                   .clocks = clocks_text(*request.run)};
    if (request.ranks.empty()) return view;
    for (std::size_t i = 0; i < request.ranks.size(); ++i) {
        view.lanes.push_back(make_lane(request, i));
    }
    std::vector<const TimelineTrace*> memory;
    for (const RankLane& lane : view.lanes) memory.push_back(&lane.memory);
    view.categories = categories_in(memory);
    add_differences(view);
    add_collectives(request, view);
    return view;
}

JoinedSpan read_collective(const RanksView& view, const CollectiveSpan& span) {
    const RanksRequest& request = view.request;
    const JoinedCollective& joined = request.run->joined[span.joined];
    const JoinedCollective::Part& first = joined.parts.front();
    const Trace& trace = request.ranks[first.trace]->trace();
    const Collective row = trace.collectives[first.collective];
    JoinedSpan result{.kind = span.kind, .places = {}, .title = {}, .rows = {}};
    for (const JoinedCollective::Part& one : joined.parts) {
        const Part part = part_of(request, span.joined, one);
        result.places.push_back({one.trace, part.start_ns, part.end_ns,
                                 view.lanes[one.trace].rows[one.collective.index()]});
    }
    result.title = fmt::format("{}  {}", name_of(span.kind),
                               format_bytes(std::max(row.in_bytes, row.out_bytes)));
    if (row.op.valid()) {
        result.rows.emplace_back("op", name_of_call(trace, row.op));
    }
    result.rows.emplace_back("group", group_text(trace, row.communicator));
    result.rows.emplace_back("comes last", last_text(request, result.places));
    for (const JoinedSpan::Place& place : result.places) {
        const bool is_known = is_measured(request, place.lane) && place.end_ns > place.start_ns;
        if (!is_known || place.lane >= kMostRanksInTooltip) continue;
        result.rows.emplace_back(fmt::format("rank {}", request.run->ranks[place.lane].rank),
                                 format_duration(std::llround(place.end_ns - place.start_ns)));
    }
    return result;
}

namespace {

/// A member of GpuTime, where the rank has one.
template <auto Member>
std::optional<int64_t> of_gpu(const RankSummary& rank) {
    return rank.gpu_time ? std::optional<int64_t>((*rank.gpu_time).*Member) : std::nullopt;
}
template <auto Member>
std::optional<int64_t> of_gpu_if_known(const RankSummary& rank) {
    return rank.gpu_time ? (*rank.gpu_time).*Member : std::nullopt;
}

template <auto Member>
std::optional<int64_t> of_waits(const RankSummary& rank) {
    return rank.waits ? std::optional<int64_t>((*rank.waits).*Member) : std::nullopt;
}

using RankColumn = TableColumn<RankSummary>;

/// What the GPU does in the shared step.
const std::vector<RankColumn>& time_columns() {
    using enum Unit;
    static const std::vector<RankColumn> kColumns{
        {"step_time_ns", "step", kNanoseconds,
         "the last one that every rank recorded completely: of a modelled pipeline, on the GPU, "
         "or without kernels on the host",
         &RankSummary::step_ns},
        {"compute_ns", "compute", kNanoseconds, "kernels that are not NCCL's, and copies",
         of_gpu<&GpuTime::compute_ns>},
        {"communication_ns", "communication", kNanoseconds,
         "NCCL's kernels; in modelled steps from when all of their ranks are there",
         of_gpu_if_known<&GpuTime::communication_ns>},
        {"exposed_communication_ns", "exposed", kNanoseconds,
         "communication while nothing else runs",
         of_gpu_if_known<&GpuTime::exposed_communication_ns>},
        {"idle_ns", "idle", kNanoseconds,
         "nothing runs on the GPU, or a modelled stage of a pipeline waits for another one",
         of_gpu<&GpuTime::idle_ns>},
        {"wait_ns", "waits", kNanoseconds,
         "how long its collectives wait for the rank that comes last; known for collectives that "
         "two or "
         "more of these ranks measured",
         of_waits<&RankWaits::wait_ns>},
        {"waited_for_ns", "waited for", kNanoseconds,
         "how long other ranks wait for this one, where it comes last",
         of_waits<&RankWaits::waited_for_ns>}};
    return kColumns;
}

/// Peaks that differ by less than this share are alike.
constexpr double kAlike = 0.005;

int64_t bytes_of(const RankSummary& rank, Category category) {
    return rank.peak.by_category[static_cast<std::size_t>(category)];
}

/// No value where 0 bytes may mean that the file does not say which they are.
RankColumn bytes_at_peak(std::string title, Category category) {
    const auto value = [category](const RankSummary& rank) {
        const int64_t bytes = bytes_of(rank, category);
        const bool is_known = bytes > 0 || bytes_of(rank, Category::kUnknown) == 0;
        return is_known ? Cell(bytes) : Cell();
    };
    return {"", std::move(title), Unit::kBytes, "", value};
}

/// Temporary memory, workspaces and inputs.
int64_t other_bytes_at_peak(const RankSummary& rank) {
    return bytes_of(rank, Category::kTemporary) + bytes_of(rank, Category::kWorkspace) +
           bytes_of(rank, Category::kInput);
}

const RankColumn kRank{"rank", "rank", Unit::kNumber, "", &RankSummary::rank};

const std::vector<RankColumn>& device_columns() {
    static const std::vector<RankColumn> kColumns{
        {"device", "device", Unit::kText, "", &RankSummary::device},
        {"peak_allocated_bytes", "peak", Unit::kBytes, "",
         [](const RankSummary& rank) { return rank.peak.allocated_bytes; }},
        {"peak_reserved_bytes", "reserved", Unit::kBytes, "",
         [](const RankSummary& rank) { return rank.peak.reserved_bytes; }}};
    return kColumns;
}

/// Texts show no value for 0.
const std::vector<RankColumn>& nccl_columns() {
    const auto text_unless_0 = [](Unit unit, int64_t RankSummary::*member,
                                  int64_t RankSummary::*of) {
        return [=](const RankSummary& rank) {
            return text_of(unit, rank.*of > 0 ? Cell(rank.*member) : Cell());
        };
    };
    using enum Unit;
    static const std::vector<RankColumn> kColumns{
        {"nccl_bytes", "NCCL beside", kBytes, "what NCCL takes beside the allocator",
         &RankSummary::nccl_bytes,
         text_unless_0(kBytes, &RankSummary::nccl_bytes, &RankSummary::nccl_bytes)},
        {"collectives", "collectives", kCount,
         "in the last step that every rank recorded completely", &RankSummary::num_collectives,
         text_unless_0(kCount, &RankSummary::num_collectives, &RankSummary::num_collectives)},
        {"collective_bytes", "their bytes", kBytes, "of each the larger of what goes in and out",
         &RankSummary::collective_bytes,
         text_unless_0(kBytes, &RankSummary::collective_bytes, &RankSummary::num_collectives)}};
    return kColumns;
}

/// " In the last step, the others wait the most for rank 2: ..."; empty: none waits.
std::string about_waits(const RankRun& run) {
    const auto wait_of = of_waits<&RankWaits::wait_ns>;
    const auto waited_for_of = of_waits<&RankWaits::waited_for_ns>;
    const RankSummary& last = std::ranges::max(run.ranks, {}, waited_for_of);
    const RankSummary& patient = std::ranges::max(run.ranks, {}, wait_of);
    if (waited_for_of(last).value_or(0) == 0) return {};
    return fmt::format(
        " In {}, the others wait the most for rank {}: {}. Rank {} waits the most, {}.",
        name_of_shared_step(run), last.rank, format_duration(*waited_for_of(last)), patient.rank,
        format_duration(wait_of(patient).value_or(0)));
}

/// " A step of all stages lasts 55.4 ms: they idle 38 % of it."; empty: no pipeline is modelled.
std::string about_pipeline(const RankRun& run) {
    if (run.pipeline_step_ns.value_or(0) <= 0) return {};
    double idle_ns = 0;
    for (const RankSummary& rank : run.ranks) {
        idle_ns += static_cast<double>(of_gpu<&GpuTime::idle_ns>(rank).value_or(0));
    }
    const double all_ns =
        static_cast<double>(*run.pipeline_step_ns) * static_cast<double>(run.ranks.size());
    return fmt::format(" A step of all stages lasts {}: they idle {:.0f} % of it.",
                       format_duration(*run.pipeline_step_ns), 100 * idle_ns / all_ns);
}

}  // namespace

std::string name_of_shared_step(const RankRun& run) {
    const int64_t number = run.shared_step_number();
    const bool is_last = std::ranges::all_of(run.ranks, [&](const RankSummary& rank) {
        return rank.num_steps == number && rank.last_whole_step == number;
    });
    if (is_last || number == 0) return "the last step";
    const bool all_have_it = std::ranges::all_of(
        run.ranks, [](const RankSummary& rank) { return rank.last_whole_step > 0; });
    return fmt::format("step {}, the last one that every rank {}recorded completely", number,
                       all_have_it ? "" : "with a complete step ");
}

std::string rank_headline(const RankRun& run) {
    if (run.ranks.size() < 2) return {};
    const auto peak_of = [](const RankSummary& rank) { return rank.peak.allocated_bytes; };
    const RankSummary& largest = run.largest();
    const int64_t least = peak_of(std::ranges::min(run.ranks, {}, peak_of));
    const bool are_alike = static_cast<double>(peak_of(largest) - least) <=
                           kAlike * static_cast<double>(peak_of(largest));
    std::string text =
        are_alike ? fmt::format("All ranks need {}.", format_bytes(peak_of(largest)))
                  : fmt::format("Rank {} needs the most memory, {}: {:.2f} times the median.",
                                largest.rank, format_bytes(peak_of(largest)), run.imbalance());
    return text + about_waits(run) + about_pipeline(run);
}

std::vector<RankColumn> rank_columns() {
    const RankColumn file{.id = "file", .value = &RankSummary::file};
    return join<RankSummary>({{kRank, file}, device_columns(), nccl_columns(), time_columns()});
}

TextTable rank_memory_table(const RankRun& run) {
    const std::vector<RankColumn> at_peak{
        bytes_at_peak("parameters", Category::kParameter),
        bytes_at_peak("gradients", Category::kGradient),
        bytes_at_peak("optimizer", Category::kOptimizerState),
        bytes_at_peak("activations", Category::kActivation),
        bytes_at_peak("held", Category::kHeld),
        {"", "other", Unit::kBytes, "temporaries, workspaces, inputs", other_bytes_at_peak},
        bytes_at_peak("unknown", Category::kUnknown)};
    const RankColumn state{
        .value = [](const RankSummary& rank) { return rank.is_complete ? "" : "incomplete"; }};
    return text_table(
        join<RankSummary>({{kRank}, device_columns(), at_peak, nccl_columns(), {state}}),
        run.ranks);
}

TextTable rank_time_table(const RankRun& run) {
    const auto says_something = [](const RankSummary& rank) { return rank.gpu_time || rank.waits; };
    if (std::ranges::none_of(run.ranks, says_something)) return {};
    std::vector<RankColumn> known{kRank};  // of one rank at least; a CPU has no kernels
    for (const RankColumn& column : time_columns()) {
        const auto has_value = [&](const RankSummary& rank) {
            return column.value(rank).has_value();
        };
        if (std::ranges::any_of(run.ranks, has_value)) known.push_back(column);
    }
    return text_table(known, run.ranks);
}

DataTable ranks_data(const RankRun& run) {
    std::vector<RankColumn> columns = rank_columns();
    std::vector<RankColumn> by_class;
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        by_class.push_back(
            {.id = fmt::format("{}_bytes", kCategoryNames[i]),
             .value = [i](const RankSummary& rank) { return rank.peak.by_category[i]; }});
    }
    const auto place = std::ranges::find(columns, "nccl_bytes", &RankColumn::id);
    columns.insert(place, by_class.begin(), by_class.end());
    return data_table(columns, run.ranks);
}

}  // namespace profiler
