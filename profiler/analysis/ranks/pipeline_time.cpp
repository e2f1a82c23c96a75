#include "profiler/analysis/ranks/pipeline_time.h"

#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/collective_rows.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

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
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row row = rows[Id<Row>(i)];
        if (row.end_ns < row.start_ns) continue;
        pieces.push_back({.modelled_start_ns = row.start_ns,
                          .duration_ns = row.end_ns - row.start_ns,
                          .stream = row.stream,
                          .correlation = row.correlation});
        pieces.back().*Member = Id<Row>(i);
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
        for (std::size_t i = 0; i < trace.stream_waits.size(); ++i) {
            const StreamWait row = trace.stream_waits[Id<StreamWait>(i)];
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

/// Makes the kernels of a send and its receive, and those of a collective that waits for all of its
/// ranks, peers of each other. False: a send of the last step has no other side.
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

}  // namespace profiler
