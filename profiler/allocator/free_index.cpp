#include "profiler/allocator/free_index.h"

#include <algorithm>

namespace profiler {
namespace {

FreeIndex::Key key_of(const FreeIndex::Entry& entry) { return entry.key(); }
FreeIndex::Key key_of(FreeIndex::Key key) { return key; }

/// Size and address as one number: a subtraction with borrow compares both without a branch.
__extension__ using Wide = unsigned __int128;
Wide wide(FreeIndex::Key key) {
    return Wide{static_cast<uint64_t>(key.size_bytes)} << 64 | static_cast<uint64_t>(key.address);
}

/// The number of items whose key is before `key`, in a sorted row.
template <typename T>
std::size_t count_before(const std::vector<T>& row, FreeIndex::Key key) {
    const T* base = row.data();
    std::size_t count = row.size();
    if (count == 0) return 0;
    const Wide wanted = wide(key);
    while (count > 1) {
        const std::size_t half = count / 2;
        // A mask: compilers turn a conditional back into a branch.
        base += half & (std::size_t{0} - std::size_t{wide(key_of(base[half - 1])) < wanted});
        count -= half;
    }
    return static_cast<std::size_t>(base - row.data()) +
           static_cast<std::size_t>(wide(key_of(*base)) < wanted);
}

std::ptrdiff_t offset(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

}  // namespace

FreeIndex::Place FreeIndex::next(Place place) const {
    if (place.slot + 1 < buckets_[place.bucket].size()) return {place.bucket, place.slot + 1};
    return {place.bucket + 1, 0};
}

FreeIndex::Place FreeIndex::previous(Place place) const {
    if (place.slot > 0) return {place.bucket, place.slot - 1};
    return {place.bucket - 1, buckets_[place.bucket - 1].size() - 1};
}

FreeIndex::Place FreeIndex::lower_bound(int64_t size_bytes, int64_t address) const {
    const Key key{size_bytes, address};
    const std::size_t bucket = count_before(last_, key);
    if (bucket == buckets_.size()) return end();
    return {bucket, count_before(buckets_[bucket], key)};
}

void FreeIndex::insert(const Entry& entry) {
    if (buckets_.empty()) {
        buckets_.push_back(new_bucket());
        last_.push_back(entry.key());
    }
    const std::size_t at = std::min(count_before(last_, entry.key()), buckets_.size() - 1);
    Bucket& bucket = buckets_[at];
    bucket.insert(bucket.begin() + offset(count_before(bucket, entry.key())), entry);
    last_[at] = bucket.back().key();
    if (bucket.size() > kBucketEntries) split(at);
}

void FreeIndex::split(std::size_t at) {
    const auto middle = buckets_[at].begin() + kBucketEntries / 2;
    Bucket upper = new_bucket();
    upper.assign(middle, buckets_[at].end());
    buckets_[at].erase(middle, buckets_[at].end());
    last_.insert(last_.begin() + offset(at), buckets_[at].back().key());
    buckets_.insert(buckets_.begin() + offset(at + 1), std::move(upper));
}

FreeIndex::Bucket FreeIndex::new_bucket() {
    Bucket bucket = std::move(spare_);
    spare_ = {};
    bucket.reserve(kBucketEntries + 1);
    return bucket;
}

void FreeIndex::erase(Place place) {
    Bucket& bucket = buckets_[place.bucket];
    bucket.erase(bucket.begin() + offset(place.slot));
    if (!bucket.empty()) {
        last_[place.bucket] = bucket.back().key();
        return;
    }
    spare_ = std::move(bucket);
    buckets_.erase(buckets_.begin() + offset(place.bucket));
    last_.erase(last_.begin() + offset(place.bucket));
}

}  // namespace profiler
