#include "profiler/allocator/free_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

namespace profiler {
namespace {

using Entry = FreeIndex::Entry;
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
    index.erase(Entry{512, 0});
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

TEST(FreeIndex, ThrowsWhenTheErasedBlockIsAbsent) {
    FreeIndex index;
    EXPECT_THROW(index.erase(Entry{512, 0}), std::logic_error);
    for (const int64_t address : {1000, 3000, 2000}) index.insert({1024, address, 0});
    EXPECT_THROW(index.erase(Entry{512, 1000}), std::logic_error);
    for (const int64_t address : {0, 1500, 2500, 4000}) {
        EXPECT_THROW(index.erase(Entry{1024, address}), std::logic_error) << address;
    }
    EXPECT_EQ(keys_of(index), (std::vector<Key>{{1024, 1000}, {1024, 2000}, {1024, 3000}}));
}

/// Goal: a class of many blocks stays in order while it grows, shrinks and becomes empty.
TEST(FreeIndex, HoldsManyBlocksOfOneSize) {
    constexpr int64_t kBlocks = 100'000;
    std::mt19937_64 random(7);
    std::vector<int64_t> addresses;
    for (int64_t i = 0; i < kBlocks; ++i) addresses.push_back(512 * i);
    std::shuffle(addresses.begin(), addresses.end(), random);
    FreeIndex index;
    std::set<Key> truth;
    const auto expect_equal = [&] {
        EXPECT_EQ(keys_of(index), std::vector<Key>(truth.begin(), truth.end()));
        std::vector<Key> backwards;
        for (auto place = index.end(); place != index.begin();) {
            place = index.previous(place);
            backwards.emplace_back(index[place].size_bytes, index[place].address);
        }
        EXPECT_EQ(backwards, std::vector<Key>(truth.rbegin(), truth.rend()));
    };
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        index.insert({1024, addresses[i], 0});
        truth.insert({1024, addresses[i]});
        if (i % 3 != 2) continue;
        const int64_t erased = addresses[i / 3];
        index.erase(Entry{1024, erased});
        truth.erase({1024, erased});
    }
    expect_equal();
    const std::size_t half = truth.size() / 2;
    std::shuffle(addresses.begin(), addresses.end(), random);
    for (const int64_t address : addresses) {
        if (truth.erase({1024, address}) == 0) {
            ASSERT_THROW(index.erase(Entry{1024, address}), std::logic_error);
            continue;
        }
        index.erase(Entry{1024, address});
        const auto found = index.find(1000);
        ASSERT_EQ(found == index.end(), truth.empty());
        if (!truth.empty()) {
            ASSERT_EQ(index[found].address, truth.begin()->second);
        }
        if (truth.size() == half) expect_equal();
    }
    EXPECT_TRUE(index.empty());
    expect_equal();
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
        // No two free blocks have the same address.
        const int64_t step = below(num_steps);
        const Key key{step_bytes * (1 + step), 512 * (step + num_steps * below(100))};
        if (truth.contains(key)) {
            index.erase(Entry{key.first, key.second});
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
