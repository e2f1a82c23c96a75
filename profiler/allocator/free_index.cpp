#include "profiler/allocator/free_index.h"

namespace profiler {

FreeIndex::Place FreeIndex::find_within(uint32_t size_class, int64_t size_bytes) const {
    const SizeClass& blocks = classes_[size_class];
    const auto too_small =
        std::partition_point(blocks.begin(), blocks.end(),
                             [&](const Entry& entry) { return entry.size_bytes >= size_bytes; });
    return {size_class, static_cast<uint32_t>(too_small - blocks.begin()) - 1};
}

FreeIndex::Place FreeIndex::previous(Place place) const {
    const bool is_end = place == end();
    if (!is_end && place.slot + 1 < classes_[place.size_class].size()) {
        return {place.size_class, place.slot + 1};
    }
    uint32_t size_class = place.size_class - 1;
    while (classes_[size_class].empty()) --size_class;
    return {size_class, 0};
}

}  // namespace profiler
