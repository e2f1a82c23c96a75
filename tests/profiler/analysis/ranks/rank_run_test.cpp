#include "profiler/analysis/ranks/rank_run.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;
using tests::TraceBuilder;

NamedTrace rank(int64_t rank, int64_t world_size, int64_t bytes) {
    TraceBuilder builder;
    builder.begin_step();
    builder.allocate({.bytes = bytes, .category = Category::kParameter});
    const Id<Op> op = builder.op("c10d::allreduce_");
    builder.trace().collectives.append({.op = op, .in_bytes = bytes / 2, .out_bytes = bytes});
    Trace trace = builder.finish();
    trace.runs.set<&Run::rank>(Id<Run>(0), rank);
    trace.runs.set<&Run::world_size>(Id<Run>(0), world_size);
    return {"rank-" + std::to_string(rank), std::make_shared<const Trace>(std::move(trace))};
}

TEST(RankRun, HoldsTheRanksInTheirOrder) {
    const auto run = summarize_ranks(std::vector{rank(3, 8, 1000), rank(0, 8, 1500)});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->world_size, 8);
    ASSERT_EQ(run->ranks.size(), 2U);
    EXPECT_EQ(run->ranks[0].rank, 0);
    EXPECT_EQ(run->ranks[1].peak.allocated_bytes, 1000);
    EXPECT_EQ(run->ranks[1].num_collectives, 1);
    EXPECT_EQ(run->ranks[1].collective_bytes, 1000);
}

TEST(RankRun, ComparesTheLargestPeakWithTheMedian) {
    const auto run =
        summarize_ranks(std::vector{rank(0, 3, 1000), rank(1, 3, 3000), rank(2, 3, 2000)});
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->largest().rank, 1);
    EXPECT_DOUBLE_EQ(run->imbalance(), 1.5);
}

TEST(RankRun, RefusesTracesOfSeveralRuns) {
    const auto sizes = summarize_ranks(std::vector{rank(0, 2, 10), rank(1, 4, 10)});
    ASSERT_FALSE(sizes);
    EXPECT_NE(sizes.error().message.find("of one of 4"), std::string::npos);
    const auto twice = summarize_ranks(std::vector{rank(1, 2, 10), rank(1, 2, 10)});
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.error().message.find("both rank 1"), std::string::npos);
    EXPECT_FALSE(summarize_ranks({}));
}

NamedTrace rank_of_run(int64_t number, const std::string& id, int64_t start_s) {
    NamedTrace named = rank(number, 4, 1000);
    Trace trace = *named.trace;
    const Id<Run> run(0);
    const std::string software = R"({"run_id": ")" + id + R"("})";
    trace.runs.set<&Run::software>(run, trace.strings.intern(software));
    trace.runs.set<&Run::start_unix_ns>(run, start_s * 1'000'000'000);
    const Id<Step> last(trace.steps.size() - 1);
    trace.steps.set<&Step::end_ns>(last, 2'000'000'000);
    return {named.file, std::make_shared<const Trace>(std::move(trace))};
}

TEST(RankRun, RefusesRanksOfAnEarlierRun) {
    const auto run = summarize_ranks(
        std::vector{rank_of_run(0, "b", 112), rank_of_run(1, "b", 112), rank_of_run(3, "a", 100)});
    ASSERT_FALSE(run);
    EXPECT_EQ(
        run.error().message,
        "rank-1 is of a run that began 10.0 s after the run of rank-3 had ended: give the traces "
        "of one run.");
}

/// Each node of a launch has its own `temposcope run`. Virtual ranks of one run follow each other.
TEST(RankRun, TakesNodesThatRecordAtTheSameTime) {
    EXPECT_TRUE(summarize_ranks(std::vector{rank_of_run(0, "a", 100), rank_of_run(1, "b", 101)}));
    EXPECT_TRUE(summarize_ranks(std::vector{rank_of_run(0, "a", 100), rank_of_run(1, "a", 200)}));
    // Clocks that differ by some seconds; a node that ends before another begins.
    EXPECT_TRUE(summarize_ranks(std::vector{rank_of_run(0, "a", 100), rank_of_run(1, "b", 106)}));
    EXPECT_TRUE(summarize_ranks(std::vector{rank_of_run(0, "a", 100), rank_of_run(3, "a", 120),
                                            rank_of_run(1, "b", 101), rank_of_run(2, "c", 115)}));
}

NamedTrace rank_of_launch(int64_t number, const std::string& run, const std::string& launch) {
    NamedTrace named = rank_of_run(number, run, 100);
    Trace trace = *named.trace;
    const std::string software =
        R"({"run_id": ")" + run + R"(", "launch_id": ")" + launch + R"("})";
    trace.runs.set<&Run::software>(Id<Run>(0), trace.strings.intern(software));
    return {named.file, std::make_shared<const Trace>(std::move(trace))};
}

TEST(RankRun, RefusesTwoLaunchesAtTheSameTime) {
    const auto nodes = std::vector{rank_of_launch(0, "a", "x"), rank_of_launch(1, "b", "x"),
                                   rank_of_run(2, "c", 100)};
    EXPECT_TRUE(summarize_ranks(nodes));
    const auto two = summarize_ranks(std::vector{
        rank_of_run(2, "c", 100), rank_of_launch(0, "a", "x"), rank_of_launch(1, "b", "y")});
    ASSERT_FALSE(two);
    EXPECT_EQ(two.error().message,
              "rank-0 and rank-1 are of two launches: give the traces of one, "
              "and each launch a folder of its own.");
}

TEST(RankRun, DoesNotTellRunsApartByModelledTimes) {
    std::vector<NamedTrace> ranks{rank_of_run(0, "a", 100), rank_of_run(1, "b", 200)};
    for (NamedTrace& named : ranks) {
        Trace trace = *named.trace;
        trace.runs.set<&profiler::Run::time_basis>(Id<profiler::Run>(0), TimeBasis::kModelled);
        named.trace = std::make_shared<const Trace>(std::move(trace));
    }
    EXPECT_TRUE(summarize_ranks(ranks));
}

}  // namespace
