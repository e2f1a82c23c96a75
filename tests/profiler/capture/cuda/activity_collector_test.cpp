#include "profiler/capture/cuda/activity_collector.h"

#include "tests/profiler/capture/cuda/activity_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace profiler {
namespace {

/// Fills buffers of the collector as CUPTI does, with `count` kernels; false: none was given.
bool fill(ActivityCollector& collector, int64_t count) {
    const CUpti_ActivityKernel10 record = tests::kernel(10, 20, 1);
    while (count > 0) {
        const std::span<uint8_t> buffer = collector.request();
        if (buffer.empty()) return false;
        std::size_t valid_bytes = 0;
        for (; count > 0 && valid_bytes + sizeof record <= buffer.size(); --count) {
            std::memcpy(buffer.data() + valid_bytes, &record, sizeof record);
            valid_bytes += sizeof record;
        }
        collector.complete(buffer.data(), valid_bytes);
    }
    return true;
}

TEST(SyntheticActivityCollector, LosesNoneOfAMillionRecords) {
    constexpr int64_t kCount = 1'000'000;
    ActivityCollector collector(tests::next_activity_record());
    ASSERT_TRUE(fill(collector, kCount));
    const ActivityRecords records = collector.take();
    EXPECT_EQ(records.kernels.size(), static_cast<std::size_t>(kCount));
    EXPECT_EQ(records.broken_buffers, 0);
    EXPECT_TRUE(collector.take().kernels.empty());
}

TEST(SyntheticActivityCollector, TakesBuffersFromSeveralThreads) {
    ActivityCollector collector(tests::next_activity_record(),
                                {.buffer_bytes = 1 << 16, .max_buffers = 1024});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { fill(collector, 20'000); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(collector.take().kernels.size(), 80'000U);
}

TEST(SyntheticActivityCollector, GivesNoBufferBeyondItsLimitAndGoesOnAfterwards) {
    ActivityCollector collector(tests::next_activity_record(),
                                {.buffer_bytes = 4096, .max_buffers = 2});
    const std::span<uint8_t> first = collector.request();
    const std::span<uint8_t> second = collector.request();
    ASSERT_EQ(first.size(), 4096U);
    EXPECT_TRUE(collector.request().empty());
    collector.complete(first.data(), 0);
    EXPECT_TRUE(collector.take().kernels.empty());
    EXPECT_EQ(collector.request().data(), first.data());
    collector.complete(second.data(), 0);
}

TEST(SyntheticActivityCollector, KnowsItsOwnMemory) {
    ActivityCollector collector(tests::next_activity_record(), {.buffer_bytes = 1 << 20});
    EXPECT_EQ(collector.most_host_bytes(), 0);
    ASSERT_TRUE(fill(collector, 100));
    const int64_t records = static_cast<int64_t>(collector.take().kernels.size());
    EXPECT_EQ(records, 100);
    // The records were handed over, and had been there.
    const auto record_bytes = static_cast<int64_t>(sizeof(KernelRecord));
    EXPECT_GE(collector.most_host_bytes(), (1 << 20) + records * record_bytes);
}

}  // namespace
}  // namespace profiler
