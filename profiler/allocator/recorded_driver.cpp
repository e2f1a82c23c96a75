#include "profiler/allocator/recorded_driver.h"

#include <algorithm>

namespace profiler {

bool RecordedDriver::expects_segment() const {
    return std::any_of(expected_.begin(), expected_.end(), [](const Expected& expected) {
        return expected.event.action == RecordedAction::kSegmentAlloc;
    });
}

std::optional<int64_t> RecordedDriver::allocate_segment(int64_t size_bytes) {
    if (!hold(size_bytes)) return std::nullopt;
    for (Expected& expected : expected_) {
        if (expected.is_taken || expected.event.action != RecordedAction::kSegmentAlloc) continue;
        if (expected.event.size_bytes != size_bytes) continue;
        expected.is_taken = true;
        return expected.event.address;
    }
    return nowhere(size_bytes);
}

/// A new reservation begins where the recording maps next.
int64_t RecordedDriver::reserve_addresses(int64_t size_bytes, int64_t) {
    for (const Expected& expected : expected_) {
        if (expected.event.action == RecordedAction::kSegmentMap) return expected.event.address;
    }
    return nowhere(size_bytes);
}

bool RecordedDriver::map(int64_t, int64_t size_bytes) { return hold(size_bytes); }

/// Keeps the counters from overflowing when a recording is damaged.
bool RecordedDriver::hold(int64_t size_bytes) {
    if (size_bytes > kNowhere - held_bytes_) return false;
    held_bytes_ += size_bytes;
    return true;
}

/// For a segment that the recording does not have, an address far from all recorded ones.
int64_t RecordedDriver::nowhere(int64_t size_bytes) {
    if (size_bytes > 2 * kNowhere - next_unknown_) next_unknown_ = kNowhere;
    const int64_t address = next_unknown_;
    next_unknown_ += size_bytes;
    return address;
}

}  // namespace profiler
