#include "profiler/analysis/step/offload.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string_view>

namespace {

using namespace tests;

/// A loss that is printed comes back with no copy, and an input goes in with none before.
TEST(OffloadOf, CountsWhatGoesOutInForwardAndComesBackInBackward) {
    TraceBuilder b;
    const auto copy = [&](std::string_view direction, int64_t bytes) {
        b.trace().memcpys.append({.kind = b.text(direction),
                                  .op = b.op("aten::copy_"),
                                  .start_ns = 10,
                                  .end_ns = 15,
                                  .size_bytes = bytes});
    };
    b.begin_step(PhaseKind::kForward);
    copy("host_to_device", 64);
    copy("device_to_host", 100);
    copy("device_to_host", 40);
    copy("device_to_host", 4);
    b.begin_phase(PhaseKind::kBackward);
    copy("host_to_device", 40);
    copy("host_to_device", 100);
    copy("host_to_device", 64);
    b.end_step();
    const Offload offload = offload_of(b.finish());
    EXPECT_EQ(offload.size_bytes, 140);
    EXPECT_EQ(offload.num_copies, 2);
    EXPECT_EQ(offload.copy_ns, 20);
}

}  // namespace
