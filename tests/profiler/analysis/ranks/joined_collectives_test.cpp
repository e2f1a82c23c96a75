#include "profiler/analysis/ranks/collectives.h"

#include "profiler/analysis/ops/gpu_time.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step/throughput.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <memory>

namespace {

using namespace profiler;
using tests::TraceBuilder;

/// `Member` of the only row of `run`. Inside of a test, `Run` is a function of gtest.
template <auto Member, typename Value>
void set_of_run(Trace& trace, Value value) {
    trace.runs.set<Member>(Id<profiler::Run>(0), value);
}
constexpr auto kSource = &profiler::Run::source;

/// A rank of a run of four with a communicator of all.
class RankTrace {
public:
    explicit RankTrace(int64_t rank, std::string_view ranks = "[0, 1, 2, 3]") {
        auto& trace = builder_.trace();
        set_of_run<&profiler::Run::rank>(trace, rank);
        set_of_run<&profiler::Run::world_size>(trace, 4);
        set_of_run<&profiler::Run::source>(trace, Source::kMeasuredCuda);
        group_ = trace.communicators.append(
            {.name = builder_.text("0"), .num_ranks = 4, .ranks = builder_.text(ranks)});
    }

    /// With the kernel that does it.
    Id<Collective> add(CollectiveKind kind, int64_t start_ns, int64_t end_ns, int64_t peer = -1) {
        const auto kernel = trace().kernels.append({.start_ns = start_ns, .end_ns = end_ns});
        return builder_.trace().collectives.append({.op = builder_.op("c10d::op"),
                                                    .kernel = kernel,
                                                    .communicator = group_,
                                                    .kind = kind,
                                                    .peer = peer,
                                                    .start_ns = start_ns,
                                                    .end_ns = end_ns});
    }

    Trace& trace() { return builder_.trace(); }
    TraceBuilder& builder() { return builder_; }

private:
    TraceBuilder builder_;
    Id<Communicator> group_;
};

std::vector<std::pair<std::size_t, int32_t>> parts_of(const JoinedCollective& joined) {
    std::vector<std::pair<std::size_t, int32_t>> parts;
    for (const auto& part : joined.parts) parts.emplace_back(part.trace, part.collective.value);
    return parts;
}

using Parts = std::vector<std::pair<std::size_t, int32_t>>;

TEST(JoinedCollectives, AreTheNthOfAKindInACommunicator) {
    RankTrace first(0), second(1);
    first.add(CollectiveKind::kAllReduce, 0, 10);
    first.add(CollectiveKind::kAllGather, 10, 20);
    first.add(CollectiveKind::kAllReduce, 20, 30);
    second.add(CollectiveKind::kAllGather, 5, 20);  // another order within the rank
    second.add(CollectiveKind::kAllReduce, 6, 30);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    const auto joined = join_collectives(traces);
    ASSERT_EQ(joined.size(), 3U);
    EXPECT_EQ(parts_of(joined[0]), (Parts{{0, 0}, {1, 1}}));
    EXPECT_EQ(parts_of(joined[1]), (Parts{{0, 1}, {1, 0}}));
    EXPECT_EQ(parts_of(joined[2]), (Parts{{0, 2}}));
}

TEST(JoinedCollectives, OfDifferentGroupsStayApart) {
    RankTrace first(0, "[0, 1]"), second(2, "[2, 3]");
    first.add(CollectiveKind::kAllReduce, 0, 10);
    second.add(CollectiveKind::kAllReduce, 0, 10);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    EXPECT_EQ(join_collectives(traces).size(), 2U);
}

/// Peers count within the communicator: rank 3 is number 1 of "[2, 3]".
TEST(JoinedCollectives, ASendMeetsItsReceive) {
    RankTrace first(2, "[2, 3]"), second(3, "[2, 3]");
    first.add(CollectiveKind::kSend, 0, 10, 1);
    first.add(CollectiveKind::kRecv, 20, 30, 1);
    second.add(CollectiveKind::kSend, 5, 30, 0);
    second.add(CollectiveKind::kRecv, 0, 10, 0);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    const auto joined = join_collectives(traces);
    ASSERT_EQ(joined.size(), 2U);
    EXPECT_EQ(parts_of(joined[0]), (Parts{{0, 0}, {1, 1}}));
    EXPECT_EQ(parts_of(joined[1]), (Parts{{0, 1}, {1, 0}}));
}

/// A rank that was recorded from another step on would otherwise be taken for late.
TEST(JoinedCollectives, ThatContradictEachOtherAreNotJoined) {
    RankTrace first(0), second(1);
    const auto small = first.add(CollectiveKind::kAllReduce, 0, 10);
    const auto large = second.add(CollectiveKind::kAllReduce, 0, 10);
    first.trace().collectives.set<&Collective::in_bytes>(small, 100);
    second.trace().collectives.set<&Collective::in_bytes>(large, 200);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    EXPECT_EQ(join_collectives(traces).size(), 2U);
}

/// The third rank shares no collective with the first; the second joins them.
TEST(RankClocks, DifferByTheMedianAtTheEndsOfCollectives) {
    RankTrace first(0, "[0, 1]"), second(1, "[0, 1]"), third(2, "[1, 2]");
    const auto other = second.trace().communicators.append(
        {.name = second.builder().text("0"), .ranks = second.builder().text("[1, 2]")});
    for (const int64_t end_ns : {100, 200, 300}) {
        first.add(CollectiveKind::kAllReduce, 0, end_ns);
        second.add(CollectiveKind::kAllReduce, 0, end_ns + 5000 + (end_ns == 300 ? 70 : 0));
    }
    second.trace().collectives.append({.kernel = Id<Kernel>(0),
                                       .communicator = other,
                                       .kind = CollectiveKind::kBarrier,
                                       .start_ns = 5300,
                                       .end_ns = 5400});
    third.add(CollectiveKind::kBarrier, 0, 400 - 30);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace(), &third.trace()};
    const RankClocks clocks = compare_clocks(traces, join_collectives(traces));
    EXPECT_EQ(clocks.basis, RankClocks::Basis::kCollectives);
    EXPECT_EQ(clocks.ahead_ns, (std::vector<int64_t>{0, 5000, -30}));
}

TEST(RankClocks, OfRanksThatNothingJoinsAreWallClocks) {
    RankTrace first(0, "[0, 1]"), second(2, "[2, 3]");
    set_of_run<&profiler::Run::start_unix_ns>(first.trace(), 7000);
    set_of_run<&profiler::Run::start_unix_ns>(second.trace(), 7400);
    first.add(CollectiveKind::kAllReduce, 0, 10);
    second.add(CollectiveKind::kAllReduce, 0, 10);
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    const RankClocks clocks = compare_clocks(traces, join_collectives(traces));
    EXPECT_EQ(clocks.basis, RankClocks::Basis::kWallClock);
    EXPECT_EQ(clocks.ahead_ns, (std::vector<int64_t>{0, -400}));
}

/// Two pairs that share nothing: the wall clock places one of each pair, collectives the other.
TEST(RankClocks, OfAGroupFollowItsFirstRank) {
    std::vector<std::unique_ptr<RankTrace>> ranks;
    std::vector<const Trace*> traces;
    for (int64_t rank = 0; rank < 4; ++rank) {
        ranks.push_back(std::make_unique<RankTrace>(rank, rank < 2 ? "[0, 1]" : "[2, 3]"));
        ranks.back()->add(CollectiveKind::kAllReduce, 0, rank == 3 ? 130 : 100);
        set_of_run<&profiler::Run::start_unix_ns>(ranks.back()->trace(), 1000 + 700 * rank);
        traces.push_back(&ranks.back()->trace());
    }
    const RankClocks clocks = compare_clocks(traces, join_collectives(traces));
    EXPECT_EQ(clocks.basis, RankClocks::Basis::kWallClock);
    EXPECT_EQ(clocks.ahead_ns, (std::vector<int64_t>{0, 0, -1400, -1370}));
}

/// 0 is no wall clock, and no run begins years apart.
TEST(RankClocks, OfRanksWithoutAWallClockBeginWithTheirFirstSteps) {
    for (const int64_t unix_ns : {int64_t{0}, INT64_MIN, INT64_MAX}) {
        RankTrace first(0, "[0, 1]"), second(2, "[2, 3]");
        set_of_run<&profiler::Run::start_unix_ns>(first.trace(), 7000);
        set_of_run<&profiler::Run::start_unix_ns>(second.trace(), unix_ns);
        second.builder().wait(30);
        for (RankTrace* rank : {&first, &second}) rank->builder().begin_step();
        const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
        const RankClocks clocks = compare_clocks(traces, join_collectives(traces));
        EXPECT_EQ(clocks.basis, RankClocks::Basis::kFirstStep);
        EXPECT_EQ(clocks.ahead_ns, (std::vector<int64_t>{0, 30}));
    }
}

TEST(RankClocks, OfPredictedRanksBeginWithTheirFirstSteps) {
    RankTrace first(0), second(1);
    for (RankTrace* rank : {&first, &second}) {
        set_of_run<&profiler::Run::time_basis>(rank->trace(), TimeBasis::kModelled);
        rank->add(CollectiveKind::kAllReduce, 0, rank == &first ? 10 : 90);
    }
    first.builder().wait(100);
    second.builder().wait(350);
    for (RankTrace* rank : {&first, &second}) rank->builder().begin_step();
    const std::vector<const Trace*> traces{&first.trace(), &second.trace()};
    const RankClocks clocks = compare_clocks(traces, join_collectives(traces));
    EXPECT_EQ(clocks.basis, RankClocks::Basis::kFirstStep);
    EXPECT_EQ(clocks.ahead_ns, (std::vector<int64_t>{0, 250}));
}

NamedTrace named(RankTrace& rank) {
    return {"rank", std::make_shared<const Trace>(rank.builder().finish())};
}

/// Rank 1 comes 30 ns after rank 0. The send waits for nobody but its receive.
TEST(RankRunTimes, SayWhoWaits) {
    RankTrace first(0), second(1);
    first.add(CollectiveKind::kAllReduce, 10, 50);
    first.add(CollectiveKind::kSend, 60, 90, 1);
    second.add(CollectiveKind::kAllReduce, 40, 50);
    second.add(CollectiveKind::kRecv, 80, 90, 0);
    const auto run = summarize_ranks(std::vector{named(second), named(first)});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->ranks[0].waits->wait_ns, 30);
    EXPECT_EQ(run->ranks[0].waits->waited_for_ns, 0);
    EXPECT_EQ(run->ranks[1].waits->wait_ns, 0);
    EXPECT_EQ(run->ranks[1].waits->waited_for_ns, 30);
}

/// Collectives that run at the same time do not add up, and those of other steps do not count.
TEST(RankRunTimes, CoverTheLastStep) {
    RankTrace first(0), second(1);
    for (RankTrace* rank : {&first, &second}) {
        const int64_t late_ns = rank == &second ? 30 : 0;
        for (const int64_t step_ns : {0, 1000}) {
            rank->builder().begin_step(PhaseKind::kBackward);
            rank->add(CollectiveKind::kAllReduce, step_ns + 10 + late_ns, step_ns + 100);
            rank->add(CollectiveKind::kAllReduce, step_ns + 20 + late_ns, step_ns + 110);
            rank->builder().end_step();
        }
    }
    const auto run = summarize_ranks(std::vector{named(first), named(second)});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->ranks[0].waits->wait_ns, 40);  // from 10 to 50, of the second step
    EXPECT_EQ(run->ranks[1].waits->waited_for_ns, 40);
}

/// The second rank ends in its third step, and the third rank in its first one.
TEST(RankRunTimes, AreOfTheLastStepThatAllRanksHaveWhole) {
    RankTrace first(0), second(1), third(2);
    const auto add_step = [](RankTrace& rank, int64_t start_ns, int64_t late_ns) {
        rank.builder().begin_step(PhaseKind::kBackward);
        rank.add(CollectiveKind::kAllReduce, start_ns + late_ns, start_ns + 100);
        rank.builder().end_step();
    };
    for (const int64_t step : {0, 1, 2}) {
        add_step(first, step * 1000, 0);
        add_step(second, step * 1000, 10 + step * 10);
    }
    add_step(third, 0, 5);
    for (RankTrace* rank : {&second, &third}) {
        add_diagnostic(rank->trace(), {.code = kCutOffStep, .explanation = "It ended."});
    }
    EXPECT_EQ(step_times_ns(second.trace()).size(), 2U);
    const auto run = summarize_ranks(std::vector{named(first), named(second), named(third)});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->shared_step, Id<Step>(1));
    EXPECT_EQ(run->ranks[0].waits->wait_ns, 20);
    EXPECT_EQ(run->ranks[1].waits->waited_for_ns, 20);
    EXPECT_EQ(run->ranks[0].num_collectives, 1);
    EXPECT_TRUE(run->ranks[1].step_ns);
    EXPECT_FALSE(run->ranks[2].step_ns);
    EXPECT_FALSE(run->ranks[2].waits);
}

/// The second rank ends in its first step, which is the shared one.
TEST(RankRunTimes, AreUnknownOfARankWithoutAWholeStep) {
    RankTrace ranks[]{RankTrace(0), RankTrace(1), RankTrace(2)};
    for (RankTrace& rank : ranks) {
        rank.builder().begin_step(PhaseKind::kBackward);
        rank.add(CollectiveKind::kAllReduce, &rank == &ranks[1] ? 60 : 0, 100);
        rank.builder().end_step();
    }
    add_diagnostic(ranks[1].trace(), {.code = kCutOffStep, .explanation = "It ended."});
    const auto run =
        summarize_ranks(std::vector{named(ranks[0]), named(ranks[1]), named(ranks[2])});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->shared_step, Id<Step>(0));
    EXPECT_TRUE(run->ranks[0].waits);
    EXPECT_FALSE(run->ranks[1].waits);
    EXPECT_EQ(run->ranks[1].num_collectives, 0);
    EXPECT_EQ(run->ranks[1].last_whole_step, 0);
}

/// Without a kernel the times are those of the call, which returns at once.
TEST(RankRunTimes, OfCallsAloneAreUnknown) {
    RankTrace first(0), second(1);
    for (RankTrace* rank : {&first, &second}) {
        const auto id = rank->add(CollectiveKind::kAllReduce, 10, 50);
        rank->trace().collectives.set<&Collective::kernel>(id, {});
    }
    const auto run = summarize_ranks(std::vector{named(first), named(second)});
    EXPECT_FALSE(run->ranks[0].waits);
    RankTrace sends(0), receives(1);
    sends.add(CollectiveKind::kSend, 10, 50, 1);
    receives.add(CollectiveKind::kRecv, 10, 50, 0);
    EXPECT_FALSE(summarize_ranks(std::vector{named(sends), named(receives)})->ranks[0].waits);
}

TEST(RankRunTimes, AreUnknownWhereTimesAreModelledOrOneRankIsThere) {
    RankTrace alone(0), predicted(0), other(1);
    for (RankTrace* rank : {&alone, &predicted, &other}) {
        rank->add(CollectiveKind::kAllReduce, 10, 50);
    }
    EXPECT_FALSE(summarize_ranks(std::vector{named(alone)})->ranks[0].waits);
    set_of_run<&profiler::Run::time_basis>(predicted.trace(), TimeBasis::kModelled);
    const auto run = summarize_ranks(std::vector{named(predicted), named(other)});
    EXPECT_FALSE(run->ranks[1].waits);
}

/// The step before ends at 5 on the GPU, this one at 90, long after the host marked its end:
///
///     compute 10-40 and 20-50, a copy 80-90, NCCL 30-70 and, hidden, 12-18
class GpuTimes : public testing::Test {
protected:
    GpuTimes() {
        step([&] { add("gemm", 0, 5); });
        step([&] {
            add("gemm", 10, 40);
            add("gelu", 20, 50);
            add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 30, 70);
            add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 12, 18);
            add("adamw", 80, 90);
        });
        trace().memcpys.append({.start_ns = 70, .end_ns = 75});
    }

    template <typename Body>
    void step(const Body& body) {
        builder_.begin_step(PhaseKind::kForward);
        body();
        builder_.end_step();
    }

    void add(std::string_view name, int64_t start_ns, int64_t end_ns) {
        trace().kernels.append({.name = builder_.text(name),
                                .op = builder_.op("op"),
                                .start_ns = start_ns,
                                .end_ns = end_ns});
    }

    Trace& trace() { return builder_.trace(); }

    TraceBuilder builder_;
};

TEST_F(GpuTimes, AddUpToTheStepOnTheGpu) {
    const auto time = gpu_time_of(trace(), last_whole_step(trace())).value();
    EXPECT_EQ(time.step_ns, 85);
    EXPECT_EQ(time.compute_ns, 40 + 5 + 10);
    EXPECT_EQ(time.communication_ns, 40 + 6);
    EXPECT_EQ(time.exposed_communication_ns, 20);
    EXPECT_EQ(time.idle_ns, 5 + 5);
}

TEST_F(GpuTimes, OfModelledStepsWithoutTransfersHaveNoCommunication) {
    for (std::size_t i = 0; i < trace().kernels.size(); ++i) {
        const Id<Kernel> kernel(i);
        if (!profiler::is_nccl_kernel(trace().text(trace().kernels[kernel].name))) continue;
        trace().kernels.set<&Kernel::end_ns>(kernel, trace().kernels[kernel].start_ns);
    }
    set_of_run<&profiler::Run::time_basis>(trace(), TimeBasis::kModelled);
    const auto time = gpu_time_of(trace(), last_whole_step(trace())).value();
    EXPECT_EQ(time.communication_ns, std::nullopt);
    EXPECT_EQ(time.idle_ns, 85 - 55);
}

TEST_F(GpuTimes, OfModelledTransfersAddUpToo) {
    set_of_run<&profiler::Run::time_basis>(trace(), TimeBasis::kModelled);
    EXPECT_EQ(gpu_time_of(trace(), last_whole_step(trace()))->exposed_communication_ns, 20);
}

TEST_F(GpuTimes, LeaveOutWhatOtherDevicesDo) {
    trace().devices.append({.name = builder_.text("cuda:0")});
    const auto other = trace().devices.append({.name = builder_.text("cuda:1")});
    const auto stream = trace().streams.append({.device = other});
    trace().memcpys.append({.stream = stream, .start_ns = 50, .end_ns = 70});
    EXPECT_EQ(gpu_time_of(trace(), last_whole_step(trace()))->compute_ns, 40 + 5 + 10);
}

TEST_F(GpuTimes, AreUnknownWithoutKernels) {
    const Trace trace = TraceBuilder().finish();
    EXPECT_FALSE(gpu_time_of(trace, last_whole_step(trace)));
}

}  // namespace
