#include "profiler/analysis/blocks/device_memory.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace tests;

TEST(MemoryByDevice, TellsWhichOneRanOut) {
    TraceBuilder b;
    const auto gone = b.allocate({.bytes = 100});
    b.free(gone);
    b.allocate({.bytes = 40});
    const Id<Device> other = b.trace().devices.append({.name = b.text("cuda:1")});
    b.trace().devices.append({.name = b.text("cuda:2")});
    const auto block = b.allocate({.bytes = 64});
    b.trace().allocations.set<&Allocation::device>(block, other);
    b.trace().failures.append({.device = other, .requested_bytes = 8});
    const Trace trace = b.finish();
    const auto devices = memory_by_device(trace);
    ASSERT_EQ(devices.size(), 2U) << "one without allocations is left out";
    EXPECT_EQ(devices[0].peak_bytes, 100);
    EXPECT_EQ(devices[0].end_bytes, 40);
    EXPECT_EQ(devices[0].refused_bytes, 0);
    EXPECT_EQ(devices[1].peak_bytes, 64);
    EXPECT_EQ(devices[1].refused_bytes, 8);
}

}  // namespace
