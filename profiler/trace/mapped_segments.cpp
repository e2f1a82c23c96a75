#include "profiler/trace/mapped_segments.h"

#include <algorithm>
#include <iterator>

namespace profiler {

void MappedSegments::add(int64_t address, int64_t size_bytes, Id<AllocatorEvent> event) {
    remove(address, size_bytes);
    ranges_[address] = {address + size_bytes, event};
    total_bytes_ += size_bytes;
}

int64_t MappedSegments::remove(int64_t address, int64_t size_bytes) {
    const int64_t end = address + size_bytes;
    int64_t removed_bytes = 0;
    auto range = ranges_.upper_bound(address);
    if (range != ranges_.begin() && std::prev(range)->second.end > address) --range;
    while (range != ranges_.end() && range->first < end) {
        const auto [start, old] = *range;
        range = ranges_.erase(range);
        removed_bytes += std::min(end, old.end) - std::max(address, start);
        if (start < address) ranges_[start] = {address, old.event};
        if (old.end > end) {
            ranges_[end] = {old.end, old.event};
            break;
        }
    }
    total_bytes_ -= removed_bytes;
    return removed_bytes;
}

Id<AllocatorEvent> MappedSegments::event_at(int64_t address) const {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return {};
    const Range& range = std::prev(after)->second;
    return address < range.end ? range.event : Id<AllocatorEvent>();
}

std::size_t MappedSegments::num_contiguous() const {
    std::size_t count = 0;
    const Range* before = nullptr;
    for (const auto& [start, range] : ranges_) {
        count += before == nullptr || before->end != start;
        before = &range;
    }
    return count;
}

}  // namespace profiler
