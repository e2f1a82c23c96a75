#include "profiler/allocator/free_index.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace profiler {

uint32_t FreeIndex::SizeClass::chunk_for(const Entry& entry) const {
    const auto lies_before = [&](const Chunk& chunk) { return chunk.front().is_before(entry); };
    if (more.empty() || !lies_before(blocks)) return 0;
    const auto found = std::partition_point(more.begin(), more.end(), lies_before);
    return std::min(static_cast<uint32_t>(found - more.begin()) + 1, num_chunks() - 1);
}

void FreeIndex::SizeClass::split(uint32_t number) {
    Chunk& smaller = chunk(number);
    const auto middle = smaller.begin() + static_cast<std::ptrdiff_t>(smaller.size() / 2);
    Chunk larger(smaller.begin(), middle);
    smaller.erase(smaller.begin(), middle);
    more.insert(more.begin() + number, std::move(larger));
}

void FreeIndex::remove_chunk(Place place) {
    SizeClass& entries = classes_[place.size_class];
    if (entries.more.empty()) return clear_bit(place.size_class);
    if (place.chunk == 0) {
        entries.blocks = std::move(entries.more.front());
        place.chunk = 1;
    }
    entries.more.erase(entries.more.begin() + (place.chunk - 1));
}

FreeIndex::Place FreeIndex::find_within(uint32_t size_class, const Entry& wanted) const {
    const SizeClass& entries = classes_[size_class];
    const uint32_t number = entries.chunk_for(wanted);
    const Chunk& chunk = entries.chunk(number);
    const auto before = std::partition_point(
        chunk.begin(), chunk.end(), [&](const Entry& entry) { return !entry.is_before(wanted); });
    return {size_class, number, static_cast<uint32_t>(before - chunk.begin()) - 1};
}

FreeIndex::Place FreeIndex::previous(Place place) const {
    const bool is_end = place == end();
    if (!is_end && place.slot + 1 < classes_[place.size_class].chunk(place.chunk).size()) {
        return {place.size_class, place.chunk, place.slot + 1};
    }
    if (!is_end && place.chunk > 0) return {place.size_class, place.chunk - 1, 0};
    uint32_t size_class = place.size_class - 1;
    while (classes_[size_class].blocks.empty()) --size_class;
    return {size_class, classes_[size_class].num_chunks() - 1, 0};
}

void FreeIndex::throw_absent(const Entry& wanted) {
    throw std::logic_error(fmt::format("no free block of {} bytes at address {:#x} is known",
                                       wanted.size_bytes, wanted.address));
}

}  // namespace profiler
