#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The free blocks of one pool and stream, ordered by (size, order, address). Best fit takes the
/// smallest block that is large enough, and the first among blocks of that size.
namespace profiler {

using BlockHandle = uint32_t;
inline constexpr BlockHandle kNoBlock = UINT32_MAX;

/// Blocks are kept in classes of similar size, and a bit per class says whether it has any:
///
///     words_      1 0 1 ...                   which words of bits_ are not zero
///     bits_       0010...  0000...  0100...   which classes have blocks
///     classes_    [] [] [c b a] [] ...        each sorted, its smallest block last
///
/// A class is one size up to 16 KiB, then 1/32 of a power of two, so it rarely holds more than a
/// few blocks. A class of many, as a program with many equal tensors leaves, is cut into chunks:
///
///     blocks [c b a]  more [[f e d] [i h g]]  each chunk sorted so, the smallest chunk first
///
/// A search looks at the class of the wanted size, then takes the last block of the next class that
/// has one. Finding the class costs O(1). With c blocks in a class and at most k = kMaxChunk in a
/// chunk, a search costs O(log c), insert and erase O(k + c / k).
class FreeIndex {
public:
    struct Entry {
        int64_t size_bytes = 0;
        int64_t address = 0;
        BlockHandle block = kNoBlock;
        uint32_t order = 0;  // Block::order

        bool is_before(const Entry& other) const {
            if (size_bytes != other.size_bytes) return size_bytes < other.size_bytes;
            if (order != other.order) return order < other.order;
            return address < other.address;
        }
    };
    /// A place in the order. end() is past the last entry.
    struct Place {
        uint32_t size_class = kNumClasses;
        uint32_t chunk = 0;
        uint32_t slot = 0;
        friend bool operator==(const Place&, const Place&) = default;
    };

    FreeIndex() : classes_(kNumClasses) {}

    bool empty() const { return words_ == 0; }
    Place begin() const { return smallest_from(0); }
    Place end() const { return {}; }
    const Entry& operator[](Place place) const {
        return classes_[place.size_class].chunk(place.chunk)[place.slot];
    }
    Place next(Place place) const {
        if (place.slot > 0) return {place.size_class, place.chunk, place.slot - 1};
        if (place.chunk + 1 < classes_[place.size_class].num_chunks()) {
            return last_of(place.size_class, place.chunk + 1);
        }
        return smallest_from(place.size_class + 1);
    }
    Place previous(Place place) const;  // `place` is not begin()

    /// The first entry of at least `size_bytes`.
    Place find(int64_t size_bytes) const {
        const uint32_t size_class = class_of(size_bytes);
        const SizeClass& entries = classes_[size_class];
        if (entries.blocks.empty() || entries.largest().size_bytes < size_bytes) {
            return smallest_from(size_class + 1);
        }
        // All blocks of a class often have one size.
        if (entries.blocks.back().size_bytes >= size_bytes) return last_of(size_class, 0);
        return find_within(size_class, {.size_bytes = size_bytes, .address = INT64_MIN});
    }

    void insert(const Entry& entry) {
        const uint32_t size_class = class_of(entry.size_bytes);
        SizeClass& entries = classes_[size_class];
        bits_[size_class / 64] |= bit(size_class);
        words_ |= bit(size_class / 64);
        const uint32_t number = entries.more.empty() ? 0 : entries.chunk_for(entry);
        Chunk& chunk = entries.chunk(number);
        chunk.push_back(entry);
        Entry* at = &chunk.back();
        for (; at != chunk.data() && at[-1].is_before(entry); --at) *at = at[-1];
        *at = entry;
        if (chunk.size() > kMaxChunk) entries.split(number);
    }

    void erase(Place place) {
        Chunk& chunk = classes_[place.size_class].chunk(place.chunk);
        std::copy(chunk.begin() + place.slot + 1, chunk.end(), chunk.begin() + place.slot);
        chunk.pop_back();
        if (chunk.empty()) remove_chunk(place);
    }
    /// Erases the entry of this size, order and address. No two entries have the same address.
    /// Throws std::logic_error when there is none.
    void erase(const Entry& wanted) {
        const uint32_t size_class = class_of(wanted.size_bytes);
        if (classes_[size_class].blocks.empty() ||
            classes_[size_class].largest().is_before(wanted)) {
            throw_absent(wanted);
        }
        const Place place = find_within(size_class, wanted);
        if (wanted.is_before((*this)[place])) throw_absent(wanted);
        erase(place);
    }

private:
    using Chunk = std::vector<Entry>;
    static constexpr std::size_t kMaxChunk = 512;

    struct SizeClass {
        Chunk blocks;             // chunk 0; empty only if the class is
        std::vector<Chunk> more;  // chunks 1, 2, ...; none is empty

        uint32_t num_chunks() const { return static_cast<uint32_t>(more.size()) + 1; }
        Chunk& chunk(uint32_t number) { return number == 0 ? blocks : more[number - 1]; }
        const Chunk& chunk(uint32_t number) const {
            return number == 0 ? blocks : more[number - 1];
        }
        /// The class is not empty.
        const Entry& largest() const { return more.empty() ? blocks.front() : more.back().front(); }
        /// The first chunk that holds an entry that is not before this one; otherwise the last.
        uint32_t chunk_for(const Entry& entry) const;
        /// Moves the larger half of a chunk to a chunk after it.
        void split(uint32_t number);
    };
    static constexpr uint64_t kStepBytes = 512;
    static constexpr uint32_t kClassesPerOctave = 32;
    static constexpr uint32_t kNumClasses = 1024;  // the last one holds all blocks from 32 TiB on

    static uint64_t bit(uint32_t index) { return uint64_t{1} << index % 64; }

    /// The leading six binary digits of the size in steps, and how many follow them.
    static uint32_t class_of(int64_t size_bytes) {
        const auto steps = static_cast<uint64_t>(size_bytes) / kStepBytes;
        const int following = std::max(0, static_cast<int>(std::bit_width(steps)) - 6);
        const auto leading = static_cast<uint32_t>(steps >> following);
        return std::min(static_cast<uint32_t>(following) * kClassesPerOctave + leading,
                        kNumClasses - 1);
    }

    /// The smallest entry of a chunk.
    Place last_of(uint32_t size_class, uint32_t chunk) const {
        const std::size_t size = classes_[size_class].chunk(chunk).size();
        return {size_class, chunk, static_cast<uint32_t>(size) - 1};
    }

    /// The smallest entry of the classes from `size_class` on.
    Place smallest_from(uint32_t size_class) const {
        if (size_class >= kNumClasses) return end();
        uint32_t word = size_class / 64;
        uint64_t found = bits_[word] & ~(bit(size_class) - 1);
        if (found == 0) {
            const uint64_t words = words_ & ~(2 * bit(word) - 1);
            if (words == 0) return end();
            word = static_cast<uint32_t>(std::countr_zero(words));
            found = bits_[word];
        }
        return last_of(64 * word + static_cast<uint32_t>(std::countr_zero(found)), 0);
    }

    /// The first entry that is not before `wanted`. The class has one.
    Place find_within(uint32_t size_class, const Entry& wanted) const;
    void remove_chunk(Place place);
    [[noreturn]] static void throw_absent(const Entry& wanted);
    void clear_bit(uint32_t size_class) {
        const uint32_t word = size_class / 64;
        bits_[word] &= ~bit(size_class);
        if (bits_[word] == 0) words_ &= ~bit(word);
    }

    uint64_t words_ = 0;
    std::array<uint64_t, kNumClasses / 64> bits_{};
    std::vector<SizeClass> classes_;
};

}  // namespace profiler
