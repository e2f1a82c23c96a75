#include "profiler/allocator/driver.h"

#include "profiler/allocator/sizes.h"

#include <algorithm>
#include <iterator>

namespace profiler {

std::optional<int64_t> ModelDriver::allocate_segment(int64_t size_bytes) {
    if (size_bytes > free_bytes()) return std::nullopt;
    used_bytes_ += size_bytes;
    const int64_t span = round_up(size_bytes, kLargeGranuleBytes);
    const auto hole = std::find_if(holes_.begin(), holes_.end(),
                                   [&](const auto& entry) { return entry.second >= span; });
    if (hole == holes_.end()) {
        top_ += span;
        return top_ - span;
    }
    const auto [address, hole_bytes] = *hole;
    holes_.erase(hole);
    if (hole_bytes > span) holes_.emplace(address + span, hole_bytes - span);
    return address;
}

void ModelDriver::free_segment(int64_t address, int64_t size_bytes) {
    used_bytes_ -= size_bytes;
    int64_t span = round_up(size_bytes, kLargeGranuleBytes);
    auto after = holes_.lower_bound(address);
    if (after != holes_.end() && after->first == address + span) {
        span += after->second;
        after = holes_.erase(after);
    }
    if (after != holes_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == address) {
            before->second += span;
            return;
        }
    }
    holes_.emplace(address, span);
}

int64_t ModelDriver::reserve_addresses(int64_t size_bytes, int64_t page_bytes) {
    const int64_t address = round_up(next_reservation_, page_bytes);
    next_reservation_ = address + size_bytes;
    return address;
}

bool ModelDriver::map(int64_t, int64_t size_bytes) {
    if (size_bytes > free_bytes()) return false;
    used_bytes_ += size_bytes;
    return true;
}

void ModelDriver::unmap(int64_t, int64_t size_bytes) { used_bytes_ -= size_bytes; }

}  // namespace profiler
