#include "profiler/view/allocator/segment_map_view.h"

#include "profiler/trace/units.h"
#include "profiler/view/allocator/segment_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace profiler {
namespace {

using State = SegmentPiece::State;

int64_t own_time(const SegmentMapRequest& request) {
    const TimeMap& map = map_of(request.alignment, request.shown);
    return std::llround(std::clamp(map.to_own(request.moment_ns), -0x1p62, 0x1p62));
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
    const auto newest = std::max_element(
        view.rows.begin(), view.rows.end(),
        [](const SegmentRow& a, const SegmentRow& b) { return a.newest_event < b.newest_event; });
    auto row = std::find_if(view.rows.begin(), view.rows.end(),
                            [&](const SegmentRow& r) { return address == r.address; });
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
        table.rows.push_back({row.address_text, row.kind_text, row.size_bytes, row.free_bytes,
                              row.free_count, row.largest_free_bytes});
    }
    return table;
}

}  // namespace profiler
