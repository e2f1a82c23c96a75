#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The free blocks of one pool and stream, ordered by (size, address). Best fit takes the smallest
/// block that is large enough, and the lowest address among blocks of that size.
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
/// few blocks. A search looks at the class of the wanted size, then takes the last block of the
/// next class that has one. With c blocks in a class, a search costs O(log c), insert and erase
/// O(c); finding the class costs O(1).
class FreeIndex {
public:
    struct Entry {
        int64_t size_bytes = 0;
        int64_t address = 0;
        BlockHandle block = kNoBlock;

        bool is_before(const Entry& other) const {
            if (size_bytes != other.size_bytes) return size_bytes < other.size_bytes;
            return address < other.address;
        }
    };
    /// A place in the order. end() is past the last entry.
    struct Place {
        uint32_t size_class = kNumClasses;
        uint32_t slot = 0;
        friend bool operator==(const Place&, const Place&) = default;
    };

    FreeIndex() : classes_(kNumClasses) {}

    bool empty() const { return words_ == 0; }
    Place begin() const { return smallest_from(0); }
    Place end() const { return {}; }
    const Entry& operator[](Place place) const { return classes_[place.size_class][place.slot]; }
    Place next(Place place) const {
        if (place.slot > 0) return {place.size_class, place.slot - 1};
        return smallest_from(place.size_class + 1);
    }
    Place previous(Place place) const;  // `place` is not begin()

    /// The first entry of at least `size_bytes`.
    Place find(int64_t size_bytes) const {
        const uint32_t size_class = class_of(size_bytes);
        const SizeClass& blocks = classes_[size_class];
        if (blocks.empty() || blocks.front().size_bytes < size_bytes) {
            return smallest_from(size_class + 1);
        }
        // All blocks of a class often have one size.
        if (blocks.back().size_bytes >= size_bytes) return last_of(size_class);
        return find_within(size_class, size_bytes);
    }

    void insert(const Entry& entry) {
        const uint32_t size_class = class_of(entry.size_bytes);
        SizeClass& blocks = classes_[size_class];
        bits_[size_class / 64] |= bit(size_class);
        words_ |= bit(size_class / 64);
        blocks.push_back(entry);
        Entry* at = &blocks.back();
        for (; at != blocks.data() && at[-1].is_before(entry); --at) *at = at[-1];
        *at = entry;
    }

    void erase(Place place) {
        SizeClass& blocks = classes_[place.size_class];
        std::copy(blocks.begin() + place.slot + 1, blocks.end(), blocks.begin() + place.slot);
        blocks.pop_back();
        if (blocks.empty()) clear_bit(place.size_class);
    }
    void erase(int64_t size_bytes, int64_t address) {
        Place place = last_of(class_of(size_bytes));
        while ((*this)[place].address != address) --place.slot;
        erase(place);
    }

private:
    using SizeClass = std::vector<Entry>;
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

    Place last_of(uint32_t size_class) const {
        return {size_class, static_cast<uint32_t>(classes_[size_class].size()) - 1};
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
        return last_of(64 * word + static_cast<uint32_t>(std::countr_zero(found)));
    }

    Place find_within(uint32_t size_class, int64_t size_bytes) const;
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
