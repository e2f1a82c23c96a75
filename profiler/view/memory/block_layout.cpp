#include "profiler/view/memory/block_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

namespace profiler {

BlockCanvas::BlockCanvas(const BlocksRequest& request, const BlockHistory& history,
                         double max_bytes) {
    static const TimeMap same;
    const TimelineRequest& time = request.time;
    map_ = request.shown == 0 || !time.alignment ? &same : &time.alignment->second;
    const bool has_part = request.high_bytes > request.low_bytes;
    low_bytes_ = has_part ? request.low_bytes : 0;
    high_bytes_ = has_part ? request.high_bytes : std::max(max_bytes, 1.0);
    height_px_ = request.height_px;
    if (height_px_ <= 0 || !is_drawable(time.start_ns, time.end_ns, time.width_px)) return;
    pixel_bytes_ = (high_bytes_ - low_bytes_) / height_px_;
    column_ns_ = std::max(1.0, std::ceil((time.end_ns - time.start_ns) / time.width_px));
    first_ = std::llround(std::floor(time.start_ns / column_ns_));
    columns_ = std::llround(std::ceil(time.end_ns / column_ns_)) - first_;
    for (int64_t i = 0; i <= columns_; ++i) {
        own_ns_.push_back(to_clock(map_->to_own(edge_ns(i))));
        rank_.push_back(history.first_change_at(own_ns_.back()));
    }
}

int64_t BlockCanvas::column_of(uint32_t rank) const {
    return std::ranges::upper_bound(rank_, rank) - rank_.begin() - 1;
}

double BlockCanvas::share_of_column(int64_t column, int64_t start_ns, int64_t end_ns) const {
    const auto at = static_cast<std::size_t>(std::clamp<int64_t>(column, 0, columns_ - 1));
    const int64_t first = std::max(start_ns, own_ns_[at]);
    const int64_t last = std::min(end_ns, own_ns_[at + 1]);
    const int64_t width = std::max<int64_t>(1, own_ns_[at + 1] - own_ns_[at]);
    return last > first ? static_cast<double>(last - first) / static_cast<double>(width) : 0;
}

namespace {

/// Repeats a layout with a larger least size of a shape until it has few enough rectangles. With
/// shapes of no size at all it always has.
template <typename LayOut>
BlockLayout within_limit(const BlockCanvas& canvas, double max_bytes, const LayOut& lay_out) {
    const auto limit = BlocksView::kPiecesPerColumn * static_cast<std::size_t>(canvas.columns());
    for (double least_bytes = canvas.pixel_bytes();; least_bytes *= 1.5) {
        BlockLayout layout = lay_out(least_bytes, limit);
        layout.least_bytes = least_bytes;
        if (layout.rectangles() <= limit || least_bytes > max_bytes) return layout;
    }
}

constexpr uint32_t kNoNode = UINT32_MAX;
constexpr uint32_t kWithoutBlock = UINT32_MAX;
constexpr uint8_t kNoGroup = UINT8_MAX;
constexpr int kMostPixels = 3;        // height of a gap after which the next one begins
constexpr double kTolerancePx = 0.5;  // smaller falls are not drawn
constexpr double kLeastGapPx = 0.15;  // nor are smaller gaps

/// Whether two divisions of a rectangle of this height look alike.
bool look_alike(const std::vector<MergedPart>& a, const std::vector<MergedPart>& b,
                double high_px) {
    const auto differs = [&](const MergedPart& x, const MergedPart& y) {
        return x.group != y.group || std::abs(x.share - y.share) * high_px > kTolerancePx;
    };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), std::not_fn(differs));
}

/// A rectangle of merged blocks that is still growing to the right.
struct GrowingRun {
    bool open = false;
    MergedBlocks blocks;
};

struct StackNode {
    uint32_t block = kWithoutBlock;  // the floor, and nodes that close a gap, have none
    uint32_t below = kNoNode;
    uint32_t above = kNoNode;
    uint32_t shape = 0;  // meaningless without a block
    int64_t size_bytes = 0;
    // the gap above it
    int64_t gap_bytes = 0;
    int64_t gap_count = 0;
    uint32_t gap_blocks = 0;  // all of them combined by xor: the block itself if there is only one
    uint8_t gap_color = kNoGroup;  // of the first block in it that stays
    bool gap_changed = false;
    std::vector<MergedPart> gap_parts;
    GrowingRun run;
    // the piece that is being drawn
    bool seen = false;
    double since_ns = 0;
    double low_bytes = 0;
};

/// Walks the changes of the window once and keeps the stack as a list:
///
///     floor -> shape -> shape -> ... -> top        a node is a block with a shape; between it and
///        \gap     \gap     \gap                    the next one lies a gap, the sum of the blocks
///                                                  without a shape that were allocated in between
///
/// A new block goes on top. A block without a shape adds its bytes to the topmost gap. When a shape
/// goes, its gap joins the gap below; `holder_` follows these joins, as in union-find, so that a
/// freed block finds its gap. A visible gap is closed by a node without a block when the next block
/// to stay has another colour: a thousand small weights and a thousand small gradients must not
/// become one rectangle. A change costs O(1); a column costs as much as there are nodes on the
/// stack, and only if something changed.
class StackSweep {
public:
    StackSweep(const BlockCanvas& canvas, const BlockHistory& history, const BlockGroups& groups,
               double least_bytes, std::size_t limit)
        : canvas_(canvas),
          history_(history),
          groups_(groups),
          least_bytes_(least_bytes),
          limit_(limit),
          num_groups_(groups.all().size()),
          home_(history.size(), 0) {
        add_node({});  // the floor
    }

    BlockLayout build() {
        begin();
        for (int64_t column = 0; column < canvas_.columns(); ++column) {
            next_record_ = column;
            const uint32_t end = canvas_.first_rank(column + 1);
            uint32_t rank = canvas_.first_rank(column);
            const uint32_t highest = highest_moment(rank, end);
            while (rank < highest) apply(rank++);
            if (changed_) record();
            next_record_ = column + 1;
            while (rank < end) apply(rank++);
            if (layout_.rectangles() > limit_) break;
        }
        finish();
        return std::move(layout_);
    }

private:
    void begin() {
        const uint32_t first = canvas_.first_rank(0);
        const std::size_t before = history_.allocated_before(first);
        for (std::size_t block = 0; block < before; ++block) {
            if (history_.is_live(block, first)) add(static_cast<uint32_t>(block), true);
        }
    }

    /// How far to apply the changes of a column to reach its highest total.
    uint32_t highest_moment(uint32_t first, uint32_t end) const {
        int64_t total_bytes = 0, highest_bytes = 0;
        uint32_t highest = first;
        for (uint32_t rank = first; rank < end; ++rank) {
            const auto change = history_.change(rank);
            const int64_t size_bytes = history_.size_bytes(change.block);
            total_bytes += change.is_free ? -size_bytes : size_bytes;
            if (total_bytes <= highest_bytes) continue;
            highest_bytes = total_bytes;
            highest = rank + 1;
        }
        return highest;
    }

    /// A block that spans two columns is live at the moment of one of them.
    bool stays(uint32_t block) const {
        return canvas_.column_of(history_.free_rank(block)) -
                   canvas_.column_of(history_.alloc_rank(block)) >=
               2;
    }

    uint32_t add_node(const StackNode& node) {
        const auto index = static_cast<uint32_t>(nodes_.size());
        nodes_.push_back(node);
        holder_.push_back(index);
        gap_bytes_of_group_.resize(gap_bytes_of_group_.size() + num_groups_, 0);
        return index;
    }

    void apply(uint32_t rank) {
        const auto change = history_.change(rank);
        changed_ = true;
        change.is_free ? remove(change.block) : add(change.block, false);
    }

    void add(uint32_t block, bool before_window) {
        const bool has_shape =
            static_cast<double>(history_.size_bytes(block)) >= least_bytes_ && stays(block);
        if (!has_shape) return add_to_gap(block);
        const uint32_t node = put_on_top({.block = block, .below = top_});
        nodes_[node].size_bytes = history_.size_bytes(block);
        nodes_[node].since_ns =
            before_window ? canvas_.edge_ns(0) : canvas_.shared(history_.alloc_ns(block));
        nodes_[node].shape = static_cast<uint32_t>(layout_.blocks.size());
        layout_.blocks.push_back(block);
        home_[block] = node;
    }

    void add_to_gap(uint32_t block) {
        ++layout_.merged_count;
        if (stays(block)) {
            const StackNode& top = nodes_[top_];
            const auto gap_bytes = static_cast<double>(top.gap_bytes);
            const bool fits =
                top.gap_color == groups_.of(block) && gap_bytes < kMostPixels * least_bytes_;
            if (gap_bytes >= least_bytes_ && !fits) put_on_top({.below = top_});
            StackNode& into = nodes_[top_];
            if (into.gap_color == kNoGroup) into.gap_color = groups_.of(block);
        }
        home_[block] = top_;
        change_gap(top_, block, 1);
    }

    uint32_t put_on_top(const StackNode& node) {
        const uint32_t index = add_node(node);
        nodes_[top_].above = index;
        top_ = index;
        return index;
    }

    void remove(uint32_t block) {
        const uint32_t home = home_[block];
        if (nodes_[home].block == block) {
            if (nodes_[home].seen) add_piece(nodes_[home], canvas_.shared(history_.free_ns(block)));
            return take_out(home);
        }
        const uint32_t gap = holder(home);
        change_gap(gap, block, -1);
        const bool only_gap = gap != 0 && nodes_[gap].block == kWithoutBlock;
        if (only_gap && nodes_[gap].gap_count == 0) take_out(gap);
    }

    void take_out(uint32_t index) {
        StackNode& node = nodes_[index];
        end_run(node);
        join_gap(index, node.below);
        nodes_[node.below].above = node.above;
        (node.above == kNoNode ? top_ : nodes_[node.above].below) = node.below;
    }

    void change_gap(uint32_t index, uint32_t block, int sign) {
        StackNode& node = nodes_[index];
        const int64_t bytes = sign * history_.size_bytes(block);
        node.gap_bytes += bytes;
        node.gap_count += sign;
        node.gap_blocks ^= block;
        node.gap_changed = true;
        gap_bytes_of_group_[index * num_groups_ + groups_.of(block)] += bytes;
        gap_total_bytes_ += bytes;
    }

    void join_gap(uint32_t from, uint32_t to) {
        nodes_[to].gap_bytes += nodes_[from].gap_bytes;
        nodes_[to].gap_count += nodes_[from].gap_count;
        nodes_[to].gap_blocks ^= nodes_[from].gap_blocks;
        nodes_[to].gap_changed = true;
        for (std::size_t g = 0; g < num_groups_; ++g) {
            gap_bytes_of_group_[to * num_groups_ + g] +=
                gap_bytes_of_group_[from * num_groups_ + g];
        }
        holder_[from] = to;
    }

    /// The node whose gap holds what was put into the gap of `index`.
    uint32_t holder(uint32_t index) {
        while (holder_[index] != index) {
            holder_[index] = holder_[holder_[index]];
            index = holder_[index];
        }
        return index;
    }

    /// Compares the stack with what is being drawn.
    void record() {
        changed_ = false;
        layout_.merged_bytes = std::max(layout_.merged_bytes, gap_total_bytes_);
        double y = 0;
        for (uint32_t index = 0; index != kNoNode; index = nodes_[index].above) {
            StackNode& node = nodes_[index];
            if (node.block != kWithoutBlock) record_piece(node, y);
            y += static_cast<double>(node.size_bytes);
            record_gap(index, y);
            y += static_cast<double>(node.gap_bytes);
        }
    }

    void record_piece(StackNode& node, double low_bytes) {
        const double tolerance = kTolerancePx * canvas_.pixel_bytes();
        if (node.seen && std::abs(low_bytes - node.low_bytes) <= tolerance) return;
        if (node.seen) {
            add_piece(node, canvas_.edge_ns(next_record_));
            node.since_ns = canvas_.edge_ns(next_record_);
        }
        node.seen = true;
        node.low_bytes = low_bytes;
    }

    void add_piece(const StackNode& node, double end_ns) {
        const double high_bytes = node.low_bytes + static_cast<double>(node.size_bytes);
        if (end_ns <= node.since_ns || !canvas_.sees(node.low_bytes, high_bytes)) return;
        layout_.pieces.push_back({node.since_ns, end_ns, node.low_bytes, node.shape});
    }

    void record_gap(uint32_t index, double low_bytes) {
        StackNode& node = nodes_[index];
        const double tolerance = kTolerancePx * canvas_.pixel_bytes();
        const double high_bytes = low_bytes + static_cast<double>(node.gap_bytes);
        if (node.gap_changed) divide_gap(index);
        const Id<Allocation> single =
            node.gap_count == 1 ? history_.allocation(node.gap_blocks) : Id<Allocation>();
        MergedBlocks& drawn = node.run.blocks;
        const bool same = node.run.open && drawn.allocation == single &&
                          look_alike(drawn.parts, node.gap_parts,
                                     (high_bytes - low_bytes) / canvas_.pixel_bytes()) &&
                          std::abs(drawn.low_bytes - low_bytes) <= tolerance &&
                          std::abs(drawn.high_bytes - high_bytes) <= tolerance;
        if (same) {
            drawn.count = std::max(drawn.count, node.gap_count);
            return;
        }
        end_run(node);
        if (high_bytes - low_bytes < kLeastGapPx * canvas_.pixel_bytes()) return;
        node.run.open = true;
        drawn = {.start_ns = canvas_.edge_ns(next_record_),
                 .low_bytes = low_bytes,
                 .high_bytes = high_bytes,
                 .parts = node.gap_parts,
                 .count = node.gap_count,
                 .allocation = single};
    }

    /// Among its groups, by their bytes.
    void divide_gap(uint32_t index) {
        StackNode& node = nodes_[index];
        node.gap_changed = false;
        node.gap_parts.clear();
        const int64_t* const bytes = &gap_bytes_of_group_[index * num_groups_];
        for (std::size_t g = 0; g < num_groups_; ++g) {
            if (bytes[g] <= 0) continue;
            node.gap_parts.push_back(
                {.group = static_cast<uint8_t>(g),
                 .share = static_cast<float>(bytes[g]) / static_cast<float>(node.gap_bytes)});
        }
    }

    void end_run(StackNode& node) {
        if (!node.run.open) return;
        node.run.open = false;
        MergedBlocks& drawn = node.run.blocks;
        drawn.end_ns = canvas_.edge_ns(next_record_);
        if (drawn.end_ns <= drawn.start_ns) return;
        if (canvas_.sees(drawn.low_bytes, drawn.high_bytes)) layout_.merged.push_back(drawn);
    }

    /// What still stands at the end of the window.
    void finish() {
        next_record_ = canvas_.columns();
        for (uint32_t index = 0; index != kNoNode; index = nodes_[index].above) {
            StackNode& node = nodes_[index];
            if (node.seen) add_piece(node, canvas_.edge_ns(next_record_));
            end_run(node);
        }
    }

    const BlockCanvas& canvas_;
    const BlockHistory& history_;
    const BlockGroups& groups_;
    const double least_bytes_;
    const std::size_t limit_;
    const std::size_t num_groups_;
    std::vector<StackNode> nodes_;  // in the order of allocation; 0 is the floor
    std::vector<uint32_t> holder_;  // by node: the node below it, or itself, that holds its gap
    std::vector<uint32_t> home_;    // by block: its node, or the one whose gap it was put into
    std::vector<int64_t> gap_bytes_of_group_;  // num_groups_ for each node
    int64_t gap_total_bytes_ = 0;
    uint32_t top_ = 0;
    int64_t next_record_ = 0;  // the next column to be recorded
    bool changed_ = true;
    BlockLayout layout_;
};

}  // namespace

BlockLayout lay_out_stack(const BlockCanvas& canvas, const BlockHistory& history,
                          const BlockGroups& groups) {
    double max_bytes = 0;
    for (std::size_t i = 0; i < history.size(); ++i) {
        max_bytes = std::max(max_bytes, static_cast<double>(history.size_bytes(i)));
    }
    return within_limit(canvas, max_bytes, [&](double least_bytes, std::size_t limit) {
        return StackSweep(canvas, history, groups, least_bytes, limit).build();
    });
}

namespace {

constexpr std::size_t kSlots = 8;  // colours of cells: the seven largest groups and the rest
constexpr int32_t kFull = 4096;    // weight of a cell that is filled
constexpr int kLevels = 4;

/// Sums of weights over cells, per slot. A block adds its weight at its first cell of a row and
/// takes it away after its last one; the running sum along the row is then the weight of each cell.
class DensityGrid {
public:
    DensityGrid(std::size_t columns, std::size_t rows)
        : columns_(columns + 1), rows_(rows), steps_(kSlots * columns_ * rows_, 0) {}

    void add(std::size_t slot, std::size_t row, std::size_t first, std::size_t last,
             int32_t weight) {
        int32_t* line = &steps_[(slot * rows_ + row) * columns_];
        line[first] += weight;
        line[last + 1] -= weight;
    }

    /// Calls visit(row, first, end, weights, level) for each run of cells that are equally full and
    /// have the same largest slot; `weights` are the sums of its slots.
    template <typename Visit>
    void for_each_run(Visit&& visit) const {
        for (std::size_t row = 0; row < rows_; ++row) {
            std::array<int64_t, kSlots> weight{}, of_run{};
            std::size_t first = 0, slot = 0;
            int level = 0;
            for (std::size_t column = 0; column < columns_; ++column) {
                int64_t total = 0;
                std::size_t largest = 0;
                for (std::size_t s = 0; s < kSlots; ++s) {
                    weight[s] += steps_[(s * rows_ + row) * columns_ + column];
                    total += weight[s];
                    if (weight[s] > weight[largest]) largest = s;
                }
                const int now = static_cast<int>(
                    std::clamp<int64_t>((total * kLevels + kFull - 1) / kFull, 0, kLevels));
                const bool ends = column + 1 == columns_;  // beyond the last cell
                const bool goes_on = !ends && now == level && (now == 0 || largest == slot);
                if (!goes_on && level > 0) visit(row, first, column, of_run, level);
                if (!goes_on) of_run = {};
                for (std::size_t s = 0; s < kSlots; ++s) of_run[s] += weight[s];
                if (goes_on) continue;
                first = column;
                level = now;
                slot = largest;
            }
        }
    }

private:
    std::size_t columns_;
    std::size_t rows_;
    std::vector<int32_t> steps_;
};

/// The groups with the most blocks in the window get a slot of their own.
struct GridSlots {
    std::vector<std::size_t> of_group;
    std::array<uint8_t, kSlots> group{};

    GridSlots(const BlockGroups& groups, std::size_t first, std::size_t last) {
        std::vector<std::pair<std::size_t, std::size_t>> counts;
        for (std::size_t i = 0; i < groups.all().size(); ++i) counts.emplace_back(0, i);
        for (std::size_t block = first; block < last; ++block) ++counts[groups.of(block)].first;
        std::ranges::stable_sort(counts,
                                 [](const auto& a, const auto& b) { return a.first > b.first; });
        of_group.assign(counts.size(), kSlots - 1);
        for (std::size_t i = 0; i < std::min(kSlots, counts.size()); ++i) {
            of_group[counts[i].second] = i;
            group[i] = static_cast<uint8_t>(counts[i].second);
        }
    }
};

/// A rectangle for each block that is large enough. The others are added up in a grid of cells,
/// which is drawn in levels of density.
class AddressSweep {
public:
    AddressSweep(const BlockCanvas& canvas, const StepIndex& source, const BlockGroups& groups,
                 const GridSlots& slots, double least_bytes, std::size_t limit)
        : canvas_(canvas),
          source_(source),
          history_(source.blocks()),
          groups_(groups),
          slots_(slots),
          least_bytes_(least_bytes),
          limit_(limit),
          cell_px_(std::max(2.0, 2 * least_bytes / canvas.pixel_bytes())),
          cells_x_(cells(static_cast<double>(canvas.columns()))),
          cells_y_(cells(canvas.height_px())),
          grid_(cells_x_, cells_y_),
          is_merged_(source.blocks().size(), 0) {}

    BlockLayout build() {
        const uint32_t first = canvas_.first_rank(0), end = canvas_.first_rank(canvas_.columns());
        const std::size_t last_block = history_.allocated_before(end);
        for (std::size_t block = 0; block < last_block; ++block) {
            if (history_.free_rank(block) >= first) add(block, first);
            if (layout_.rectangles() > limit_) break;
        }
        add_runs();
        find_most_merged(first, end);
        return std::move(layout_);
    }

private:
    std::size_t cells(double pixels) const {
        return static_cast<std::size_t>(std::ceil(pixels / cell_px_)) + 1;
    }

    void add(std::size_t block, uint32_t first_rank) {
        const Trace& trace = source_.trace();
        const Id<Allocation> id = history_.allocation(block);
        const auto low = static_cast<double>(
            source_.addresses().offset_of(trace.allocations.get<&Allocation::address>(id)));
        const double high = low + static_cast<double>(std::max<int64_t>(
                                      0, trace.allocations.get<&Allocation::block_bytes>(id)));
        if (!canvas_.sees(low, high)) return;
        const int64_t first = canvas_.column_of(history_.alloc_rank(block));
        const int64_t last = canvas_.column_of(history_.free_rank(block));
        const bool short_lived = last - first < 2;
        if (high - low < least_bytes_ || short_lived) {
            ++layout_.merged_count;
            is_merged_[block] = 1;
            return add_to_grid(block, low, high, std::max<int64_t>(first, 0), last);
        }
        const bool before = history_.alloc_rank(block) < first_rank;
        const double start_ns =
            before ? canvas_.edge_ns(0) : canvas_.shared(history_.alloc_ns(block));
        const double end_ns = last >= canvas_.columns() ? canvas_.edge_ns(canvas_.columns())
                                                        : canvas_.shared(history_.free_ns(block));
        layout_.pieces.push_back(
            {start_ns, end_ns, low, static_cast<uint32_t>(layout_.blocks.size())});
        layout_.blocks.push_back(static_cast<uint32_t>(block));
    }

    void add_to_grid(std::size_t block, double low, double high, int64_t first, int64_t last) {
        double columns = static_cast<double>(std::min(last, canvas_.columns()) - first);
        if (columns < 2) {
            columns =
                canvas_.share_of_column(first, history_.alloc_ns(block), history_.free_ns(block)) +
                (last > first ? canvas_.share_of_column(last, history_.alloc_ns(block),
                                                        history_.free_ns(block))
                              : 0);
        }
        const auto cell_x = [&](int64_t column) {
            const double at = static_cast<double>(column) / cell_px_;
            return std::min(static_cast<std::size_t>(std::max(0.0, at)), cells_x_ - 1);
        };
        const auto cell_y = [&](double bytes) {
            const double px = (bytes - canvas_.low_bytes()) / canvas_.pixel_bytes();
            return std::min(static_cast<std::size_t>(std::max(0.0, px / cell_px_)), cells_y_ - 1);
        };
        const std::size_t x0 = cell_x(first), x1 = std::max(x0, cell_x(last));
        const std::size_t y0 = cell_y(low), y1 = std::max(y0, cell_y(high));
        const double area_px = columns * (high - low) / canvas_.pixel_bytes();
        const double room_px =
            static_cast<double>((x1 - x0 + 1) * (y1 - y0 + 1)) * cell_px_ * cell_px_;
        const double share = std::clamp(area_px / room_px, 0.0, 1.0);
        const auto weight = std::max(1, static_cast<int32_t>(share * kFull));
        const std::size_t slot = slots_.of_group[groups_.of(block)];
        for (std::size_t y = y0; y <= y1; ++y) grid_.add(slot, y, x0, x1, weight);
    }

    std::vector<MergedPart> parts_of(const std::array<int64_t, kSlots>& weights) const {
        const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
        std::vector<MergedPart> parts;
        for (std::size_t slot = 0; slot < kSlots; ++slot) {
            if (weights[slot] <= 0) continue;
            parts.push_back(
                {.group = slots_.group[slot],
                 .share = static_cast<float>(weights[slot]) / static_cast<float>(total)});
        }
        std::ranges::sort(parts, {}, &MergedPart::group);
        return parts;
    }

    void add_runs() {
        const double cell_bytes = cell_px_ * canvas_.pixel_bytes();
        const auto edge_ns = [&](std::size_t cell) {
            return canvas_.edge_ns(0) + static_cast<double>(cell) * cell_px_ * canvas_.column_ns();
        };
        grid_.for_each_run([&](std::size_t row, std::size_t first, std::size_t end,
                               const std::array<int64_t, kSlots>& weights, int level) {
            if (layout_.rectangles() > limit_) return;
            const double low = canvas_.low_bytes() + static_cast<double>(row) * cell_bytes;
            layout_.merged.push_back({.start_ns = edge_ns(first),
                                      .end_ns = edge_ns(end),
                                      .low_bytes = low,
                                      .high_bytes = low + cell_bytes,
                                      .parts = parts_of(weights),
                                      .density = static_cast<float>(level) / kLevels});
        });
    }

    void find_most_merged(uint32_t first, uint32_t end) {
        int64_t bytes = 0;
        for (std::size_t block = 0; block < history_.allocated_before(first); ++block) {
            if (is_merged_[block] && history_.is_live(block, first)) {
                bytes += history_.size_bytes(block);
            }
        }
        layout_.merged_bytes = bytes;
        for (uint32_t rank = first; rank < end; ++rank) {
            const auto change = history_.change(rank);
            if (!is_merged_[change.block]) continue;
            const int64_t size_bytes = history_.size_bytes(change.block);
            bytes += change.is_free ? -size_bytes : size_bytes;
            layout_.merged_bytes = std::max(layout_.merged_bytes, bytes);
        }
    }

    const BlockCanvas& canvas_;
    const StepIndex& source_;
    const BlockHistory& history_;
    const BlockGroups& groups_;
    const GridSlots& slots_;
    const double least_bytes_;
    const std::size_t limit_;
    const double cell_px_;
    const std::size_t cells_x_, cells_y_;
    DensityGrid grid_;
    std::vector<char> is_merged_;  // by block
    BlockLayout layout_;
};

}  // namespace

BlockLayout lay_out_addresses(const BlockCanvas& canvas, const StepIndex& source,
                              const BlockGroups& groups) {
    const auto end = canvas.first_rank(canvas.columns());
    const GridSlots slots(groups, 0, source.blocks().allocated_before(end));
    const auto max_bytes = static_cast<double>(source.addresses().total_bytes());
    return within_limit(canvas, max_bytes, [&](double least_bytes, std::size_t limit) {
        return AddressSweep(canvas, source, groups, slots, least_bytes, limit).build();
    });
}

}  // namespace profiler
