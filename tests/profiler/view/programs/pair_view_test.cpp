#include "profiler/view/programs/pair_view.h"

#include "profiler/view/time_map.h"
#include "tests/support/loaded_step.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using tests::TraceBuilder;

constexpr int64_t kMiB = int64_t{1} << 20;

/// Keeps `activation_bytes` from forward to backward, and holds `update_bytes` in the optimizer.
Trace make_trace(int64_t activation_bytes, int64_t update_bytes) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    b.wait(1000);
    const auto kept = b.allocate({.bytes = activation_bytes, .category = Category::kActivation});
    b.wait(1000);
    b.begin_phase(PhaseKind::kBackward);
    b.wait(1000);
    b.free(kept);
    b.begin_phase(PhaseKind::kOptimizer);
    b.wait(1000);
    b.free(b.allocate({.bytes = update_bytes, .category = Category::kTemporary}));
    b.end_step(1);
    return b.finish();
}

PairRequest request_of(const Loaded& a, const Loaded& b) {
    return {.steps = {&a.index, &b.index},
            .alignment =
                std::make_shared<const Alignment>(align(a.trace, b.trace, TimeAlignment::kPhases))};
}

/// B keeps half as much, but its peak lies in the optimizer, where both need the same.
TEST(PairView, SaysWhereASavingIsWhenThePeakHidesIt) {
    const Loaded a(make_trace(8 * kMiB, 7 * kMiB)), b(make_trace(4 * kMiB, 7 * kMiB));
    const PairView view = build_pair_view(request_of(a, b));
    ASSERT_GE(view.moments.size(), 3U);
    const auto bytes = [&](std::size_t moment) {
        const auto& bars = view.moments[moment].bars;
        return std::pair(bars[0].size_bytes / kMiB, bars[1].size_bytes / kMiB);
    };
    EXPECT_EQ(view.moments[0].title, "own peak");
    EXPECT_EQ(bytes(0), std::pair(int64_t{8}, int64_t{7}));
    EXPECT_EQ(view.moments[1].title, "at A's peak");
    EXPECT_EQ(bytes(1), std::pair(int64_t{8}, int64_t{4}));
    EXPECT_EQ(view.moments[2].title, "end of forward");
    EXPECT_EQ(bytes(2), std::pair(int64_t{8}, int64_t{4}));
    EXPECT_EQ(view.moments[2].change.text, "-50.0 %");
    EXPECT_EQ(view.max_bytes, 8 * kMiB);
}

TEST(PairView, LeavesOutWhatOneOfTheTracesDoesNotKnow) {
    TraceBuilder no_phases;
    no_phases.free(no_phases.allocate({.bytes = kMiB}));
    const Loaded a(make_trace(8 * kMiB, kMiB)), b(no_phases.finish());
    const PairView view = build_pair_view(request_of(a, b));
    ASSERT_EQ(view.moments.size(), 2U);  // the two peaks
    EXPECT_EQ(view.moments[1].title, "at A's peak");
}

}  // namespace
