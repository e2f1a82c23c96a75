#include "app/workspace/view_orders.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

app::DocumentPtr make_rank(const char* file, int64_t rank, int64_t world_size) {
    tests::TraceBuilder b;
    b.begin_step();
    b.allocate({.bytes = 1000});
    b.end_step();
    profiler::Trace trace = b.finish();
    const profiler::Id<profiler::Run> run(0);
    trace.runs.set<&profiler::Run::rank>(run, rank);
    trace.runs.set<&profiler::Run::world_size>(run, world_size);
    return app::make_document(file, std::make_shared<const profiler::Trace>(std::move(trace)));
}

using Documents = std::vector<app::DocumentPtr>;

TEST(RanksBeside, AreThoseOfTheFolderAndSizeInTheirOrder) {
    const auto a = make_rank("/run/rank-0001.tscope", 1, 4);
    const auto first = make_rank("/run/rank-0000.tscope", 0, 4);
    const auto other_folder = make_rank("/other/rank-0002.tscope", 2, 4);
    const auto other_size = make_rank("/run/rank-0003.tscope", 3, 8);
    EXPECT_EQ(app::ranks_beside(a, {a, other_folder, other_size, first}), (Documents{first, a}));
}

TEST(RanksBeside, AreNoneIfAIsNoRank) {
    const auto alone = make_rank("/run/alone.tscope", 0, 1);
    EXPECT_TRUE(app::ranks_beside(alone, {alone}).empty());
    EXPECT_TRUE(app::ranks_beside(nullptr, {alone}).empty());
}

/// As `info FOLDER` says of the same files.
TEST(RanksOfRun, RefuseARankThatIsThereTwice) {
    const auto once = make_rank("/run/rank-0000.tscope", 0, 2);
    const auto again = make_rank("/run/rank-0000 (2).tscope", 0, 2);
    const auto ranks = app::build_rank_run(app::ranks_beside(once, {once, again}));
    ASSERT_FALSE(ranks);
    EXPECT_NE(ranks.error().message.find("are both rank 0"), std::string::npos);
}

TEST(RanksOfRun, HoldTheTables) {
    const auto a = make_rank("/run/rank-0000.tscope", 0, 2);
    const auto b = make_rank("/run/rank-0001.tscope", 1, 2);
    const auto ranks = app::build_rank_run({a, b});
    ASSERT_TRUE(ranks) << ranks.error().message;
    EXPECT_EQ(ranks->peaks.rows.size(), 2U);
    EXPECT_TRUE(ranks->times.rows.empty());  // no kernels, no collectives
}

}  // namespace
