#include "profiler/virtual_gpu/contents.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace profiler::virtual_gpu {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

Bytes read(const Contents& contents, uint64_t address, std::size_t size) {
    Bytes bytes(size, std::byte{99});
    contents.read(address, bytes);
    return bytes;
}

TEST(VirtualMemoryContents, WhatNobodyWroteReadsAsZeros) {
    EXPECT_EQ(read(Contents(), 1000, 3), bytes_of({0, 0, 0}));
}

TEST(VirtualMemoryContents, CopiesReadBackAlsoInParts) {
    Contents contents;
    contents.write(100, bytes_of({1, 2, 3, 4}));
    EXPECT_EQ(read(contents, 98, 8), bytes_of({0, 0, 1, 2, 3, 4, 0, 0}));
    EXPECT_EQ(read(contents, 102, 1), bytes_of({3}));
}

TEST(VirtualMemoryContents, ALaterWriteHidesTheParts) {
    Contents contents;
    contents.write(100, bytes_of({1, 2, 3, 4}));
    contents.write(101, bytes_of({8, 9}));
    EXPECT_EQ(read(contents, 100, 4), bytes_of({1, 8, 9, 4}));
    EXPECT_EQ(contents.host_bytes(), 4U);
}

TEST(VirtualMemoryContents, ForgottenBytesReadAsZeros) {
    Contents contents;
    contents.write(100, bytes_of({1, 2, 3, 4}));
    contents.forget(101, 2);
    EXPECT_EQ(read(contents, 100, 4), bytes_of({1, 0, 0, 4}));
    contents.forget(0, 1000);
    EXPECT_EQ(contents.host_bytes(), 0U);
}

TEST(VirtualMemoryContents, WhatComesOnTopOfTheHostsMemoryIsUnknown) {
    Contents contents;
    contents.write(100, bytes_of({1, 2}));
    const Bytes large(Contents::kMostHostBytes / 2, std::byte{7});
    contents.write(1000, large);
    contents.write(1000 + large.size(), large);
    EXPECT_TRUE(contents.knows(1000, large.size()));
    EXPECT_FALSE(contents.knows(1000 + large.size(), large.size()));
    EXPECT_TRUE(contents.knows(100, 2));
}

TEST(VirtualMemoryContents, KnowsEachByte) {
    Contents contents;
    contents.write(100, bytes_of({0, 2, 3, 4}));
    contents.write(104, bytes_of({5}));
    EXPECT_TRUE(contents.knows(100, 5));
    EXPECT_TRUE(contents.knows(101, 2));
    EXPECT_FALSE(contents.knows(99, 2));
    EXPECT_FALSE(contents.knows(100, 6));
    contents.forget(102, 1);
    EXPECT_FALSE(contents.knows(100, 5));
    Bytes bytes(5);
    EXPECT_FALSE(contents.read(100, bytes));
    EXPECT_TRUE(contents.read(100, std::span(bytes).first(2)));
    EXPECT_TRUE(contents.knows(7, 0));
}

TEST(VirtualMemoryContents, AFillOfAnySizeTakesOnePattern) {
    Contents contents;
    constexpr std::size_t kTerabyte = std::size_t{1} << 40;
    contents.fill(4096, bytes_of({1, 2, 3, 4}), kTerabyte);
    EXPECT_EQ(contents.host_bytes(), 4U);
    EXPECT_TRUE(contents.knows(4096, kTerabyte));
    EXPECT_EQ(read(contents, 4096 + 5, 4), bytes_of({2, 3, 4, 1}));
    contents.write(4096 + 6, bytes_of({9}));  // cuts it in two, the rest in its own phase
    EXPECT_EQ(read(contents, 4096 + 4, 6), bytes_of({1, 2, 9, 4, 1, 2}));
    EXPECT_EQ(read(contents, 4096 + kTerabyte - 1, 2), bytes_of({4, 0}));
    contents.copy(contents, 4096 + 7, 100, 1000);
    EXPECT_EQ(read(contents, 100, 5), bytes_of({4, 1, 2, 3, 4}));
}

TEST(VirtualMemoryContents, CopiesWithinTheDeviceMoveWhatIsKnown) {
    Contents contents;
    contents.write(100, bytes_of({1, 2, 3}));
    contents.copy(contents, 101, 200, 4);
    EXPECT_EQ(read(contents, 200, 4), bytes_of({2, 3, 0, 0}));
    contents.write(300, bytes_of({5}));
    contents.copy(contents, 400, 300, 1);  // from memory that nobody wrote
    EXPECT_EQ(read(contents, 300, 1), bytes_of({0}));
}

TEST(VirtualMemoryContents, RandomWritesEqualAnArray) {
    constexpr std::size_t kSize = 512;
    std::mt19937 random(7);
    const auto below = [&](std::size_t limit) { return random() % limit; };
    Contents contents;
    Bytes expected(kSize, std::byte{0});
    Bytes is_known(kSize, std::byte{0});
    for (int i = 0; i < 3000; ++i) {
        const std::size_t start = below(kSize);
        const std::size_t size = below(kSize - start) + 1;
        const auto kind = below(4);
        if (kind != 1) std::memset(&is_known[start], kind == 0 ? 0 : 1, size);
        if (kind == 0) {
            contents.forget(start, size);
            std::memset(&expected[start], 0, size);
        } else if (kind == 1) {
            const std::size_t source = below(kSize - size + 1);
            contents.copy(contents, source, start, size);
            std::memmove(&expected[start], &expected[source], size);
            std::memmove(&is_known[start], &is_known[source], size);
        } else {
            Bytes pattern(below(5) + 1);
            for (std::byte& byte : pattern) byte = static_cast<std::byte>(below(256));
            contents.fill(start, pattern, size);
            for (std::size_t at = 0; at < size; ++at) {
                expected[start + at] = pattern[at % pattern.size()];
            }
        }
        ASSERT_EQ(read(contents, 0, kSize), expected) << "after write " << i;
        for (std::size_t at = 0; at < kSize; ++at) {
            ASSERT_EQ(contents.knows(at, 1), is_known[at] == std::byte{1}) << "after write " << i;
        }
    }
}

}  // namespace
}  // namespace profiler::virtual_gpu
