#include "profiler/analysis/step/event_order.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(PhasesByEvent, AnUpdateInsideOfBackwardCountsFirst) {
    Trace trace;
    const auto add = [&](PhaseKind kind, int64_t first_event, int64_t last_event) {
        trace.phases.append({.kind = kind, .first_event = first_event, .last_event = last_event});
    };
    add(PhaseKind::kForward, 10, 20);
    add(PhaseKind::kBackward, 20, 40);
    add(PhaseKind::kOptimizer, 25, 27);
    add(PhaseKind::kOptimizer, 33, 35);
    const PhasesByEvent phases(trace);
    EXPECT_EQ(phases.kind_at(9), std::nullopt);
    EXPECT_EQ(phases.kind_at(10), PhaseKind::kForward);
    EXPECT_EQ(phases.kind_at(20), PhaseKind::kBackward);
    EXPECT_EQ(phases.kind_at(26), PhaseKind::kOptimizer);
    EXPECT_EQ(phases.kind_at(27), PhaseKind::kBackward);
    EXPECT_EQ(phases.kind_at(34), PhaseKind::kOptimizer);
    EXPECT_EQ(phases.kind_at(39), PhaseKind::kBackward);
    EXPECT_EQ(phases.kind_at(40), std::nullopt);
    EXPECT_FALSE(phases.has_update_before(25));
    EXPECT_TRUE(phases.has_update_before(26));
}

TEST(PhasesByEvent, ATraceWithoutPhasesHasNone) {
    const PhasesByEvent phases{Trace{}};
    EXPECT_EQ(phases.kind_at(0), std::nullopt);
    EXPECT_FALSE(phases.has_update_before(1));
}

}  // namespace
}  // namespace profiler
