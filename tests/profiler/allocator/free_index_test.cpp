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
    EXPECT_EQ(index[index.find(513)].block, 2u);
    EXPECT_EQ(index[index.find(512)].block, 3u);
    EXPECT_EQ(index.find(4097), index.end());
}

TEST(FreeIndex, IsEmptyAgainWhenEverythingWasTakenOut) {
    FreeIndex index;
    EXPECT_EQ(index.begin(), index.end());
    index.insert({512, 0, 0});
    index.erase(512, 0);
    EXPECT_TRUE(index.empty());
    EXPECT_EQ(index.find(1), index.end());
}

TEST(FreeIndex, FindsBlocksOfEverySizeFrom512BytesToManyTebibytes) {
    FreeIndex index;
    for (int log2 = 9; log2 < 50; ++log2) {
        const int64_t size_bytes = int64_t{1} << log2;
        index.insert({size_bytes, log2, 0});
        index.insert({size_bytes + 512, log2, 0});
        EXPECT_EQ(index[index.find(size_bytes)].size_bytes, size_bytes);
        EXPECT_EQ(index[index.find(size_bytes + 1)].size_bytes, size_bytes + 512);
        EXPECT_EQ(index.find(size_bytes + 513), index.end());
    }
}

struct RandomSizes {
    int64_t step_bytes;
    int64_t num_steps;
};

class FreeIndexUnderRandomWork : public testing::TestWithParam<RandomSizes> {};

/// Goal: equal to a std::set at every step, forwards and backwards.
TEST_P(FreeIndexUnderRandomWork, EqualsAnOrderedSet) {
    std::mt19937_64 random(7);
    const auto below = [&](int64_t limit) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    };
    const auto [step_bytes, num_steps] = GetParam();
    FreeIndex index;
    std::set<Key> truth;
    for (int round = 0; round < 20'000; ++round) {
        const Key key{step_bytes * (1 + below(num_steps)), 512 * below(100)};
        if (truth.contains(key)) {
            index.erase(key.first, key.second);
            truth.erase(key);
        } else if (random() % 3 != 0 || truth.size() < 900) {
            index.insert({key.first, key.second, 0});
            truth.insert(key);
        }
        const int64_t wanted_bytes = step_bytes * below(num_steps + 5);
        const auto expected = truth.lower_bound({wanted_bytes, 0});
        const auto found = index.find(wanted_bytes);
        ASSERT_EQ(found == index.end(), expected == truth.end()) << round;
        if (expected != truth.end()) {
            ASSERT_EQ(Key(index[found].size_bytes, index[found].address), *expected) << round;
        }
        if (expected == truth.begin()) continue;
        const auto& before = index[index.previous(found)];
        ASSERT_EQ(Key(before.size_bytes, before.address), *std::prev(expected)) << round;
    }
    EXPECT_GT(truth.size(), 900u);
    EXPECT_EQ(keys_of(index), std::vector<Key>(truth.begin(), truth.end()));
}

INSTANTIATE_TEST_SUITE_P(FewAndManySizesSmallAndLarge, FreeIndexUnderRandomWork,
                         testing::Values(RandomSizes{512, 40}, RandomSizes{512, 5'000},
                                         RandomSizes{int64_t{1} << 20, 3'000}));

}  // namespace
}  // namespace profiler
