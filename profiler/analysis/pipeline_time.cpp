#include "profiler/analysis/pipeline_time.h"

#include "profiler/analysis/collectives.h"

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
    int64_t key = 0;
    std::vector<std::size_t> awaited;                        // of the same rank, all before it
    std::vector<std::pair<std::size_t, std::size_t>> peers;  // rank, piece
    int64_t gap_ns = 0;
    int64_t start_ns = 0, end_ns = 0;
};

int64_t key_of(Id<Kernel> kernel) { return 2 * int64_t{kernel.value}; }
int64_t key_of(Id<Memcpy> memcpy) { return 2 * int64_t{memcpy.value} + 1; }

template <typename Row, typename Rows>
void add_pieces(const Rows& rows, std::vector<Piece>& pieces) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row row = rows[Id<Row>(i)];
        if (row.end_ns < row.start_ns) continue;
        pieces.push_back({.modelled_start_ns = row.start_ns,
                          .duration_ns = row.end_ns - row.start_ns,
                          .stream = row.stream,
                          .correlation = row.correlation,
                          .key = key_of(Id<Row>(i))});
    }
}

/// What a rank runs, in the order of its times.
class RankPieces {
public:
    explicit RankPieces(const Trace& trace) {
        add_pieces<Kernel>(trace.kernels, pieces_);
        add_pieces<Memcpy>(trace.memcpys, pieces_);
        std::ranges::sort(pieces_, {}, [](const Piece& piece) {
            return std::tuple(piece.modelled_start_ns, piece.modelled_start_ns + piece.duration_ns,
                              piece.correlation);
        });
        for (std::size_t i = 0; i < pieces_.size(); ++i) by_key_[pieces_[i].key] = i;
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
        const auto found = by_key_.find(kernel.valid() ? key_of(kernel) : key_of(memcpy));
        return found != by_key_.end() ? std::optional(found->second) : std::nullopt;
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
    std::unordered_map<int64_t, std::size_t> by_key_;
    int64_t last_step_ns_ = 0;
};

/// By collective: the kernel of a send or receive. Of several that torch batches the first has it.
std::vector<Id<Kernel>> kernels_of_sends(const Trace& trace) {
    std::vector<Id<Kernel>> kernels(trace.collectives.size());
    Id<Kernel> last;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Collective row = trace.collectives[Id<Collective>(i)];
        if (row.kind != CollectiveKind::kSend && row.kind != CollectiveKind::kRecv) continue;
        if (row.kernel.valid()) last = row.kernel;
        kernels[i] = last;
    }
    return kernels;
}

/// Whether there is a send, and each of the last step has both sides.
bool join_peers(std::span<const Trace* const> traces, std::span<const JoinedCollective> joined,
                std::vector<RankPieces>& ranks) {
    std::vector<std::vector<Id<Kernel>>> kernels;
    std::vector<std::vector<bool>> are_in_last;
    for (const Trace* trace : traces) {
        kernels.push_back(kernels_of_sends(*trace));
        are_in_last.push_back(are_in_last_step(*trace));
    }
    const auto piece_of = [&](const JoinedCollective::Part& part) {
        return ranks[part.trace].find(kernels[part.trace][part.collective.index()]);
    };
    bool is_any = false;
    for (const JoinedCollective& one : joined) {
        const auto& first = one.parts.front();
        const auto kind = traces[first.trace]->collectives.get<&Collective::kind>(first.collective);
        if (kind != CollectiveKind::kSend && kind != CollectiveKind::kRecv) continue;
        const auto& second = one.parts.back();
        const auto a = piece_of(first), b = piece_of(second);
        if (one.parts.size() == 2 && a && b) {
            ranks[first.trace].pieces()[*a].peers.emplace_back(second.trace, *b);
            ranks[second.trace].pieces()[*b].peers.emplace_back(first.trace, *a);
            is_any = true;
        } else if (are_in_last[first.trace][first.collective.index()]) {
            return false;
        }
    }
    return is_any;
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
    std::vector<RankPieces> ranks;
    for (const Trace* trace : traces) {
        const bool is_modelled = trace->run().time_basis == TimeBasis::kModelled;
        if (!is_modelled || trace->steps.empty()) return std::nullopt;
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
