#include "profiler/virtual_gpu/device_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace profiler::virtual_gpu {
namespace {

constexpr uint64_t kBase = uint64_t{1} << 40;
constexpr uint64_t kMiB = uint64_t{1} << 20;

Card card_of(int64_t total_bytes, int64_t context_bytes = 0) {
    return {.name = "card", .total_bytes = total_bytes, .context_bytes = context_bytes};
}

DeviceMemory memory_of(const Card& card) {
    return DeviceMemory(card, kBase, 1024 * kMiB, SegmentPlacement::kChunks);
}

TEST(VirtualDeviceMemory, IsFullWithoutTheContext) {
    DeviceMemory memory = memory_of(card_of(10 * kMiB, 4 * kMiB));
    EXPECT_EQ(memory.free_bytes(), static_cast<int64_t>(6 * kMiB));
    EXPECT_TRUE(memory.allocate(4 * kMiB));
    EXPECT_FALSE(memory.allocate(4 * kMiB));
    EXPECT_TRUE(memory.allocate(1));  // one granule
    EXPECT_EQ(memory.free_bytes(), 0);
    EXPECT_FALSE(memory.allocate(UINT64_MAX));
}

TEST(VirtualDeviceMemory, GrantsMoreThanItHasWhileItIsUnlimited) {
    DeviceMemory memory = memory_of(card_of(10 * kMiB));
    DeviceMemory::set_unlimited(true);
    const auto beyond = memory.allocate(100 * kMiB);
    EXPECT_FALSE(memory.allocate(UINT64_MAX));
    DeviceMemory::set_unlimited(false);
    ASSERT_TRUE(beyond);
    EXPECT_EQ(memory.free_bytes(), 0);
    EXPECT_FALSE(memory.allocate(1));
    EXPECT_TRUE(memory.free(*beyond));
    EXPECT_EQ(memory.free_bytes(), static_cast<int64_t>(10 * kMiB));
    EXPECT_TRUE(memory.allocate(10 * kMiB));
}

TEST(VirtualDeviceMemory, RefusesToFreeWhatIsNotAllocated) {
    DeviceMemory memory = memory_of(card_of(10 * kMiB));
    const auto address = memory.allocate(2 * kMiB).value();
    EXPECT_FALSE(memory.free(address + 512));
    EXPECT_TRUE(memory.free(address));
    EXPECT_FALSE(memory.free(address));
}

TEST(VirtualDeviceMemory, FreedMemoryReadsAsZeros) {
    DeviceMemory memory = memory_of(card_of(10 * kMiB));
    const uint64_t address = memory.allocate(2 * kMiB).value();
    memory.contents().fill(address, std::array{std::byte{5}}, 100);
    memory.free(address);
    EXPECT_EQ(memory.contents().host_bytes(), 0U);
}

/// Expandable segments: addresses first, memory later, and the memory lives as long as its
/// mappings.
TEST(VirtualDeviceMemory, MappedMemoryIsTakenOnce) {
    DeviceMemory memory = memory_of(card_of(10 * kMiB));
    const uint64_t address = memory.reserve(100 * kMiB, kGranuleBytes).value();
    EXPECT_EQ(memory.free_bytes(), static_cast<int64_t>(10 * kMiB));
    MemoryHandle* const handle = memory.create(0, 4 * kMiB).release();
    ASSERT_NE(handle, nullptr);
    memory.map(address, *handle);
    memory.end_use(handle);  // the program's own handle
    EXPECT_EQ(memory.free_bytes(), static_cast<int64_t>(6 * kMiB));
    EXPECT_EQ(memory.range_of(address + 5), std::pair(address, 4 * kMiB));
    memory.unmap(address, 4 * kMiB);
    EXPECT_EQ(memory.free_bytes(), static_cast<int64_t>(10 * kMiB));
    EXPECT_EQ(memory.create(0, 12 * kMiB), nullptr);
}

}  // namespace
}  // namespace profiler::virtual_gpu
