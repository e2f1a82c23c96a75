#include "profiler/view/memory/block_canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

/// The address layout: a rectangle for each block that is large enough. The others are added up in
/// a grid of cells, which is drawn in levels of density.
namespace profiler {
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
        std::stable_sort(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        of_group.assign(counts.size(), kSlots - 1);
        for (std::size_t i = 0; i < std::min(kSlots, counts.size()); ++i) {
            of_group[counts[i].second] = i;
            group[i] = static_cast<uint8_t>(counts[i].second);
        }
    }
};

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
