#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/view/memory/blocks_view.h"

#include <cstdint>
#include <vector>

/// Private to the builders of BlocksView.
namespace profiler {

/// The pixels of a picture of blocks. Columns begin on multiples of their width, so that they keep
/// their content while the window pans.
class BlockCanvas {
public:
    BlockCanvas(const BlocksRequest& request, const BlockHistory& history, double max_bytes);

    bool empty() const { return columns_ <= 0; }
    int64_t columns() const { return columns_; }
    int height_px() const { return height_px_; }
    double low_bytes() const { return low_bytes_; }
    double high_bytes() const { return high_bytes_; }
    double pixel_bytes() const { return pixel_bytes_; }
    double column_ns() const { return column_ns_; }
    double edge_ns(int64_t column) const {
        return static_cast<double>(first_ + column) * column_ns_;
    }
    double shared(int64_t own_ns) const { return map_->to_shared(static_cast<double>(own_ns)); }

    /// The changes of a column are [first_rank(column), first_rank(column + 1)).
    uint32_t first_rank(int64_t column) const { return rank_[static_cast<std::size_t>(column)]; }
    /// The column in which a change happens: -1 before the window, columns() after it.
    int64_t column_of(uint32_t rank) const;
    /// The part of a column that [start_ns, end_ns) of the trace's own clock fills, at most 1.
    double share_of_column(int64_t column, int64_t start_ns, int64_t end_ns) const;

    bool sees(double low_bytes, double high_bytes) const {
        return high_bytes > low_bytes_ && low_bytes < high_bytes_;
    }

private:
    const TimeMap* map_ = nullptr;
    int64_t columns_ = 0;
    int64_t first_ = 0;
    double column_ns_ = 1;
    int height_px_ = 0;
    double low_bytes_ = 0, high_bytes_ = 0, pixel_bytes_ = 1;
    std::vector<int64_t> own_ns_;  // edges on the trace's own clock
    std::vector<uint32_t> rank_;   // the first change of each column; columns_ + 1
};

/// What a layout makes of the blocks in the window.
struct BlockLayout {
    std::vector<uint32_t> blocks;  // of each shape
    std::vector<BlockPiece> pieces;
    std::vector<MergedBlocks> merged;
    int64_t merged_count = 0;  // blocks in the window that have no shape
    int64_t merged_bytes = 0;  // the most that they hold at one time
    double least_bytes = 0;    // blocks below this size have no shape

    std::size_t rectangles() const { return pieces.size() + merged.size(); }
};

BlockLayout lay_out_stack(const BlockCanvas& canvas, const BlockHistory& history,
                          const BlockGroups& groups);
BlockLayout lay_out_addresses(const BlockCanvas& canvas, const StepIndex& source,
                              const BlockGroups& groups);

}  // namespace profiler
