#include "profiler/view/quantity_names.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(CompareFigures, AShortNameOfAGpuHasNoMakerAndNoBrand) {
    EXPECT_EQ(short_gpu_name("NVIDIA A100 80 GB SXM"), "A100 80 GB SXM");
    EXPECT_EQ(short_gpu_name("NVIDIA GeForce RTX 3090 Ti"), "RTX 3090 Ti");
    EXPECT_EQ(short_gpu_name("Tesla V100-SXM2-16GB"), "V100-SXM2-16GB");
    EXPECT_EQ(short_gpu_name("AMD Instinct MI300X"), "MI300X");
    EXPECT_EQ(short_gpu_name("B200"), "B200");
    EXPECT_EQ(short_gpu_name(""), "");
}

}  // namespace
}  // namespace profiler
