#include "profiler/capture/cuda/non_torch_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace profiler {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(SyntheticOutsideMemory, GivesEachPartItsGrowth) {
    NonTorchMemory memory(/*used_before=*/700 * kMiB);
    memory.add({.cause = ReadingCause::kContext, .used_bytes = 1200 * kMiB});
    memory.add({.cause = ReadingCause::kCupti, .used_bytes = 1210 * kMiB});
    // Warm-up: 2 GiB of segments, a library's 24 MiB, and code.
    memory.add({.used_bytes = (1210 + 2048 + 24 + 90) * kMiB,
                .reserved_bytes = 2048 * kMiB,
                .library_bytes = 24 * kMiB,
                .module_image_bytes = 400 * kMiB});
    // A step that loads nothing, and 3 MiB that nobody can explain.
    memory.add({.used_bytes = (1210 + 2048 + 24 + 90 + 3) * kMiB,
                .reserved_bytes = 2048 * kMiB,
                .library_bytes = 24 * kMiB,
                .module_image_bytes = 400 * kMiB});
    const OutsideParts& parts = memory.parts();
    EXPECT_EQ(parts.context_bytes, 500 * kMiB);
    EXPECT_EQ(parts.cupti_bytes, 10 * kMiB);
    EXPECT_EQ(parts.libraries_bytes, 24 * kMiB);
    EXPECT_EQ(parts.modules_bytes, 90 * kMiB);
    EXPECT_EQ(parts.unexplained_bytes, 3 * kMiB);
    EXPECT_EQ(parts.nccl_bytes, 0);
    // With the allocator's segments they are all that the device has more in use than before.
    EXPECT_EQ(parts.total_bytes() + 2048 * kMiB, (1210 + 2048 + 24 + 90 + 3 - 700) * kMiB);
}

TEST(SyntheticOutsideMemory, GrowthThatTheLoadedImagesCannotExplainIsUnexplained) {
    NonTorchMemory memory(0);
    memory.add({.cause = ReadingCause::kContext, .used_bytes = 500 * kMiB});
    // A library takes 300 MiB unseen while 20 MiB of code are loaded.
    memory.add({.used_bytes = 820 * kMiB, .module_image_bytes = 20 * kMiB});
    EXPECT_EQ(memory.parts().modules_bytes, 20 * kMiB);
    EXPECT_EQ(memory.parts().unexplained_bytes, 300 * kMiB);
    // A small image takes a page of the driver's.
    memory.add({.used_bytes = 822 * kMiB, .module_image_bytes = 20 * kMiB + 1000});
    EXPECT_EQ(memory.parts().modules_bytes, 22 * kMiB);
    // Images that were loaded before explain no growth of later, and none a loss.
    memory.add({.used_bytes = 825 * kMiB, .module_image_bytes = 20 * kMiB + 1000});
    EXPECT_EQ(memory.parts().unexplained_bytes, 303 * kMiB);
    memory.add({.used_bytes = 815 * kMiB, .module_image_bytes = 50 * kMiB});
    EXPECT_EQ(memory.parts().modules_bytes, 22 * kMiB);
    EXPECT_EQ(memory.parts().unexplained_bytes, 293 * kMiB);
}

TEST(SyntheticOutsideMemory, TheDriversOwnFigureOfTheProcessIsPreferred) {
    NonTorchMemory memory(0);
    memory.add({.cause = ReadingCause::kContext,
                .used_bytes = 9000 * kMiB,  // somebody else's grew meanwhile
                .process_bytes = 510 * kMiB});
    EXPECT_EQ(memory.parts().context_bytes, 510 * kMiB);
}

TEST(SyntheticOutsideMemory, ReleasedMemoryComesOffAgain) {
    NonTorchMemory memory(0);
    memory.add({.cause = ReadingCause::kContext, .used_bytes = 500 * kMiB});
    memory.add({.used_bytes = 800 * kMiB, .nccl_bytes = 300 * kMiB});
    memory.add({.used_bytes = 500 * kMiB, .nccl_bytes = 0});
    EXPECT_EQ(memory.parts().nccl_bytes, 0);
    EXPECT_EQ(memory.parts().unexplained_bytes, 0);
}

TEST(SyntheticDriverAllocations, CountsWhatIsNoSegmentOfTheAllocator) {
    const MemoryRecord records[] = {
        {.is_device_memory = true, .address = 0x10000000, .size_bytes = 20 * kMiB},  // a segment
        {.is_device_memory = true, .address = 0x20000000, .size_bytes = 32 * kMiB},
        {.is_device_memory = true,
         .address = 0x30000000,
         .size_bytes = 8 * kMiB,
         .library = "/opt/lib/libnccl.so.2"},
        {.is_device_memory = false, .address = 0x40000000, .size_bytes = 64 * kMiB},  // pinned
        {.is_device_memory = true, .address = 0x50000000, .size_bytes = 4 * kMiB},
        {.is_release = true, .is_device_memory = true, .address = 0x50000000}};
    DriverAllocations allocations;
    allocations.add(records);
    const std::vector<RecordedSegment> segments{{.address = 0x10000000, .size_bytes = 20 * kMiB}};
    EXPECT_EQ(allocations.outside(segments).library_bytes, 32 * kMiB);
    EXPECT_EQ(allocations.outside(segments).nccl_bytes, 8 * kMiB);
}

TEST(SyntheticDriverAllocations, PiecesOfAnExpandableSegmentAreTheAllocators) {
    const MemoryRecord records[] = {
        {.is_device_memory = true, .address = 0x1000000, .size_bytes = 2 * kMiB},
        {.is_device_memory = true, .address = 0x1000000 + 2 * kMiB, .size_bytes = 2 * kMiB},
        {.is_device_memory = true, .address = 0x1000000 + 4 * kMiB, .size_bytes = 1 * kMiB}};
    DriverAllocations allocations;
    allocations.add(records);
    const std::vector<RecordedSegment> segments{
        {.address = 0x1000000, .size_bytes = 4 * kMiB, .is_expandable = true}};
    EXPECT_EQ(allocations.outside(segments).library_bytes, 1 * kMiB);
}

TEST(SyntheticOutsideMemory, PartsBecomeCounters) {
    Trace trace;
    const Id<Device> device = trace.devices.append({});
    append_memory_counters(
        trace, device, {.time_ns = 5, .used_bytes = 600, .free_bytes = 400, .reserved_bytes = 100},
        {.context_bytes = 450, .unexplained_bytes = 50});
    std::map<std::string, double> values;
    for (std::size_t i = 0; i < trace.counters.size(); ++i) {
        const Counter row = trace.counters[Id<Counter>(i)];
        EXPECT_EQ(row.time_ns, 5);
        values[std::string(trace.text(row.name))] = row.value;
    }
    EXPECT_EQ(values.at("device_free_bytes"), 400);
    EXPECT_EQ(values.at("context_bytes"), 450);
    EXPECT_EQ(values.at("unexplained_bytes"), 50);
    EXPECT_FALSE(values.contains("process_bytes"));  // the driver did not tell
}

}  // namespace
}  // namespace profiler
