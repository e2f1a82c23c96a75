#pragma once

#include "profiler/tables/columns.h"
#include "profiler/trace/mapped_segments.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The segments of a caching allocator at one moment: a row for each segment, in the order of
/// addresses, with its blocks and the free room between them.
///
///     0x7f00000   |used|free|used|free      |     20.0 MiB   8.00 MiB free in 2
///     0x7f40000   |used                |          12.0 MiB
///
/// Rows have one scale. Neighbouring pieces that are narrower than a pixel are merged. A segment
/// that grows (expandable) is one row as long as its pages are contiguous.
namespace profiler {

// What a caching allocator holds at one moment: its segments, and the blocks in them. Segments and
// blocks lie where the trace recorded them, or where a replay with other settings placed them.

struct BlockPlace {
    int64_t address = -1;  // -1: never placed, because memory ran out before
    int64_t size_bytes = 0;
};

/// Where a replay placed the blocks of a trace, and the segments that it took for them.
struct SegmentLayout {
    const Trace* trace = nullptr;        // whose; only compared
    std::vector<AllocatorEvent> events;  // in order; their numbers are those of the allocations
    std::vector<BlockPlace> blocks;      // by row of Trace::allocations
    Id<Allocation> failed;               // memory ran out here; invalid: it did not
};

/// A moment in the allocator's order: after the event `last`, at a time of the trace's own clock.
struct AllocatorNow {
    uint32_t rank = 0;         // changes of memory that have happened
    int64_t last = -1;         // the event of the last one of them
    int64_t next = INT64_MAX;  // the event of the first one that has not
    int64_t own_ns = 0;
    bool is_earlier = false;  // memory ran out before the moment that was asked for
};

struct PlacedBlock {
    int64_t address = 0;
    int64_t size_bytes = 0;
    bool is_pending = false;  // freed, but another stream may still use it
    Id<Allocation> allocation;
};

/// Reads one trace. `layout` is null for what the trace recorded; both are borrowed.
class SegmentReader {
public:
    SegmentReader(const StepIndex& source, const SegmentLayout* layout);

    /// Segment events of the profiled device, in order. Damaged ones are left out.
    const std::vector<AllocatorEvent>& events() const { return events_; }
    const AllocatorEvent& event(Id<AllocatorEvent> id) const { return events_[id.index()]; }

    /// After memory ran out there is nothing more: then it is the moment right before.
    AllocatorNow at_time(int64_t own_ns) const;
    /// How many of events() have happened. Those between two changes of memory count by their
    /// times.
    std::size_t events_until(const AllocatorNow& now) const;
    /// The segments after the first `count` events; ids are positions in events().
    MappedSegments segments_after(std::size_t count) const;
    /// By address.
    std::vector<PlacedBlock> blocks_at(const AllocatorNow& now) const;
    BlockPlace place_of(Id<Allocation> allocation) const;
    /// The first block that is allocated at this event or later; BlockHistory::kNone if none is.
    uint32_t first_block_from(int64_t event) const;
    /// Right before the block is allocated.
    AllocatorNow before_block(uint32_t block) const;

    const StepIndex& source() const { return source_; }
    bool is_replayed() const { return layout_ != nullptr; }

private:
    AllocatorNow at_rank(uint32_t rank) const;

    const StepIndex& source_;
    const SegmentLayout* layout_;
    std::vector<AllocatorEvent> events_;
};

/// Why the allocator asked the driver for memory, at one segment event.
struct SegmentCause {
    Id<Allocation> request;  // invalid if the recording does not say
    /// One sentence: the request, what was free in the same pool, and the largest piece of that.
    std::string text;
};

/// `event` is a position in reader.events().
SegmentCause cause_of_segment(const SegmentReader& reader, std::size_t event);

/// "aten::bmm in encoder.layer.3", or "attention_probs": what asked for a block.
std::string name_of_request(const StepIndex& source, Id<Allocation> allocation);

struct SegmentMapRequest {
    Steps steps;
    std::shared_ptr<const Alignment> alignment;  // of A and B
    std::size_t shown = 0;
    double moment_ns = 0;  // on the shared axis
    int width_px = 0;      // of the largest segment
    /// Where a replay put segments and blocks; null: where the trace recorded them.
    std::shared_ptr<const SegmentLayout> layout;
    std::optional<int64_t> address;  // says why the segment at this address was taken

    friend bool operator==(const SegmentMapRequest&, const SegmentMapRequest&) = default;
};

struct SegmentPiece {
    enum class State : uint8_t {
        kUsed,
        kPending,  // freed by the program; another stream may still use it
        kFree,
        kMixed  // several pieces that are too narrow to be drawn
    };
    int64_t start_bytes = 0;  // from the start of the segment
    int64_t size_bytes = 0;
    State state = State::kFree;
    Category category = Category::kUnknown;  // of a used block
    Id<Allocation> allocation;               // of a used or pending block
    int64_t count = 1;                       // merged pieces
    int64_t free_bytes = 0;                  // of a mixed piece
};

struct SegmentRow {
    int64_t address = 0;
    int64_t size_bytes = 0;
    int64_t free_bytes = 0;
    int64_t free_count = 0;
    int64_t largest_free_bytes = 0;
    bool split = false;            // holds more than one piece
    std::size_t newest_event = 0;  // the last one that brought memory to it
    std::string address_text;      // "0x7f2e40000000"
    std::string size_text;         // "20.0 MiB"
    std::string free_text;         // "8.00 MiB free in 2"; empty if nothing is free
    std::string kind_text;         // "expandable", "private pool 1"; empty for ordinary ones
    std::vector<SegmentPiece> pieces;
};

struct SegmentMapView {
    static constexpr std::size_t kMostRows = 20'000;

    std::vector<SegmentRow> rows;
    int64_t largest_segment_bytes = 0;
    int64_t reserved_bytes = 0;
    int64_t free_bytes = 0;
    int64_t largest_free_bytes = 0;
    /// "4.95 GiB of 6.74 GiB is free, in 87 pieces; the largest has 512 MiB, so a request above
    /// that needs a new segment."
    std::string summary;
    bool has_segments = false;  // the trace knows segments; never on the CPU
    /// The segment that `cause_text` explains: the requested segment, else the newest.
    std::size_t cause_row = 0;
    std::string cause_title;  // "Why 0x7f2e40000000, the newest segment"
    std::string cause_text;   // "aten::bmm asked for 8.00 MiB; ..."
    Id<Allocation> cause_request;
};

SegmentMapView build_segment_map_view(const SegmentMapRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

DataTable segments_data(const SegmentMapView& view);

}  // namespace profiler
