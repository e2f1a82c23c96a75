#include "profiler/view/allocator/segment_map_view.h"

#include "profiler/allocator/sizes.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace profiler {
namespace {

/// The profiler of PyTorch gives the segments' sum, but no addresses (-1): no segment to show.
bool is_sound(const AllocatorEvent& event) {
    return event.size_bytes >= 0 && event.address >= 0 &&
           event.address <= INT64_MAX - event.size_bytes;
}

/// The number of the change `rank` in the allocator's order.
int64_t event_of(const StepIndex& source, uint32_t rank) {
    const auto change = source.blocks().change(rank);
    const Id<Allocation> id = source.blocks().allocation(change.block);
    return change.is_free ? source.trace().allocations.get<&Allocation::free_requested_event>(id)
                          : source.trace().allocations.get<&Allocation::alloc_event>(id);
}

std::vector<AllocatorEvent> recorded_events(const Trace& trace) {
    std::vector<AllocatorEvent> events = ordered_segment_events(trace);
    std::erase_if(events, [](const AllocatorEvent& event) { return !is_sound(event); });
    return events;
}

}  // namespace

SegmentReader::SegmentReader(const StepIndex& source, const SegmentLayout* layout)
    : source_(source),
      layout_(layout),
      events_(layout != nullptr ? layout->events : recorded_events(source.trace())) {}

AllocatorNow SegmentReader::at_rank(uint32_t rank) const {
    AllocatorNow now{.rank = rank};
    const BlockHistory& history = source_.blocks();
    if (rank > 0) {
        now.last = event_of(source_, rank - 1);
        now.own_ns = history.time_ns(rank - 1);
    }
    if (rank < history.change_count()) now.next = event_of(source_, rank);
    return now;
}

AllocatorNow SegmentReader::at_time(int64_t own_ns) const {
    AllocatorNow now = at_rank(source_.blocks().highest_rank_at(own_ns));
    now.own_ns = own_ns;
    if (layout_ == nullptr || !layout_->failed.valid()) return now;
    const uint32_t failed = source_.blocks().block_of(layout_->failed);
    if (failed == BlockHistory::kNone || now.rank <= source_.blocks().alloc_rank(failed)) {
        return now;
    }
    now = before_block(failed);
    now.is_earlier = true;
    return now;
}

AllocatorNow SegmentReader::before_block(uint32_t block) const {
    return at_rank(source_.blocks().alloc_rank(block));
}

std::size_t SegmentReader::events_until(const AllocatorNow& now) const {
    const auto happened = [&](const AllocatorEvent& event) {
        const bool before = event.event <= now.last || event.time_ns <= now.own_ns;
        return event.event < now.next && before;
    };
    return static_cast<std::size_t>(std::ranges::partition_point(events_, happened) -
                                    events_.begin());
}

MappedSegments SegmentReader::segments_after(std::size_t count) const {
    MappedSegments segments;
    for (std::size_t i = 0; i < std::min(count, events_.size()); ++i) {
        const AllocatorEvent& event = events_[i];
        if (segment_bytes_of(event) > 0) {
            segments.add(event.address, event.size_bytes, Id<AllocatorEvent>(i));
        } else {
            segments.remove(event.address, event.size_bytes);
        }
    }
    return segments;
}

BlockPlace SegmentReader::place_of(Id<Allocation> id) const {
    if (layout_ == nullptr) {
        return {source_.trace().allocations.get<&Allocation::address>(id),
                source_.trace().allocations.get<&Allocation::block_bytes>(id)};
    }
    return id.index() < layout_->blocks.size() ? layout_->blocks[id.index()] : BlockPlace{};
}

std::vector<PlacedBlock> SegmentReader::blocks_at(const AllocatorNow& now) const {
    const Trace& trace = source_.trace();
    std::vector<PlacedBlock> placed;
    const std::size_t count = source_.blocks().allocated_before(now.rank);
    for (std::size_t block = 0; block < count; ++block) {
        const Id<Allocation> id = source_.blocks().allocation(block);
        const bool live = source_.blocks().is_live(block, now.rank);
        const int64_t completed = trace.allocations.get<&Allocation::free_completed_event>(id);
        if (!live && completed >= 0 && completed <= now.last) continue;
        if (!live && completed < 0) continue;  // not known: a free that is not followed up
        const BlockPlace place = place_of(id);
        if (place.size_bytes <= 0 || place.address > INT64_MAX - place.size_bytes) continue;
        if (is_replayed() && place.address < 0) continue;
        placed.push_back({place.address, place.size_bytes, !live, id});
    }
    std::ranges::sort(placed, [](const PlacedBlock& a, const PlacedBlock& b) {
        return a.address != b.address ? a.address < b.address : a.allocation < b.allocation;
    });
    return placed;
}

uint32_t SegmentReader::first_block_from(int64_t event) const {
    const BlockHistory& history = source_.blocks();
    const auto alloc_event = [&](std::size_t block) {
        return source_.trace().allocations.get<&Allocation::alloc_event>(history.allocation(block));
    };
    std::size_t low = 0, high = history.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (alloc_event(middle) < event) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < history.size() ? static_cast<uint32_t>(low) : BlockHistory::kNone;
}

namespace {

/// A segment of the small pool has exactly this size; those of the large pool are larger.
bool is_small(const AllocatorEvent& event) { return event.size_bytes <= kSmallSegmentBytes; }

/// Blocks only go to requests of their own stream, pool and half of the pool.
bool same_pool(const AllocatorEvent& a, const AllocatorEvent& b) {
    return a.stream == b.stream && a.pool == b.pool && is_small(a) == is_small(b);
}

struct FreePieces {
    int64_t bytes = 0;
    int64_t count = 0;
    int64_t largest_bytes = 0;

    void add(int64_t piece_bytes) {
        if (piece_bytes <= 0) return;
        bytes += piece_bytes;
        ++count;
        largest_bytes = std::max(largest_bytes, piece_bytes);
    }
};

/// What is free between the blocks of the segments that `wanted` could have been served from.
FreePieces free_pieces(const SegmentReader& reader, std::size_t events,
                       const std::vector<PlacedBlock>& blocks, const AllocatorEvent& wanted) {
    FreePieces free;
    int64_t open_from = 0, open_to = 0;  // pages that touch are one range
    auto block = blocks.begin();
    const auto close = [&] {
        int64_t at = open_from;
        while (block != blocks.end() && block->address < open_from) ++block;
        for (; block != blocks.end() && block->address < open_to; ++block) {
            free.add(block->address - at);
            at = std::max(at, block->address + block->size_bytes);
        }
        free.add(open_to - at);
    };
    reader.segments_after(events).for_each(
        [&](int64_t address, int64_t size_bytes, Id<AllocatorEvent> id) {
            const AllocatorEvent& event = reader.event(id);
            if (!same_pool(event, wanted)) return;
            const bool grows = address == open_to && event.action == AllocatorAction::kSegmentMap;
            if (!grows) {
                close();
                open_from = address;
            }
            open_to = address + size_bytes;
        });
    close();
    return free;
}

std::string sentence(const FreePieces& free, const AllocatorEvent& segment, int64_t block_bytes,
                     const std::string& request) {
    const std::string pool = is_small(segment) ? "small" : "large";
    const bool is_nameless = request.starts_with("a request");
    const std::string asked = fmt::format("{} asked for {}", is_nameless ? "A request" : request,
                                          format_bytes(block_bytes));
    if (free.count == 0) return fmt::format("{}; nothing was free for {} blocks.", asked, pool);
    const std::string pieces =
        free.count == 1
            ? fmt::format("{} was free for {} blocks, in one piece", format_bytes(free.bytes), pool)
            : fmt::format("{} was free for {} blocks, but in {} pieces", format_bytes(free.bytes),
                          pool, format_count(free.count));
    const std::string largest =
        free.count == 1 ? std::string()
                        : fmt::format("; the largest had {}", format_bytes(free.largest_bytes));
    if (free.largest_bytes < block_bytes) return fmt::format("{}; {}{}.", asked, pieces, largest);
    return fmt::format("{}; {}{}, which the allocator keeps for other requests.", asked, pieces,
                       largest);
}

}  // namespace

std::string name_of_request(const StepIndex& source, Id<Allocation> allocation) {
    const Trace& trace = source.trace();
    const auto storage = trace.allocations.get<&Allocation::storage>(allocation);
    const BlockOrigin origin = origin_of(trace, source.storage_names(), storage, allocation);
    std::string name = name_of_block(source, allocation);
    if (name == "block") name = "a request";
    if (origin.maker.valid()) name = name_of_call(trace, origin.maker);
    if (!origin.module_path.empty()) name += fmt::format(" in {}", origin.module_path);
    return name;
}

SegmentCause cause_of_segment(const SegmentReader& reader, std::size_t event) {
    SegmentCause cause;
    if (event >= reader.events().size()) return cause;
    const AllocatorEvent& segment = reader.events()[event];
    if (!reader.is_replayed() && segment.event < num_start_events(reader.source().trace())) {
        cause.text = "It was there when the recording began.";
        return cause;
    }
    const uint32_t block = reader.first_block_from(segment.event);
    cause.text = "The recording does not say which request it serves.";
    if (block == BlockHistory::kNone) return cause;
    const Id<Allocation> request = reader.source().blocks().allocation(block);
    const BlockPlace place = reader.place_of(request);
    const bool is_inside = place.address < segment.address + segment.size_bytes &&
                           place.address > segment.address - place.size_bytes;
    if (place.size_bytes <= 0 || !is_inside) return cause;
    const std::vector<PlacedBlock> blocks = reader.blocks_at(reader.before_block(block));
    const FreePieces free = free_pieces(reader, event, blocks, segment);
    cause.request = request;
    cause.text =
        sentence(free, segment, place.size_bytes, name_of_request(reader.source(), request));
    return cause;
}

namespace {

using State = SegmentPiece::State;

int64_t own_time(const SegmentMapRequest& request) {
    const TimeMap& map = map_of(request.alignment, request.shown);
    return to_clock(map.to_own(request.moment_ns));
}

std::string kind_of(const AllocatorEvent& event) {
    if (event.pool > 0) return fmt::format("private pool {}", event.pool);
    return event.action == AllocatorAction::kSegmentMap ? "expandable" : "";
}

/// Pages of an expandable segment that touch are one row.
std::vector<SegmentRow> rows_of(const SegmentReader& reader, std::size_t num_events) {
    std::vector<SegmentRow> rows;
    Id<AllocatorEvent> before;
    reader.segments_after(num_events)
        .for_each([&](int64_t address, int64_t size_bytes, Id<AllocatorEvent> id) {
            const AllocatorEvent& event = reader.event(id);
            const bool grows = before.valid() && event.action == AllocatorAction::kSegmentMap &&
                               reader.event(before).action == AllocatorAction::kSegmentMap &&
                               reader.event(before).stream == event.stream &&
                               reader.event(before).pool == event.pool;
            before = id;
            if (!grows || rows.back().address + rows.back().size_bytes != address) {
                rows.push_back({.address = address, .kind_text = kind_of(event)});
            }
            rows.back().size_bytes += size_bytes;
            rows.back().newest_event = std::max(rows.back().newest_event, id.index());
        });
    return rows;
}

/// Adds pieces to a row from left to right; merges pieces narrower than `least_bytes`.
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
        // Stop merging at the least visible width: otherwise a dense row becomes one block.
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
    auto block = std::ranges::lower_bound(blocks, row.address, {}, &PlacedBlock::address);
    int64_t at = row.address;
    for (; block != blocks.end() && block->address < row_end; ++block) {
        const int64_t start = std::max(at, block->address);
        const int64_t end = std::min(row_end, block->address + block->size_bytes);
        if (end <= start) continue;
        writer.add({.start_bytes = at - row.address, .size_bytes = start - at});
        writer.add({.start_bytes = start - row.address,
                    .size_bytes = end - start,
                    .state = block->is_pending ? State::kPending : State::kUsed,
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
    row.free_text = format_bytes(row.free_bytes) + " free";
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

/// Of the segment asked for, or of the newest one.
void add_cause(const SegmentReader& reader, std::optional<int64_t> address, SegmentMapView& view) {
    if (view.rows.empty()) return;
    const auto newest = std::ranges::max_element(view.rows, {}, &SegmentRow::newest_event);
    auto row =
        std::ranges::find_if(view.rows, [&](const SegmentRow& r) { return address == r.address; });
    const bool is_newest = row == view.rows.end() || row == newest;
    if (row == view.rows.end()) row = newest;
    view.cause_row = static_cast<std::size_t>(row - view.rows.begin());
    const AllocatorEvent& event = reader.events()[row->newest_event];
    const bool is_mapped = event.action == AllocatorAction::kSegmentMap;
    view.cause_title =
        fmt::format("Why {} {}{}", format_bytes(event.size_bytes),
                    is_mapped ? "more were mapped at " : "were taken at ", row->address_text);
    if (is_newest) view.cause_title += ", the newest";
    SegmentCause cause = cause_of_segment(reader, row->newest_event);
    view.cause_text = std::move(cause.text);
    view.cause_request = cause.request;
}

}  // namespace

SegmentMapView build_segment_map_view(const SegmentMapRequest& request) {
    SegmentMapView view;
    if (request.shown >= request.steps.size()) return view;
    const StepIndex& source = request.steps[request.shown];
    const SegmentReader reader(source, request.layout.get());
    view.has_segments = !reader.events().empty();
    if (!view.has_segments) return view;
    const AllocatorNow now = reader.at_time(own_time(request));
    view.rows = rows_of(reader, reader.events_until(now));
    for (const SegmentRow& row : view.rows) {
        view.reserved_bytes += row.size_bytes;
        view.largest_segment_bytes = std::max(view.largest_segment_bytes, row.size_bytes);
    }
    const int64_t least_bytes = view.largest_segment_bytes / std::max(1, request.width_px);
    const std::vector<PlacedBlock> blocks = reader.blocks_at(now);
    int64_t free_count = 0;
    for (SegmentRow& row : view.rows) {
        add_pieces(source.trace(), blocks, least_bytes, row);
        add_texts(row);
        view.free_bytes += row.free_bytes;
        view.largest_free_bytes = std::max(view.largest_free_bytes, row.largest_free_bytes);
        free_count += row.free_count;
    }
    view.summary = summarize(view, free_count);
    if (now.is_earlier) view.summary = "Right before memory ran out: " + view.summary;
    add_cause(reader, request.address, view);
    if (view.rows.size() > SegmentMapView::kMostRows) view.rows.resize(SegmentMapView::kMostRows);
    return view;
}

DataTable segments_data(const SegmentMapView& view) {
    DataTable table{.columns = {"address", "kind", "size_bytes", "free_bytes", "free_pieces",
                                "largest_free_bytes"}};
    for (const SegmentRow& row : view.rows) {
        table.rows.push_back({row.address, row.kind_text, row.size_bytes, row.free_bytes,
                              row.free_count, row.largest_free_bytes});
    }
    return table;
}

}  // namespace profiler
