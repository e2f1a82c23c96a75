#include "profiler/allocator/free_index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace profiler {
namespace {

using Key = std::pair<int64_t, int64_t>;

std::vector<Key> keys_of(const FreeIndex& index) {
    std::vector<Key> keys;
    for (auto place = index.begin(); place != index.end(); place = index.next(place)) {
        keys.emplace_back(index[place].size_bytes, index[place].address);
    }
    return keys;
}

TEST(FreeIndex, FindsTheSmallestThatFitsAndTheLowestAmongEquals) {
    FreeIndex index;
    index.insert({1024, 300, 1});
    index.insert({1024, 100, 2});
    index.insert({512, 500, 3});
    index.insert({4096, 50, 4});
    EXPECT_EQ(index[index.lower_bound(513)].block, 2u);
    EXPECT_EQ(index[index.lower_bound(512)].block, 3u);
    EXPECT_EQ(index[index.lower_bound(1024, 101)].block, 1u);
    EXPECT_EQ(index.lower_bound(4097), index.end());
}

TEST(FreeIndex, IsEmptyAgainWhenEverythingWasTakenOut) {
    FreeIndex index;
    EXPECT_EQ(index.begin(), index.end());
    index.insert({512, 0, 0});
    index.erase(512, 0);
    EXPECT_TRUE(index.empty());
    EXPECT_EQ(index.lower_bound(1), index.end());
}

/// Goal: equal to a std::set at every step, forwards and backwards, far beyond one bucket.
TEST(FreeIndex, EqualsAnOrderedSetUnderRandomWork) {
    std::mt19937 random(7);
    FreeIndex index;
    std::set<Key> truth;
    for (int round = 0; round < 20'000; ++round) {
        const Key key{512 * (1 + random() % 40), 512 * (random() % 5'000)};
        if (truth.contains(key)) {
            index.erase(key.first, key.second);
            truth.erase(key);
        } else if (random() % 3 != 0 || truth.size() < 900) {
            index.insert({key.first, key.second, 0});
            truth.insert(key);
        }
        const Key wanted{512 * (random() % 45), 512 * (random() % 5'000)};
        const auto expected = truth.lower_bound(wanted);
        const auto found = index.lower_bound(wanted.first, wanted.second);
        ASSERT_EQ(found == index.end(), expected == truth.end()) << round;
        if (expected == truth.end()) continue;
        ASSERT_EQ(Key(index[found].size_bytes, index[found].address), *expected) << round;
        if (expected == truth.begin()) continue;
        const auto& before = index[index.previous(found)];
        ASSERT_EQ(Key(before.size_bytes, before.address), *std::prev(expected)) << round;
    }
    EXPECT_GT(truth.size(), 900u);
    EXPECT_EQ(keys_of(index), std::vector<Key>(truth.begin(), truth.end()));
}

}  // namespace
}  // namespace profiler
