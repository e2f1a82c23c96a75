#include "profiler/view/ranks/ranks_view.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

namespace {

using namespace profiler;
using tests::TraceBuilder;

constexpr int64_t kTick = TraceBuilder::kTickNs;

/// Ranks 0 to 2 of a run. Rank 2 holds 300 bytes more, and its clock is 5 ticks ahead. An
/// all_reduce ends on all of them at tick 20 of rank 0's clock.
class RanksViews : public testing::Test {
protected:
    RanksViews() {
        std::vector<NamedTrace> named;
        for (int64_t rank = 0; rank < 3; ++rank) {
            traces_.push_back(std::make_shared<const Trace>(trace_of(rank)));
            named.push_back({"rank", traces_.back()});
            steps_.emplace_back(*traces_.back());
        }
        run_ = std::make_shared<const RankRun>(summarize_ranks(named).value());
    }

    static Trace trace_of(int64_t rank) {
        TraceBuilder b;
        const int64_t ahead = rank == 2 ? 5 * kTick : 0;
        b.wait(ahead);
        if (rank == 1) b.wait(10 * kTick);  // recorded later than the others
        b.begin_step();
        b.allocate({.bytes = rank == 2 ? 800 : 500, .category = Category::kParameter});
        const auto group = b.trace().communicators.append({.name = b.text("0"),
                                                           .description = b.text("default_pg"),
                                                           .num_ranks = 3,
                                                           .ranks = b.text("[0, 1, 2]")});
        for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
            const bool is_first = kind == CollectiveKind::kAllReduce;
            const auto kernel = b.trace().kernels.append({});
            b.trace().collectives.append({.op = b.op("c10d::op"),
                                          .kernel = kernel,
                                          .communicator = group,
                                          .kind = kind,
                                          .in_bytes = 64,
                                          .out_bytes = 64,
                                          .start_ns = ahead + (is_first ? 10 + rank : 12) * kTick,
                                          .end_ns = ahead + (is_first ? 20 : 14) * kTick});
        }
        b.wait(40 * kTick);
        Trace trace = b.finish();
        const Id<profiler::Run> run(0);
        trace.runs.set<&profiler::Run::rank>(run, rank);
        trace.runs.set<&profiler::Run::world_size>(run, 3);
        return trace;
    }

    RanksView view(double start_ns, double end_ns, int width_px) const {
        RanksRequest request{.run = run_,
                             .ranks = {},
                             .axis_rank = 0,
                             .start_ns = start_ns,
                             .end_ns = end_ns,
                             .width_px = width_px};
        for (const StepIndex& step : steps_) request.ranks.push_back(&step);
        return build_ranks_view(request);
    }

    std::vector<std::shared_ptr<const Trace>> traces_;
    std::list<StepIndex> steps_;
    std::shared_ptr<const RankRun> run_;
};

TEST_F(RanksViews, ShowTheDifferenceToTheMedianRank) {
    const RanksView all = view(0, 40 * kTick, 40);
    ASSERT_EQ(all.lanes.size(), 3U);
    EXPECT_EQ(all.lanes[0].difference, "");
    EXPECT_EQ(all.lanes[2].difference, "+300 B");
    EXPECT_EQ(all.lanes[1].difference_bytes[20], 0);
    EXPECT_EQ(all.lanes[2].difference_bytes[20], 300);
    EXPECT_EQ(all.max_difference_bytes, 300);
    EXPECT_EQ(all.max_bytes, 800);
    EXPECT_EQ(all.lanes[2].difference_tone, Tone::kBad);
    EXPECT_EQ(all.headline,
              "Rank 2 needs the most memory, 800 B: 1.60 times the median. In the last step, the "
              "others wait the most for rank 2: 2.00 µs. Rank 0 waits the most, 2.00 µs.");
}

/// Rank 1 is recorded from tick 10 on: before, the median is that of the other two.
TEST_F(RanksViews, LeaveOutWhatIsNotRecorded) {
    const RanksView all = view(0, 40 * kTick, 40);
    EXPECT_EQ(all.lanes[1].difference_bytes[5], 0);
    EXPECT_EQ(all.lanes[0].difference_bytes[5], -150);
    EXPECT_EQ(all.lanes[2].difference_bytes[5], 150);
}

TEST_F(RanksViews, JoinCollectivesOnOneClock) {
    const RanksView all = view(0, 40 * kTick, 400);
    EXPECT_EQ(all.kinds, (std::vector{CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}));
    ASSERT_EQ(all.lanes[0].collectives.size(), 2U);
    const JoinedSpan reduce = read_collective(all, all.lanes[0].collectives[0]);
    EXPECT_EQ(reduce.title, "all_reduce  64 B");
    ASSERT_EQ(reduce.places.size(), 3U);
    for (const JoinedSpan::Place& place : reduce.places) EXPECT_EQ(place.end_ns, 20 * kTick);
    EXPECT_EQ(reduce.places[2].start_ns, 12 * kTick);
    using Row = std::pair<std::string, std::string>;
    EXPECT_EQ(reduce.rows[1], Row("group", "default_pg, 3 ranks"));
    EXPECT_EQ(reduce.rows[2], Row("comes last", "rank 2, 2.00 µs after rank 0"));
    EXPECT_EQ(reduce.rows[3], Row("rank 0", "10.0 µs"));
    // The broadcast runs meanwhile, so it stands in another row, in every window.
    EXPECT_EQ(all.lanes[0].num_rows, 2);
    EXPECT_EQ(all.lanes[0].collectives[1].row, 1);
    EXPECT_EQ(view(25 * kTick, 40 * kTick, 400).lanes[0].num_rows, 2);
}

/// Each in its row: the two run at the same time.
TEST_F(RanksViews, AreDrawnAlsoWhereTheyAreNarrow) {
    const RanksView far = view(0, 4000.0 * kTick, 40);
    for (const RankLane& lane : far.lanes) {
        ASSERT_EQ(lane.collectives.size(), 2U);
        EXPECT_EQ(lane.collectives[0].count, 1);
    }
}

/// However many there are, a row holds no more spans than a few a pixel.
TEST(CrowdedRanks, MergeWhatSharesPixels) {
    TraceBuilder b;
    b.begin_step();
    for (int i = 0; i < 50'000; ++i) {
        b.trace().collectives.append({.start_ns = i, .end_ns = i + (i % 3 == 0 ? 40'000 : 1)});
    }
    b.wait(100'000);
    const auto trace = std::make_shared<const Trace>(b.finish());
    const StepIndex step(*trace);
    const auto run = std::make_shared<const RankRun>(
        summarize_ranks(std::vector{NamedTrace{"a", trace}}).value());
    const RanksView view = build_ranks_view({.run = run,
                                             .ranks = {&step},
                                             .axis_rank = 0,
                                             .start_ns = 0,
                                             .end_ns = 100'000,
                                             .width_px = 100});
    EXPECT_LE(view.lanes[0].collectives.size(), 2U * 100 * kMostCollectiveRows);
    int64_t count = 0;
    for (const CollectiveSpan& span : view.lanes[0].collectives) count += span.count;
    EXPECT_EQ(count, 50'000);
}

TEST_F(RanksViews, ShowOnlyCollectivesInTheWindow) {
    const RanksView late = view(30 * kTick, 40 * kTick, 100);
    for (const RankLane& lane : late.lanes) EXPECT_TRUE(lane.collectives.empty());
    EXPECT_TRUE(late.kinds.empty());
}

/// "All ranks" is said of the smallest and the largest, not of the largest and the median.
TEST(RankHeadline, NamesTheLargestIfOneNeedsLess) {
    RankRun run;
    for (const int64_t bytes : {1000, 1000, 200}) {
        run.ranks.push_back({.rank = bytes == 200 ? 2 : 0, .peak = {.allocated_bytes = bytes}});
    }
    run.median_bytes = 1000;
    EXPECT_EQ(rank_headline(run), "Rank 0 needs the most memory, 1000 B: 1.00 times the median.");
    run.ranks.pop_back();
    EXPECT_EQ(rank_headline(run), "All ranks need 1000 B.");
}

TEST(RankHeadline, NamesTheStepThatEveryRankRecordedCompletely) {
    RankRun run{.shared_step = Id<Step>(1)};
    for (const int64_t rank : {0, 1}) {
        run.ranks.push_back(
            {.rank = rank,
             .peak = {.allocated_bytes = 1000},
             .num_steps = 2,
             .last_whole_step = 2,
             .waits = RankWaits{.wait_ns = 2000 * (1 - rank), .waited_for_ns = 2000 * rank}});
    }
    EXPECT_EQ(rank_headline(run),
              "All ranks need 1000 B. In the last step, the others wait the most for rank 1: 2.00 "
              "µs. Rank 0 waits the most, 2.00 µs.");
    run.ranks[0].num_steps = run.ranks[0].last_whole_step = 3;
    EXPECT_EQ(
        rank_headline(run),
        "All ranks need 1000 B. In step 2, the last one that every rank recorded completely, the "
        "others wait the most for rank 1: 2.00 µs. Rank 0 waits the most, 2.00 µs.");
    run.ranks.push_back({.rank = 2, .num_steps = 1});
    EXPECT_EQ(name_of_shared_step(run),
              "step 2, the last one that every rank with a complete step recorded completely");
    run.shared_step = {};
    EXPECT_EQ(name_of_shared_step(run), "the last step");
}

TEST_F(RanksViews, HaveTablesOfPeaksAndTimes) {
    const TextTable times = rank_time_table(*run_);
    ASSERT_EQ(times.rows.size(), 3U);
    EXPECT_EQ(times.rows[0].end()[-2], "2.00 µs");  // waits for
    EXPECT_EQ(times.rows[2].back(), "2.00 µs");     // the last
    std::vector<std::string> titles;                // without what only kernels would tell
    for (const auto& column : times.columns) titles.push_back(column.title);
    EXPECT_THAT(titles, testing::ElementsAre("rank", "step", "waits", "waited for"));
    const DataTable data = ranks_data(*run_);
    ASSERT_EQ(data.rows.size(), 3U);
    EXPECT_EQ(data.rows[0].size(), data.columns.size());
    EXPECT_EQ(data.columns.back(), "waited_for_ns");
    EXPECT_EQ(std::get<int64_t>(data.rows[2].back()), 2 * kTick);
    EXPECT_EQ(std::get<int64_t>(data.rows[2][3]), 800);
}

}  // namespace
