#include "profiler/allocator/mapped_ranges.h"

#include <iterator>

namespace profiler {
namespace {

int64_t end_of(const RecordedSegment& range) { return range.address + range.size_bytes; }

/// is_small is not compared: events do not record the half pool, only the final segments do.
bool joins(const RecordedSegment& left, const RecordedSegment& right) {
    return end_of(left) == right.address && left.stream == right.stream && left.pool == right.pool;
}

}  // namespace

void MappedRanges::add(RecordedSegment range) {
    const auto after = ranges_.lower_bound(range.address);
    if (after != ranges_.end() && joins(range, after->second)) {
        range.size_bytes += after->second.size_bytes;
        range.is_small = after->second.is_small;
        ranges_.erase(after);
    }
    const auto next = ranges_.lower_bound(range.address);
    if (next != ranges_.begin() && joins(std::prev(next)->second, range)) {
        std::prev(next)->second.size_bytes += range.size_bytes;
        return;
    }
    ranges_[range.address] = range;
}

bool MappedRanges::remove(const RecordedSegment& range) {
    auto holder = ranges_.upper_bound(range.address);
    if (holder == ranges_.begin()) return false;
    --holder;
    const RecordedSegment whole = holder->second;
    if (end_of(range) > end_of(whole)) return false;
    ranges_.erase(holder);
    if (range.address > whole.address) {
        RecordedSegment before = whole;
        before.size_bytes = range.address - whole.address;
        ranges_[before.address] = before;
    }
    if (end_of(range) < end_of(whole)) {
        RecordedSegment after = whole;
        after.address = end_of(range);
        after.size_bytes = end_of(whole) - end_of(range);
        ranges_[after.address] = after;
    }
    return true;
}

std::vector<RecordedSegment> MappedRanges::ranges() const {
    std::vector<RecordedSegment> all;
    for (const auto& [address, range] : ranges_) all.push_back(range);
    return all;
}

}  // namespace profiler
