#include "profiler/analysis/ranks/collectives.h"

#include "profiler/analysis/step/recorded_step.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;
using tests::TraceBuilder;

/// A step receives before its forward, then has two reduce_scatters, a send and an all_gather.
class CollectivesOfAStep : public testing::Test {
protected:
    CollectivesOfAStep() {
        shard_ = builder_.trace().communicators.append({.name = builder_.text("1")});
        pipeline_ = builder_.trace().communicators.append({.name = builder_.text("2")});
    }

    void add_step() {
        builder_.begin_step();
        add({.communicator = pipeline_, .kind = CollectiveKind::kRecv, .out_bytes = 4});
        builder_.begin_phase(PhaseKind::kForward);
        for (int i = 0; i < 2; ++i) {
            add({.communicator = shard_,
                 .kind = CollectiveKind::kReduceScatter,
                 .in_bytes = 800,
                 .out_bytes = 100});
        }
        add({.communicator = shard_, .kind = CollectiveKind::kSend, .in_bytes = 8});
        add({.communicator = pipeline_,
             .kind = CollectiveKind::kAllGather,
             .in_bytes = 500,
             .out_bytes = 4000});
        builder_.end_step();
    }

    void add(Collective row) {
        row.op = builder_.op("c10d::op");
        row.end_ns = row.start_ns + 30;
        builder_.trace().collectives.append(row);
    }

    TraceBuilder builder_;
    Id<Communicator> shard_, pipeline_;
};

TEST_F(CollectivesOfAStep, AddUpByKindAndGroupLargestFirst) {
    add_step();
    const auto totals = collectives_of(builder_.trace(), last_whole_step(builder_.trace()));
    ASSERT_EQ(totals.size(), 4U);
    EXPECT_EQ(totals[0].communicator, pipeline_);
    EXPECT_EQ(totals[0].size_bytes, 4000);
    EXPECT_EQ(totals[1].kind, CollectiveKind::kReduceScatter);
    EXPECT_EQ(totals[1].count, 2);
    EXPECT_EQ(totals[1].in_bytes, 1600);
    EXPECT_EQ(totals[1].out_bytes, 200);
    EXPECT_EQ(totals[1].time_ns, 60);
    EXPECT_EQ(totals[2].kind, CollectiveKind::kSend);
    EXPECT_EQ(totals[3].kind, CollectiveKind::kRecv);
}

TEST_F(CollectivesOfAStep, AreThoseOfTheLastOneAlsoBeforeItsForward) {
    add_step();
    add_step();
    add({.communicator = shard_, .kind = CollectiveKind::kBroadcast});  // after the last step
    const auto totals = collectives_of(builder_.trace(), last_whole_step(builder_.trace()));
    ASSERT_EQ(totals.size(), 4U);
    EXPECT_EQ(totals[1].count, 2);
    EXPECT_EQ(totals[3].count, 1);
}

/// As the average of the loss behind the update, in a trace of one step.
TEST_F(CollectivesOfAStep, AreThereBehindItsLastPhaseToo) {
    builder_.begin_step(PhaseKind::kOptimizer);
    builder_.op("aten::add_");
    builder_.end_phase();
    add({.communicator = shard_,
         .kind = CollectiveKind::kAllReduce,
         .in_bytes = 4,
         .out_bytes = 4});
    const Trace trace = builder_.finish();
    const auto totals = collectives_of(trace, last_whole_step(trace));
    ASSERT_EQ(totals.size(), 1U);
    EXPECT_EQ(totals[0].kind, CollectiveKind::kAllReduce);
}

TEST_F(CollectivesOfAStep, HaveNoTimeWhereTimesAreAnOrder) {
    add_step();
    builder_.trace().runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0),
                                                          TimeBasis::kEventOrder);
    EXPECT_EQ(collectives_of(builder_.trace(), last_whole_step(builder_.trace()))[1].time_ns, 0);
}

TEST_F(CollectivesOfAStep, CostNothingKnownInAPipelineThatIsModelled) {
    add({.communicator = shard_, .kind = CollectiveKind::kAllReduce});
    EXPECT_TRUE(knows_communication(builder_.trace()));
    builder_.trace().runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0),
                                                          TimeBasis::kModelled);
    EXPECT_TRUE(knows_communication(builder_.trace()));
    add({.communicator = shard_, .kind = CollectiveKind::kSend});
    EXPECT_FALSE(knows_communication(builder_.trace()));
}

TEST_F(CollectivesOfAStep, CostNothingKnownWithoutModelledTimes) {
    builder_.trace().runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0),
                                                          TimeBasis::kModelled);
    EXPECT_TRUE(knows_communication(builder_.trace())) << "there is none";
    add({.communicator = shard_, .kind = CollectiveKind::kAllReduce});
    builder_.trace().collectives.set<&Collective::end_ns>(Id<Collective>(0), 0);
    EXPECT_FALSE(knows_communication(builder_.trace()));
}

TEST_F(CollectivesOfAStep, AreThoseOfTheTraceWithoutSteps) {
    add({.communicator = shard_, .kind = CollectiveKind::kBroadcast, .in_bytes = 1});
    const auto totals = collectives_of(builder_.trace(), last_whole_step(builder_.trace()));
    ASSERT_EQ(totals.size(), 1U);
    EXPECT_EQ(totals[0].kind, CollectiveKind::kBroadcast);
}

}  // namespace
