#include "profiler/analysis/blocks/block_history.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>

namespace profiler {
namespace {

constexpr uint32_t kFreedTooEarly = BlockHistory::kNone - 1;

}  // namespace

BlockHistory::BlockHistory(const Trace& trace) {
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();
    const std::vector<MemoryChange> ordered = ordered_changes(trace);
    block_.assign(size.size(), kNone);
    code_.reserve(ordered.size());
    time_ns_.reserve(ordered.size());
    for (auto* column : {&alloc_rank_, &free_rank_, &allocation_}) column->reserve(size.size());
    size_bytes_.reserve(size.size());

    const auto add = [this](uint32_t block, bool is_free, int64_t time_ns) {
        if (!time_ns_.empty()) time_ns = std::max(time_ns, time_ns_.back());
        code_.push_back(2 * block + (is_free ? 1 : 0));
        time_ns_.push_back(time_ns);
    };
    for (const MemoryChange change : ordered) {
        const std::size_t row = change.allocation_index();
        uint32_t& block = block_[row];
        const auto rank = static_cast<uint32_t>(code_.size());
        if (change.is_free()) {
            if (block == kNone) block = kFreedTooEarly;
            if (block == kFreedTooEarly) continue;
            free_rank_[block] = rank;
            add(block, true, free_ns[row]);
        } else if (block == kNone) {
            block = static_cast<uint32_t>(allocation_.size());
            alloc_rank_.push_back(rank);
            free_rank_.push_back(kNone);
            allocation_.push_back(static_cast<uint32_t>(row));
            size_bytes_.push_back(std::max<int64_t>(0, size[row]));
            add(block, false, alloc_ns[row]);
        }
    }
    std::replace(block_.begin(), block_.end(), kFreedTooEarly, kNone);
}

uint32_t BlockHistory::first_change_at(int64_t time_ns) const {
    const auto at = std::lower_bound(time_ns_.begin(), time_ns_.end(), time_ns);
    return static_cast<uint32_t>(at - time_ns_.begin());
}

uint32_t BlockHistory::first_change_after(int64_t time_ns) const {
    const auto after = std::upper_bound(time_ns_.begin(), time_ns_.end(), time_ns);
    return static_cast<uint32_t>(after - time_ns_.begin());
}

uint32_t BlockHistory::highest_rank_at(int64_t time_ns) const {
    const uint32_t end = first_change_after(time_ns);
    uint32_t highest = end;
    int64_t bytes = 0, highest_bytes = std::numeric_limits<int64_t>::min();
    for (uint32_t rank = first_change_at(time_ns); rank < end; ++rank) {
        const Change now = change(rank);
        bytes += now.is_free ? -size_bytes(now.block) : size_bytes(now.block);
        if (bytes <= highest_bytes) continue;
        highest_bytes = bytes;
        highest = rank + 1;
    }
    return highest;
}

std::size_t BlockHistory::allocated_before(uint32_t rank) const {
    const auto first = std::lower_bound(alloc_rank_.begin(), alloc_rank_.end(), rank);
    return static_cast<std::size_t>(first - alloc_rank_.begin());
}

}  // namespace profiler
