#include "profiler/allocator/driver.h"
#include "profiler/allocator/sizes.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(ModelDriver, IsFullWhenItsMemoryIsTaken) {
    ModelDriver driver(22 * kMiB);
    const int64_t a = *driver.allocate_segment(20 * kMiB);
    EXPECT_FALSE(driver.allocate_segment(4 * kMiB));
    EXPECT_TRUE(driver.map(int64_t{1} << 45, 2 * kMiB));
    EXPECT_FALSE(driver.map(int64_t{1} << 46, 2 * kMiB));
    driver.free_segment(a, 20 * kMiB);
    EXPECT_EQ(driver.free_bytes(), 20 * kMiB);
}

}  // namespace
}  // namespace profiler
