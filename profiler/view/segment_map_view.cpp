#include "profiler/view/segment_map_view.h"

#include "profiler/analysis/event_order.h"
#include "profiler/trace/mapped_segments.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace profiler {
namespace {

using State = SegmentPiece::State;

/// A moment in the allocator's order: after the event `last`, at a time of the trace's own clock.
struct AllocatorNow {
    uint32_t rank = 0;         // changes of memory that have happened
    int64_t last = -1;         // the event of the last one of them
    int64_t next = INT64_MAX;  // the event of the first one that has not
    int64_t own_ns = 0;
};

int64_t event_of(const BlockSource& source, uint32_t rank) {
    const auto change = source.history->change(rank);
    const Id<Allocation> id = source.history->allocation(change.block);
    return change.is_free ? source.trace->allocations.get<&Allocation::free_requested_event>(id)
                          : source.trace->allocations.get<&Allocation::alloc_event>(id);
}

AllocatorNow find_now(const SegmentMapRequest& request, const BlockSource& source) {
    static const TimeMap same;
    const bool is_own = request.shown == 0 || !request.time.alignment;
    const TimeMap& map = is_own ? same : request.time.alignment->second;
    AllocatorNow now;
    now.own_ns = std::llround(std::clamp(map.to_own(request.moment_ns), -0x1p62, 0x1p62));
    now.rank = source.history->highest_rank_at(now.own_ns);
    if (now.rank > 0) now.last = event_of(source, now.rank - 1);
    if (now.rank < source.history->change_count()) now.next = event_of(source, now.rank);
    return now;
}

/// The segments that the allocator holds. Segment events between two changes of memory count by
/// their times.
MappedSegments segments_at(const Trace& trace, const AllocatorNow& now) {
    const Id<Device> profiled = profiled_device(trace);
    std::vector<std::pair<int64_t, Id<AllocatorEvent>>> events;
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        const Id<AllocatorEvent> id(i);
        const AllocatorEvent event = trace.allocator_events[id];
        if (segment_bytes_of(event) == 0 || !is_on(profiled, event.device)) continue;
        if (event.size_bytes < 0 || event.address > INT64_MAX - event.size_bytes) continue;
        const bool before = event.event <= now.last || event.time_ns <= now.own_ns;
        if (event.event < now.next && before) events.emplace_back(event.event, id);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    MappedSegments segments;
    for (const auto& [number, id] : events) {
        const AllocatorEvent event = trace.allocator_events[id];
        if (segment_bytes_of(event) > 0) {
            segments.add(event.address, event.size_bytes, id);
        } else {
            segments.remove(event.address, event.size_bytes);
        }
    }
    return segments;
}

std::string kind_of(const AllocatorEvent& event) {
    if (event.pool > 0) return fmt::format("private pool {}", event.pool);
    return event.action == AllocatorAction::kSegmentMap ? "expandable" : "";
}

/// Pages of an expandable segment that touch are one row.
std::vector<SegmentRow> rows_of(const Trace& trace, const MappedSegments& segments) {
    std::vector<SegmentRow> rows;
    Id<AllocatorEvent> before;
    segments.for_each([&](int64_t address, int64_t size_bytes, Id<AllocatorEvent> id) {
        const AllocatorEvent event = trace.allocator_events[id];
        const bool grows =
            before.valid() && event.action == AllocatorAction::kSegmentMap &&
            trace.allocator_events.get<&AllocatorEvent::action>(before) ==
                AllocatorAction::kSegmentMap &&
            trace.allocator_events.get<&AllocatorEvent::stream>(before) == event.stream &&
            trace.allocator_events.get<&AllocatorEvent::pool>(before) == event.pool;
        before = id;
        if (grows && rows.back().address + rows.back().size_bytes == address) {
            rows.back().size_bytes += size_bytes;
        } else {
            rows.push_back(
                {.address = address, .size_bytes = size_bytes, .kind_text = kind_of(event)});
        }
    });
    return rows;
}

struct PlacedBlock {
    int64_t address = 0;
    int64_t size_bytes = 0;
    State state = State::kUsed;
    Id<Allocation> allocation;
};

std::vector<PlacedBlock> blocks_at(const BlockSource& source, const AllocatorNow& now) {
    const Trace& trace = *source.trace;
    std::vector<PlacedBlock> placed;
    const std::size_t count = source.history->allocated_before(now.rank);
    for (std::size_t block = 0; block < count; ++block) {
        const Id<Allocation> id = source.history->allocation(block);
        const bool live = source.history->is_live(block, now.rank);
        const int64_t completed = trace.allocations.get<&Allocation::free_completed_event>(id);
        if (!live && completed >= 0 && completed <= now.last) continue;
        if (!live && completed < 0) continue;  // not known: a free that is not followed up
        const int64_t size_bytes = trace.allocations.get<&Allocation::block_bytes>(id);
        const int64_t address = trace.allocations.get<&Allocation::address>(id);
        if (size_bytes <= 0 || address > INT64_MAX - size_bytes) continue;
        placed.push_back({address, size_bytes, live ? State::kUsed : State::kPending, id});
    }
    std::sort(placed.begin(), placed.end(), [](const PlacedBlock& a, const PlacedBlock& b) {
        return a.address != b.address ? a.address < b.address : a.allocation < b.allocation;
    });
    return placed;
}

/// Adds pieces to a row from left to right; merges those that are narrower than `least_bytes`.
class PieceWriter {
public:
    PieceWriter(SegmentRow& row, int64_t least_bytes) : row_(row), least_bytes_(least_bytes) {}

    void add(const SegmentPiece& piece) {
        if (piece.size_bytes <= 0) return;
        ++count_;
        row_.split = count_ > 1;
        if (piece.state == State::kFree) {
            row_.free_bytes += piece.size_bytes;
            ++row_.free_count;
            row_.largest_free_bytes = std::max(row_.largest_free_bytes, piece.size_bytes);
        }
        const bool narrow = piece.size_bytes < least_bytes_;
        if (narrow && narrow_before_) return merge(piece);
        row_.pieces.push_back(piece);
        narrow_before_ = narrow;
    }

private:
    void merge(const SegmentPiece& piece) {
        SegmentPiece& into = row_.pieces.back();
        if (into.state != State::kMixed) {
            into.free_bytes = into.state == State::kFree ? into.size_bytes : 0;
            into.state = State::kMixed;
            into.allocation = {};
        }
        if (piece.state == State::kFree) into.free_bytes += piece.size_bytes;
        into.size_bytes += piece.size_bytes;
        ++into.count;
        // A merged piece that is wide enough is done, so that a row shows where it is dense.
        narrow_before_ = into.size_bytes < least_bytes_;
    }

    SegmentRow& row_;
    const int64_t least_bytes_;
    int64_t count_ = 0;
    bool narrow_before_ = false;
};

/// Blocks of a damaged file may overlap; then the later one begins where the earlier one ends.
void add_pieces(const Trace& trace, const std::vector<PlacedBlock>& blocks, int64_t least_bytes,
                SegmentRow& row) {
    PieceWriter writer(row, least_bytes);
    const int64_t row_end = row.address + row.size_bytes;
    auto block =
        std::lower_bound(blocks.begin(), blocks.end(), row.address,
                         [](const PlacedBlock& b, int64_t address) { return b.address < address; });
    int64_t at = row.address;
    for (; block != blocks.end() && block->address < row_end; ++block) {
        const int64_t start = std::max(at, block->address);
        const int64_t end = std::min(row_end, block->address + block->size_bytes);
        if (end <= start) continue;
        writer.add({.start_bytes = at - row.address, .size_bytes = start - at});
        writer.add({.start_bytes = start - row.address,
                    .size_bytes = end - start,
                    .state = block->state,
                    .category = category_of_block(trace, block->allocation),
                    .allocation = block->allocation});
        at = end;
    }
    writer.add({.start_bytes = at - row.address, .size_bytes = row_end - at});
}

void add_texts(SegmentRow& row) {
    row.address_text = fmt::format("0x{:x}", static_cast<uint64_t>(row.address));
    row.size_text = format_bytes(row.size_bytes);
    if (row.free_bytes == 0) return;
    row.free_text = format_bytes(row.free_bytes);
    if (row.free_count > 1) row.free_text += fmt::format(" in {}", format_count(row.free_count));
}

std::string summarize(const SegmentMapView& view, int64_t free_count) {
    if (view.rows.empty()) return "The allocator holds no segments at this moment.";
    if (view.free_bytes == 0) {
        return fmt::format("All of {} is used: a request needs a new segment.",
                           format_bytes(view.reserved_bytes));
    }
    const std::string free = fmt::format("{} of {} is free", format_bytes(view.free_bytes),
                                         format_bytes(view.reserved_bytes));
    if (free_count == 1) return free + ", in one piece.";
    const double lost =
        1 - static_cast<double>(view.largest_free_bytes) / static_cast<double>(view.free_bytes);
    return fmt::format(
        "{}, in {} pieces; the largest has {}, so {} of the free memory cannot serve one large "
        "request.",
        free, format_count(free_count), format_bytes(view.largest_free_bytes),
        format_percent(lost));
}

}  // namespace

SegmentMapView build_segment_map_view(const SegmentMapRequest& request) {
    SegmentMapView view;
    if (request.shown >= request.sources.size()) return view;
    const BlockSource& source = request.sources[request.shown];
    const Trace& trace = *source.trace;
    for (std::size_t i = 0; i < trace.allocator_events.size() && !view.has_segments; ++i) {
        view.has_segments = segment_bytes_of(trace.allocator_events[Id<AllocatorEvent>(i)]) != 0;
    }
    if (!view.has_segments) return view;
    const AllocatorNow now = find_now(request, source);
    view.rows = rows_of(trace, segments_at(trace, now));
    for (const SegmentRow& row : view.rows) {
        view.reserved_bytes += row.size_bytes;
        view.largest_segment_bytes = std::max(view.largest_segment_bytes, row.size_bytes);
    }
    const int64_t least_bytes = view.largest_segment_bytes / std::max(1, request.width_px);
    const std::vector<PlacedBlock> blocks = blocks_at(source, now);
    int64_t free_count = 0;
    for (SegmentRow& row : view.rows) {
        add_pieces(trace, blocks, least_bytes, row);
        add_texts(row);
        view.free_bytes += row.free_bytes;
        view.largest_free_bytes = std::max(view.largest_free_bytes, row.largest_free_bytes);
        free_count += row.free_count;
    }
    view.summary = summarize(view, free_count);
    if (view.rows.size() > SegmentMapView::kMostRows) view.rows.resize(SegmentMapView::kMostRows);
    return view;
}

}  // namespace profiler
