// Occupancy as CUDA's occupancy calculator computes it.
#include "profiler/virtual_gpu/occupancy.h"

#include <gtest/gtest.h>

namespace profiler::virtual_gpu {
namespace {

const Card kH100{.major = 9,
                 .sm_count = 132,
                 .threads_per_sm = 2048,
                 .blocks_per_sm = 32,
                 .shared_bytes_per_sm = 233472,
                 .shared_bytes_per_block = 232448};

int threads(int registers, int own = 0) {
    return max_threads_of({.registers = registers, .max_threads = own});
}

TEST(Occupancy, ABlockHasAsManyThreadsAsFindRegisters) {
    EXPECT_EQ(threads(32), 1024);
    EXPECT_EQ(threads(64), 1024);
    EXPECT_EQ(threads(65), 896);  // 2304 registers a warp, in units of 256: 28 warps
    EXPECT_EQ(threads(128), 512);
    EXPECT_EQ(threads(255), 256);
    EXPECT_EQ(threads(0), 1024);  // unknown: kAssumedRegisters
}

TEST(Occupancy, AKernelMayAllowFewerThreads) {
    EXPECT_EQ(threads(32, 128), 128);
    EXPECT_EQ(threads(255, 512), 256);
}

TEST(Occupancy, TheScarcestResourceDecides) {
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 32}, {.threads = 256}), 8);   // threads
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 32}, {.threads = 32}), 32);   // blocks
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 168}, {.threads = 128}), 3);  // registers
    const BlockSize large{.threads = 128, .dynamic_shared_bytes = 100 * 1024};
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 32}, large), 2);  // shared memory
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 32, .shared_bytes = 20 * 1024}, large), 1);
}

TEST(Occupancy, WhatCannotBeLaunchedHasNone) {
    EXPECT_EQ(blocks_per_sm(kH100, {.registers = 255}, {.threads = 512}), 0);
    EXPECT_EQ(blocks_per_sm(kH100, {}, {.threads = 0}), 0);
    EXPECT_EQ(blocks_per_sm(kH100, {}, {.threads = 32, .dynamic_shared_bytes = 232449}), 0);
    EXPECT_EQ(blocks_per_sm(kH100, {}, {.threads = 32, .dynamic_shared_bytes = 232448}), 1);
}

}  // namespace
}  // namespace profiler::virtual_gpu
