#pragma once

#include "profiler/tables/data_table.h"
#include "profiler/view/allocator/segment_state.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"

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
    /// The segment that `cause_text` is about: the one asked for, else the newest.
    std::size_t cause_row = 0;
    std::string cause_title;  // "Why 0x7f2e40000000, the newest segment"
    std::string cause_text;   // "aten::bmm asked for 8.00 MiB; ..."
    Id<Allocation> cause_request;
};

SegmentMapView build_segment_map_view(const SegmentMapRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

DataTable segments_data(const SegmentMapView& view);

}  // namespace profiler
