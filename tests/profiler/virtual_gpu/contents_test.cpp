#include "profiler/virtual_gpu/device_memory.h"

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

TEST(VirtualMemoryContents, LargeCopiesAreNotKeptAndHideWhatWasThere) {
    Contents contents;
    contents.write(100, bytes_of({1, 2}));
    contents.write(100, Bytes(kMaxKeptCopyBytes + 1, std::byte{7}));
    EXPECT_EQ(read(contents, 100, 2), bytes_of({0, 0}));
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
    for (int i = 0; i < 3000; ++i) {
        const std::size_t start = below(kSize);
        const std::size_t size = below(kSize - start) + 1;
        if (below(3) == 0) {
            contents.forget(start, size);
            std::memset(&expected[start], 0, size);
        } else {
            const auto value = static_cast<std::byte>(below(256));
            contents.fill(start, value, size);
            std::memset(&expected[start], static_cast<int>(value), size);
        }
        ASSERT_EQ(read(contents, 0, kSize), expected) << "after write " << i;
    }
}

}  // namespace
}  // namespace profiler::virtual_gpu
