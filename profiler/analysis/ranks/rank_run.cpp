#include "profiler/analysis/ranks/rank_run.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step/throughput.h"
#include "profiler/trace/collective_rows.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// A kernel or a copy.
struct Piece {
    int64_t modelled_start_ns = 0, duration_ns = 0;  // of the rank alone
    Id<Stream> stream;
    int64_t correlation = 0;  // in the order of the launches
    Id<Kernel> kernel;        // or else
    Id<Memcpy> memcpy;
    std::vector<std::size_t> awaited;                        // of the same rank, all before it
    std::vector<std::pair<std::size_t, std::size_t>> peers;  // rank, piece
    int64_t gap_ns = 0;
    int64_t start_ns = 0, end_ns = 0;
};

template <auto Member, typename Row, typename Rows>
void add_pieces(const Rows& rows, std::vector<Piece>& pieces) {
    for (const Id<Row> id : rows.ids()) {
        const Row row = rows[id];
        if (row.end_ns < row.start_ns) continue;
        pieces.push_back({.modelled_start_ns = row.start_ns,
                          .duration_ns = row.end_ns - row.start_ns,
                          .stream = row.stream,
                          .correlation = row.correlation});
        pieces.back().*Member = id;
    }
}

/// What a rank runs, in the order of its times.
class RankPieces {
public:
    explicit RankPieces(const Trace& trace) {
        add_pieces<&Piece::kernel, Kernel>(trace.kernels, pieces_);
        add_pieces<&Piece::memcpy, Memcpy>(trace.memcpys, pieces_);
        std::ranges::sort(pieces_, {}, [](const Piece& piece) {
            return std::tuple(piece.modelled_start_ns, piece.modelled_start_ns + piece.duration_ns,
                              piece.correlation);
        });
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            const Piece& piece = pieces_[i];
            piece.kernel.valid() ? of_kernel_[piece.kernel.value] = i
                                 : of_memcpy_[piece.memcpy.value] = i;
        }
        await_the_last_of_each_stream();
        for (const StreamWait row : trace.stream_waits.rows()) {
            const auto one = find(row.kernel, row.memcpy);
            const auto awaited = find(row.awaited_kernel, row.awaited_memcpy);
            if (one && awaited && *awaited < *one) pieces_[*one].awaited.push_back(*awaited);
        }
        measure_gaps(trace.steps.get<&Step::start_ns>(Id<Step>(0)));
        last_step_ns_ = trace.steps.column<&Step::start_ns>().back();
    }

    std::vector<Piece>& pieces() { return pieces_; }
    std::optional<std::size_t> find(Id<Kernel> kernel, Id<Memcpy> memcpy = {}) const {
        const auto& places = kernel.valid() ? of_kernel_ : of_memcpy_;
        const auto found = places.find(kernel.valid() ? kernel.value : memcpy.value);
        return found != places.end() ? std::optional(found->second) : std::nullopt;
    }

    int64_t end_before_last_step_ns() const { return latest_end_ns(false); }
    int64_t end_of_last_step_ns() const { return latest_end_ns(true); }

private:
    void await_the_last_of_each_stream() {
        std::unordered_map<int32_t, std::size_t> last;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            const auto [before, is_first] = last.try_emplace(pieces_[i].stream.value, i);
            if (!is_first) pieces_[i].awaited.push_back(std::exchange(before->second, i));
        }
    }

    void measure_gaps(int64_t first_step_ns) {
        for (Piece& piece : pieces_) {
            int64_t ready_ns = first_step_ns;
            for (const std::size_t i : piece.awaited) {
                const Piece& before = pieces_[i];
                ready_ns = std::max(ready_ns, before.modelled_start_ns + before.duration_ns);
            }
            piece.gap_ns = std::max<int64_t>(piece.modelled_start_ns - ready_ns, 0);
        }
    }

    int64_t latest_end_ns(bool of_last_step) const {
        int64_t end_ns = 0;
        for (const Piece& piece : pieces_) {
            if ((piece.modelled_start_ns >= last_step_ns_) != of_last_step) continue;
            end_ns = std::max(end_ns, piece.end_ns);
        }
        return end_ns;
    }

    std::vector<Piece> pieces_;
    std::unordered_map<int32_t, std::size_t> of_kernel_, of_memcpy_;
    int64_t last_step_ns_ = 0;
};

bool is_send(std::span<const Trace* const> traces, const JoinedCollective& joined) {
    const auto& part = joined.parts.front();
    const auto kind = traces[part.trace]->collectives.get<&Collective::kind>(part.collective);
    return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

bool waits_for_all(std::span<const Trace* const> traces, const JoinedCollective& joined) {
    const auto& part = joined.parts.front();
    return waits_for_all(traces[part.trace]->collectives.get<&Collective::kind>(part.collective));
}

/// Fills Piece::peers: the kernels of a send and its receive are peers of each other, and so are
/// those of a collective that waits for all of its ranks. False: a send of the last step has no
/// other side.
bool join_peers(std::span<const Trace* const> traces, std::span<const JoinedCollective> joined,
                std::vector<RankPieces>& ranks) {
    std::vector<std::vector<Id<Kernel>>> kernels;
    std::vector<std::vector<bool>> are_in_last;
    for (const Trace* trace : traces) {
        kernels.push_back(kernels_of_collectives(*trace));
        are_in_last.push_back(are_in(*trace, last_whole_step(*trace)));
    }
    for (const JoinedCollective& one : joined) {
        if (!is_send(traces, one) && !waits_for_all(traces, one)) continue;
        std::vector<std::pair<std::size_t, std::size_t>> peers;
        for (const auto& [trace, collective] : one.parts) {
            const auto piece = ranks[trace].find(kernels[trace][collective.index()]);
            if (piece) peers.emplace_back(trace, *piece);
        }
        const auto& first = one.parts.front();
        const bool is_alone = is_send(traces, one) && peers.size() != 2;
        if (is_alone && are_in_last[first.trace][first.collective.index()]) return false;
        if (is_alone) continue;
        for (const auto& own : peers) {
            for (const auto& other : peers) {
                if (own == other) continue;
                ranks[own.first].pieces()[own.second].peers.push_back(other);
            }
        }
    }
    return true;
}

/// A round: whether it moved anything.
bool move(std::vector<RankPieces>& ranks) {
    bool has_moved = false;
    for (RankPieces& rank : ranks) {
        for (Piece& piece : rank.pieces()) {
            int64_t start_ns = 0;
            for (const std::size_t i : piece.awaited) {
                start_ns = std::max(start_ns, rank.pieces()[i].end_ns);
            }
            start_ns += piece.gap_ns;
            int64_t together_ns = start_ns;
            for (const auto& [other, i] : piece.peers) {
                together_ns = std::max(together_ns, ranks[other].pieces()[i].start_ns);
            }
            const int64_t end_ns = together_ns + piece.duration_ns;
            has_moved |= start_ns != piece.start_ns || end_ns != piece.end_ns;
            piece.start_ns = start_ns;
            piece.end_ns = end_ns;
        }
    }
    return has_moved;
}

}  // namespace

std::optional<int64_t> pipeline_step_ns(std::span<const Trace* const> traces,
                                        std::span<const JoinedCollective> joined) {
    const bool is_pipeline = std::ranges::any_of(
        joined, [&](const JoinedCollective& one) { return is_send(traces, one); });
    if (!is_pipeline) return std::nullopt;
    std::vector<RankPieces> ranks;
    for (const Trace* trace : traces) {
        const Run& run = trace->run();
        const bool is_whole = run.state == RunState::kComplete && !trace->steps.empty() &&
                              trace->steps.size() == traces.front()->steps.size();
        if (run.time_basis != TimeBasis::kModelled || !is_whole) return std::nullopt;
        ranks.emplace_back(*trace);
    }
    if (!join_peers(traces, joined, ranks)) return std::nullopt;
    // A rank learns something new at most once for each send. Sends that wait for each other in a
    // circle would never end, as they would not on a GPU.
    for (std::size_t rounds = 0; move(ranks); ++rounds) {
        if (rounds > joined.size() + 1) return std::nullopt;
    }
    int64_t before_ns = 0, end_ns = 0;
    for (const RankPieces& rank : ranks) {
        before_ns = std::max(before_ns, rank.end_before_last_step_ns());
        end_ns = std::max(end_ns, rank.end_of_last_step_ns());
    }
    return end_ns - before_ns;
}

namespace {

/// The kernels that start in the step, before the next step starts. A trace without steps counts as
/// one step; without a whole step there are no kernels. Traces of version 1 show collectives in no
/// other way.
int64_t count_kernels_of_nccl(const Trace& trace, Id<Step> step) {
    if (!step.valid() && !trace.steps.empty()) return 0;
    const auto starts_ns = trace.steps.column<&Step::start_ns>();
    const int64_t start_ns = step.valid() ? starts_ns[step.index()] : INT64_MIN;
    const bool is_last = !step.valid() || step.index() + 1 == starts_ns.size();
    const int64_t next_ns = is_last ? INT64_MAX : starts_ns[step.index() + 1];
    int64_t count = 0;
    for (const Kernel kernel : trace.kernels.rows()) {
        const bool is_nccl = is_nccl_kernel(trace.text(kernel.name));
        count += is_nccl && kernel.start_ns >= start_ns && kernel.start_ns < next_ns ? 1 : 0;
    }
    return count;
}

int64_t rank_of(const NamedTrace& named) { return named.trace->run().rank; }

RankSummary summarize(const NamedTrace& named, Id<Step> step) {
    const Trace& trace = *named.trace;
    const Run& run = trace.run();
    const Id<Device> device = profiled_device(trace);
    RankSummary rank{
        .rank = run.rank,
        .file = named.file,
        .device = device.valid() ? std::string(trace.text(trace.devices.get<&Device::name>(device)))
                                 : std::string(),
        .peak = named.report ? named.report->peak : find_peak(trace),
        .nccl_bytes = nccl_bytes_of(trace),
        .num_steps = static_cast<int64_t>(trace.steps.size()),
        .gpu_time = gpu_time_of(trace, step),
        .is_complete = run.state == RunState::kComplete};
    if (rank.gpu_time) {
        rank.step_ns = rank.gpu_time->step_ns;
    } else if (step.valid()) {
        const Step row = trace.steps[step];
        rank.step_ns = std::max<int64_t>(row.end_ns - row.start_ns, 0);
    }
    for (const CollectiveTotal& total : collectives_of(trace, step)) {
        rank.num_collectives += total.count;
        rank.collective_bytes += total.size_bytes;
    }
    if (trace.collectives.empty()) rank.num_collectives = count_kernels_of_nccl(trace, step);
    return rank;
}

/// Modelled alone, the rank's step ends before that of the pipeline does.
void wait_for_other_stages(RankSummary& rank, int64_t pipeline_step_ns) {
    rank.step_ns = pipeline_step_ns;
    if (!rank.gpu_time) return;
    const int64_t longer_ns = pipeline_step_ns - rank.gpu_time->step_ns;
    rank.gpu_time->idle_ns = std::max<int64_t>(rank.gpu_time->idle_ns + longer_ns, 0);
    rank.gpu_time->step_ns = pipeline_step_ns;
}

models::Result<void> check_is_of_rank(const NamedTrace& named) {
    if (has_note(*named.trace, kAllocationsOnly)) {
        return models::fail(
            "{} is a memory snapshot, which does not say its rank: name it alone, or join it "
            "with the profiler's trace of the run (temposcope import).",
            named.file);
    }
    if (is_joined_ranks(*named.trace)) {
        return models::fail(
            "{} holds several ranks already (temposcope import joined them): name it alone.",
            named.file);
    }
    return {};
}

/// The wall clocks of two nodes may differ by it.
constexpr int64_t kClockSkew_ns = 5'000'000'000;

/// When a `temposcope run` recorded, on the wall clock.
struct RunTime {
    int64_t start_ns = std::numeric_limits<int64_t>::max();
    int64_t end_ns = std::numeric_limits<int64_t>::min();
    std::string_view file;  // one of its ranks
};

std::vector<RunTime> times_of_runs(std::span<const NamedTrace> traces) {
    std::map<std::string, RunTime> by_id;
    for (const NamedTrace& named : traces) {
        const Trace& trace = *named.trace;
        const std::string id = run_id_of(trace);
        // Modelled steps do not say how long the program ran.
        if (id.empty() || trace.run().time_basis != TimeBasis::kMeasured) continue;
        const int64_t start_ns = trace.run().start_unix_ns;
        const int64_t last_ns =
            trace.steps.empty() ? 0 : trace.steps.column<&Step::end_ns>().back();
        RunTime& time = by_id[id];
        time.start_ns = std::min(time.start_ns, start_ns);
        time.end_ns = std::max(time.end_ns, start_ns + std::max<int64_t>(last_ns, 0));
        time.file = named.file;
    }
    std::vector<RunTime> times;
    for (const auto& [id, time] : by_id) times.push_back(time);
    std::ranges::sort(times, {}, &RunTime::start_ns);
    return times;
}

models::Result<void> check_are_of_one_run(std::span<const NamedTrace> traces) {
    const NamedTrace& first = traces.front();
    for (const NamedTrace& named : traces) {
        const int64_t world_size = named.trace->run().world_size;
        if (world_size == first.trace->run().world_size) continue;
        return models::fail(
            "{} is of a run of {} ranks and {} of one of {}: give the traces of one run.",
            first.file, first.trace->run().world_size, named.file, world_size);
    }
    const std::vector<RunTime> times = times_of_runs(traces);
    const RunTime* last = nullptr;  // to end, of those before
    for (const RunTime& time : times) {
        const int64_t between_ns = last != nullptr ? time.start_ns - last->end_ns : 0;
        if (between_ns > kClockSkew_ns) {
            return models::fail(
                "{} is of a run that began {} after the run of {} had ended: give the traces of "
                "one "
                "run.",
                time.file, format_duration(between_ns), last->file);
        }
        if (last == nullptr || time.end_ns > last->end_ns) last = &time;
    }
    const NamedTrace* launched = nullptr;
    for (const NamedTrace& named : traces) {
        const std::string id = launch_id_of(*named.trace);
        if (id.empty()) continue;
        if (launched == nullptr) launched = &named;
        if (id == launch_id_of(*launched->trace)) continue;
        return models::fail(
            "{} and {} are of two launches: give the traces of one, and each "
            "launch a folder of its own.",
            launched->file, named.file);
    }
    return {};
}

}  // namespace

int64_t nccl_bytes_of(const Trace& trace) {
    double largest = 0;
    for (std::size_t i = 0; i < trace.counters.size(); ++i) {
        const Counter reading = trace.counters[Id<Counter>(static_cast<int32_t>(i))];
        if (trace.text(reading.name) == "nccl_bytes") largest = std::max(largest, reading.value);
    }
    return static_cast<int64_t>(largest);
}

const RankSummary& RankRun::largest() const {
    return *std::ranges::max_element(
        ranks, {}, [](const RankSummary& rank) { return rank.peak.allocated_bytes; });
}

double RankRun::imbalance() const {
    return median_bytes > 0 ? static_cast<double>(largest().peak.allocated_bytes) /
                                  static_cast<double>(median_bytes)
                            : 1;
}

models::Result<RankRun> summarize_ranks(std::span<const NamedTrace> traces) {
    if (traces.empty()) return models::fail("There is no trace of a rank.");
    RankRun run{.world_size = traces.front().trace->run().world_size};
    for (const NamedTrace& named : traces) {
        if (const auto ok = check_is_of_rank(named); !ok) return tl::unexpected(ok.error());
    }
    if (const auto ok = check_are_of_one_run(traces); !ok) return tl::unexpected(ok.error());
    std::vector<NamedTrace> in_order(traces.begin(), traces.end());
    std::ranges::sort(in_order, {}, rank_of);
    const auto twice = std::ranges::adjacent_find(in_order, {}, rank_of);
    if (twice != in_order.end()) {
        return models::fail("{} and {} are both rank {}: give the traces of one run.", twice->file,
                            std::next(twice)->file, rank_of(*twice));
    }
    run.step = describe_run(*in_order.front().trace);
    std::vector<const Trace*> of_ranks;
    for (const NamedTrace& named : in_order) of_ranks.push_back(named.trace.get());
    run.shared_step = last_shared_step(of_ranks);
    std::vector<Id<Step>> steps;  // of each rank the shared one, if it has one whole
    std::vector<int64_t> peaks;
    for (const NamedTrace& named : in_order) {
        const Id<Step> last = last_whole_step(*named.trace);
        steps.push_back(last.valid() ? run.shared_step : Id<Step>());
        run.ranks.push_back(summarize(named, steps.back()));
        if (last.valid()) {
            run.ranks.back().last_whole_step = static_cast<int64_t>(last.index()) + 1;
        }
        peaks.push_back(run.ranks.back().peak.allocated_bytes);
    }
    run.median_bytes = median(std::move(peaks));
    run.joined = join_collectives(of_ranks);
    run.clocks = compare_clocks(of_ranks, run.joined);
    const auto waits = waits_in(steps, of_ranks, run.joined, run.clocks);
    for (std::size_t i = 0; i < waits.size(); ++i) run.ranks[i].waits = waits[i];
    run.pipeline_step_ns = pipeline_step_ns(of_ranks, run.joined);
    if (run.pipeline_step_ns) {
        for (RankSummary& rank : run.ranks) wait_for_other_stages(rank, *run.pipeline_step_ns);
    }
    return run;
}

}  // namespace profiler
