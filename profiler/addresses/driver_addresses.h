#pragma once

#include <cstdint>
#include <map>
#include <optional>

/// Where the CUDA driver puts what is allocated. Addresses break ties between the caching
/// allocator's free blocks of one size, so they decide a few percent of the reserved memory.
namespace profiler {

enum class SegmentPlacement : uint8_t {
    /// Each allocation takes the lowest hole that fits.
    kAscending,
    /// Holes lie in chunks of whole 32 MiB. Where none fits, a new chunk is taken from the highest
    /// free addresses, and the allocation lies at its start. A chunk that holds nothing any more is
    /// given back. Recorded with driver 580 on Linux (docs/dev/virtual_gpu.md).
    kChunks
};

using AddressRanges = std::map<uint64_t, uint64_t>;  // address -> bytes

constexpr uint64_t round_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

/// The addresses of one device, and which of them are taken.
class DriverAddresses {
public:
    DriverAddresses(uint64_t begin, uint64_t size, SegmentPlacement placement);

    /// `size` bytes. None where no hole and no free addresses are large enough.
    std::optional<uint64_t> take(uint64_t size);
    /// A chunk of its own, at a multiple of `alignment`, a power of two.
    std::optional<uint64_t> take_aligned(uint64_t size, uint64_t alignment);
    /// What take or take_aligned gave.
    void give_back(uint64_t address, uint64_t size);

    bool contains(uint64_t address) const { return address - begin_ < size_; }

private:
    std::optional<uint64_t> take_hole(uint64_t size);
    void give_back_chunk_of(AddressRanges::iterator hole);

    uint64_t begin_, size_;
    AddressRanges free_;  // in no chunk
    AddressRanges chunks_;
    AddressRanges holes_;  // in chunks; no hole crosses a chunk's border
};

}  // namespace profiler
