#include "models/config/compute_capability.h"

#include <gtest/gtest.h>

namespace models {
namespace {

TEST(SmLimits, AreThoseOfTheGeneration) {
    EXPECT_EQ(sm_limits({8, 0}).threads, 2048);
    EXPECT_EQ(sm_limits({8, 0}).shared_bytes_per_block, 163 * 1024);
    EXPECT_EQ(sm_limits({8, 9}).blocks, 24);
}

TEST(SmLimits, OfAnUnknownGenerationAreThoseOfTheOneBefore) {
    EXPECT_EQ(sm_limits({9, 1}).shared_bytes, sm_limits({9, 0}).shared_bytes);
    EXPECT_EQ(sm_limits({13, 0}).threads, sm_limits({12, 0}).threads);
    EXPECT_EQ(sm_limits({3, 5}).threads, sm_limits({6, 0}).threads);
}

}  // namespace
}  // namespace models
