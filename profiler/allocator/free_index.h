#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// The free blocks of one pool and stream, by (size, address): best fit takes the smallest that is
/// large enough, the lowest address among equals.
namespace profiler {

using BlockHandle = uint32_t;
inline constexpr BlockHandle kNoBlock = UINT32_MAX;

/// A sorted list cut into buckets of at most kBucketEntries, so that an insertion moves little
/// memory however long the list is:
///
///     buckets_   [ a b c d ][ e f ][ g h i ]      all keys of a bucket before those of the next
///     last_          d         f       i          their last keys side by side, to find a bucket
///
/// Find, insert and erase cost O(log n + kBucketEntries + n / kBucketEntries), the latter two as
/// moves of memory. Searches do not branch on the keys: they are random, and a wrong guess of the
/// processor costs more than a comparison.
class FreeIndex {
public:
    struct Key {
        int64_t size_bytes = 0;
        int64_t address = 0;

        bool before(Key other) const {
            return (size_bytes < other.size_bytes) |
                   ((size_bytes == other.size_bytes) & (address < other.address));
        }
    };
    struct Entry {
        int64_t size_bytes = 0;
        int64_t address = 0;
        BlockHandle block = kNoBlock;

        Key key() const { return {size_bytes, address}; }
    };
    /// A place in the order; past the last entry when `bucket` is the number of buckets.
    struct Place {
        std::size_t bucket = 0;
        std::size_t slot = 0;
        friend bool operator==(const Place&, const Place&) = default;
    };

    bool empty() const { return buckets_.empty(); }
    Place begin() const { return {}; }
    Place end() const { return {buckets_.size(), 0}; }
    const Entry& operator[](Place place) const { return buckets_[place.bucket][place.slot]; }
    Place next(Place place) const;
    Place previous(Place place) const;  // `place` is not begin()

    /// The first entry that is at least (size_bytes, address).
    Place lower_bound(int64_t size_bytes, int64_t address = 0) const;

    void insert(const Entry& entry);
    void erase(Place place);
    void erase(int64_t size_bytes, int64_t address) { erase(lower_bound(size_bytes, address)); }

private:
    static constexpr std::size_t kBucketEntries = 64;
    using Bucket = std::vector<Entry>;

    Bucket new_bucket();
    void split(std::size_t bucket);

    std::vector<Bucket> buckets_;  // none is empty
    std::vector<Key> last_;        // of each bucket
    Bucket spare_;                 // the memory of the last one that became empty
};

}  // namespace profiler
