#include "profiler/allocator/driver.h"

#include "profiler/allocator/sizes.h"

namespace profiler {

std::optional<int64_t> ModelDriver::allocate_segment(int64_t size_bytes) {
    if (size_bytes > free_bytes()) return std::nullopt;
    const auto address =
        segments_.take(static_cast<uint64_t>(round_up(size_bytes, kLargeGranuleBytes)));
    if (!address) return std::nullopt;
    used_bytes_ += size_bytes;
    return static_cast<int64_t>(*address);
}

void ModelDriver::free_segment(int64_t address, int64_t size_bytes) {
    used_bytes_ -= size_bytes;
    if (!segments_.contains(static_cast<uint64_t>(address))) return;  // it was held before
    segments_.give_back(static_cast<uint64_t>(address),
                        static_cast<uint64_t>(round_up(size_bytes, kLargeGranuleBytes)));
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
