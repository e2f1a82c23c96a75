#pragma once

#include "profiler/tables/columns.h"
#include "profiler/view/memory/block_groups.h"
#include "profiler/view/memory/timeline_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// What the panel "Blocks" draws for one time window: every block that is large enough to see, as
/// rectangles over time, and the others merged, so that a million allocations give no more
/// rectangles than kPiecesPerColumn for each column of pixels.
///
/// In stack order a block lies on those that were allocated before it. When one of them is freed it
/// falls, so its shape is a row of pieces of the same height:
///
///     bytes ^      +-----+            c     The left edge of the first piece and the right edge of
///           |   +--+ c   +------+     b     the last one are exact times. A fall is drawn at the
///           |   | b +-----------+           edge of a pixel column, so it is at most a pixel off.
///           |   +---+ (a is freed)    a     Within a column, the heights are those at the instant
///           +------------------------->     of its highest total, so that no peak is lost.
///
/// In address order a block is one exact rectangle. Addresses that are never used take no room.
namespace profiler {

enum class BlockOrder : uint8_t { kStack, kAddress };

struct BlocksRequest {
    TimelineRequest time;     // steps, window, width in pixels, alignment
    std::size_t shown = 0;    // the trace that is drawn
    bool difference = false;  // compare trace 0, which is shown, with trace 1
    int height_px = 0;
    /// The upper part of the height, for names of phases. No block reaches it while all of the
    /// vertical axis is shown.
    int phase_strip_px = 0;
    /// The visible part of the vertical axis; all of it if high_bytes is not above low_bytes.
    double low_bytes = 0;
    double high_bytes = 0;
    TimeRange all;       // what the minimap shows
    int minimap_px = 0;  // its width
    BlockOrder order = BlockOrder::kStack;
    BlockColoring coloring = BlockColoring::kCategory;

    friend bool operator==(const BlocksRequest&, const BlocksRequest&) = default;
};

/// A block that is drawn by itself.
struct BlockShape {
    Id<Allocation> allocation;
    int64_t size_bytes = 0;  // its height
    uint64_t family = 0;     // equal for siblings in other layers; 0: none
    uint8_t group = 0;       // of BlocksView::groups
    Category category = Category::kUnknown;
    double start_ns = 0;  // of its first and end of its last piece, on the shared axis
    double end_ns = 0;
    /// Of a difference: the share of its bytes that the other trace holds too, between two times on
    /// the shared axis. The rest is hollow.
    double kept = 1;
    double kept_start_ns = 0;
    double kept_end_ns = 0;
    std::size_t label_piece = 0;  // the widest piece, if there is a label
    std::string label;            // "attention_probs  64.0 MiB"; empty where there is no room
};

/// A part of a block's life in which it does not fall.
struct BlockPiece {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    double low_bytes = 0;
    uint32_t shape = 0;
};

/// What the blocks of one group fill of a rectangle of merged ones.
struct MergedPart {
    uint8_t group = 0;
    float share = 0;
};

/// Blocks that are too small or too short to be seen, drawn as one rectangle that is divided among
/// their groups.
struct MergedBlocks {
    double start_ns = 0;
    double end_ns = 0;
    double low_bytes = 0;
    double high_bytes = 0;
    std::vector<MergedPart> parts;  // from the bottom; their shares add up to 1
    float density = 1;              // share of the rectangle that they fill
    int64_t count = 0;              // blocks at one moment; 0: not counted
    Id<Allocation> allocation;      // if it is a single block
};

struct BlocksView {
    static constexpr std::size_t kPiecesPerColumn = 8;

    std::vector<BlockShape> shapes;
    std::vector<BlockPiece> pieces;
    std::vector<MergedBlocks> merged;
    std::vector<BlockGroup> groups;
    std::vector<uint8_t> used_groups;  // those in the window
    TimelineTrace bands;               // phases, steps and peak; no columns
    double max_bytes = 0;              // end of the vertical axis, the same for every window
    double pixel_bytes = 1;            // height of a pixel
    std::vector<float> minimap;        // highest bytes of each of its pixels
    double minimap_max_bytes = 0;
    /// "merged: 1,234 blocks below a pixel, at most 12.0 MiB at a time"; empty if there are none.
    std::string merged_text;
    bool difference = false;
    bool has_layers = false;
};

BlocksView build_blocks_view(const BlocksRequest& request);

/// Everything about one block, for a tooltip.
struct BlockReadout {
    std::string title;                                      // its name
    std::vector<std::pair<std::string, std::string>> rows;  // "module", "encoder.layer.3.output"
};
/// With two steps, says what becomes of a block of A in B.
BlockReadout read_block(const Steps& steps, std::size_t shown, Id<Allocation> allocation);

/// Key of a block and its siblings in other layers; 0: it has none.
uint64_t family_of(const StepIndex& source, Id<Allocation> allocation);

// ---- what lives at one moment, the largest block first -----------------------------------------

struct LiveBlocksRequest {
    Steps steps;
    std::shared_ptr<const Alignment> alignment;  // of A and B
    std::size_t shown = 0;
    bool difference = false;  // adds what trace 1 holds of each block at that moment
    double moment_ns = 0;     // on the shared axis

    friend bool operator==(const LiveBlocksRequest&, const LiveBlocksRequest&) = default;
};

struct LiveBlocksView {
    static constexpr std::size_t kMostRows = 1000;

    struct Row {
        Id<Allocation> allocation;
        std::string name;
        std::string module_path;
        Category category = Category::kUnknown;
        int64_t size_bytes = 0;
        std::string size_text;   // "64.0 MiB"
        std::string other_text;  // what the other trace holds of it: "64.0 MiB", "–"
        bool gone = false;       // the other trace holds nothing of it
    };
    std::string moment_text;  // "1.20 s, backward of step 2"
    std::string total_text;   // "24.5 GiB in 2,345 blocks"
    std::string rest_text;    // "and 1,345 smaller blocks, 12.0 MiB"; empty if all are listed
    std::string gone_text;    // "B does not hold 1.20 GiB of it"; empty without a difference
    std::vector<Row> rows;
};

LiveBlocksView build_live_blocks_view(const LiveBlocksRequest& request);

// ---- tables for other programs ------------------------------------------------------------------

DataTable live_blocks_data(const LiveBlocksView& view);

}  // namespace profiler
