#include "profiler/analysis/blocks/block_history.h"

#include "profiler/analysis/step/event_order.h"
#include "tests/support/loaded_step.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using tests::TraceBuilder;

TEST(BlockHistory, NumbersBlocksAndChangesInTheOrderOfTheAllocator) {
    TraceBuilder b;
    const auto first = b.allocate({.bytes = 10});
    const auto second = b.allocate({.bytes = 20});
    b.free(first);
    const auto third = b.allocate({.bytes = 30});
    b.free(second);
    const Trace trace = b.finish();
    const BlockHistory history(trace);
    ASSERT_EQ(history.size(), 3U);
    ASSERT_EQ(history.change_count(), 5U);
    EXPECT_EQ(history.block_of(third), 2U);
    EXPECT_EQ(history.allocation(2), third);
    EXPECT_EQ(history.size_bytes(1), 20);
    EXPECT_EQ(history.alloc_rank(2), 3U);
    EXPECT_EQ(history.free_rank(0), 2U);
    EXPECT_EQ(history.free_rank(2), BlockHistory::kNone);
    EXPECT_EQ(history.free_ns(2), INT64_MAX);
    EXPECT_TRUE(history.change(4).is_free);
    EXPECT_EQ(history.change(4).block, 1U);
    EXPECT_EQ(history.allocated_before(3), 2U);
    EXPECT_TRUE(history.is_live(0, 2));
    EXPECT_FALSE(history.is_live(0, 3));
    EXPECT_FALSE(history.is_live(2, 3)) << "it comes with the change of that rank";
}

TEST(BlockHistory, FindsChangesByTime) {
    TraceBuilder b;
    b.allocate({.bytes = 1});
    b.allocate({.bytes = 1});
    const Trace trace = b.finish();
    const BlockHistory history(trace);
    const int64_t second_ns = history.time_ns(1);
    EXPECT_EQ(history.first_change_at(second_ns), 1U);
    EXPECT_EQ(history.first_change_after(second_ns), 2U);
    EXPECT_EQ(history.first_change_at(INT64_MIN), 0U);
    EXPECT_EQ(history.first_change_after(INT64_MAX), 2U);
}

TEST(BlockHistory, ShowsTheHighestMomentOfChangesAtOneTime) {
    TraceBuilder b;
    const auto first = b.allocate({.bytes = 10});
    const auto second = b.allocate({.bytes = 70});
    b.free(second);
    Trace trace = b.finish();
    trace.allocations.set<&Allocation::alloc_ns>(first, 500);
    trace.allocations.set<&Allocation::alloc_ns>(second, 500);
    trace.allocations.set<&Allocation::free_requested_ns>(second, 500);
    const BlockHistory history(trace);
    EXPECT_EQ(history.highest_rank_at(500), 2U);
    EXPECT_EQ(history.highest_rank_at(499), 0U);
    EXPECT_EQ(history.highest_rank_at(501), 3U);
}

TEST(BlockHistory, RaisesTimesThatRunBackwards) {
    TraceBuilder b;
    const auto early = b.allocate({.bytes = 1});
    b.allocate({.bytes = 1});
    Trace trace = b.finish();
    trace.allocations.set<&Allocation::alloc_ns>(early, 1'000'000);
    const BlockHistory history(trace);
    EXPECT_EQ(history.time_ns(1), 1'000'000);
}

TEST(BlockHistory, LeavesOutBlocksThatAreFreedBeforeTheyAreAllocated) {
    TraceBuilder b;
    const auto wrong = b.allocate({.bytes = 5});
    const auto right = b.allocate({.bytes = 7});
    b.free(wrong);
    Trace trace = b.finish();
    trace.allocations.set<&Allocation::alloc_event>(wrong, 99);
    const BlockHistory history(trace);
    ASSERT_EQ(history.size(), 1U);
    EXPECT_EQ(history.allocation(0), right);
    EXPECT_EQ(history.block_of(wrong), BlockHistory::kNone);
    EXPECT_EQ(history.block_of({}), BlockHistory::kNone);
}

TEST(BlockHistory, AnEmptyTraceHasNoBlocks) {
    const Trace trace;
    const BlockHistory history(trace);
    EXPECT_EQ(history.size(), 0U);
    EXPECT_EQ(history.first_change_at(0), 0U);
}

/// One step in which each of two layers saves "query"; the second step is the same.
Trace two_layers(int64_t bytes, int steps = 2, bool with_mask = true) {
    TraceBuilder b;
    std::array<Id<ModulePath>, 2> layers{b.module_path("encoder.layer.0.attention", 0),
                                         b.module_path("encoder.layer.1.attention", 1)};
    for (int step = 0; step < steps; ++step) {
        b.begin_step(PhaseKind::kForward);
        std::vector<Id<Allocation>> made;
        for (const auto layer : layers) {
            made.push_back(
                b.allocate({.bytes = bytes, .op = b.op("aten::mm", layer), .name = "query"}));
            if (with_mask) {
                made.push_back(
                    b.allocate({.bytes = 1, .op = b.op("aten::gt", layer), .name = "mask"}));
            }
        }
        for (const auto id : made) b.free(id);
        b.end_step();
    }
    return b.finish();
}

TEST(BlockLabels, SiblingsLieInOtherLayers) {
    const Loaded loaded(two_layers(64));
    const BlockLabels& labels = loaded.index.labels();
    EXPECT_EQ(labels.layer(0), 0);
    EXPECT_EQ(labels.layer(2), 1);
    EXPECT_EQ(labels.family(0), labels.family(2)) << "query of layers 0 and 1";
    EXPECT_NE(labels.family(0), labels.family(1)) << "query and mask";
    EXPECT_EQ(labels.family(0), labels.family(4)) << "query of the next step";
}

TEST(BlockLabels, AParametersLayerIsInItsName) {
    TraceBuilder b;
    b.module_path("encoder.layer.7", 7);
    b.module_path("encoder.layer.8", 8);
    b.allocate({.bytes = 8, .name = "encoder.layer.7.output.dense.weight"});
    b.allocate({.bytes = 8, .name = "encoder.layer.8.output.dense.weight"});
    b.allocate({.bytes = 8, .name = "embeddings.weight"});
    b.allocate({.bytes = 8});
    const Loaded loaded(b.finish());
    const BlockLabels& labels = loaded.index.labels();
    EXPECT_EQ(labels.layer(0), 7);
    EXPECT_EQ(labels.family(0), labels.family(1));
    EXPECT_EQ(labels.layer(2), -1);
    EXPECT_EQ(labels.family(3), 0U) << "a block without a name has no siblings";
    EXPECT_EQ(labels.counterpart(labels, 3), BlockHistory::kNone);
}

TEST(BlockLabels, TheCounterpartIsTheSameTensorOfTheSameStep) {
    const Loaded a(two_layers(64)), b(two_layers(32, 2, false));
    const auto find = [&](std::size_t block) {
        return b.index.labels().counterpart(a.index.labels(), block);
    };
    EXPECT_EQ(find(0), 0U);
    EXPECT_EQ(find(2), 1U) << "query of layer 1";
    EXPECT_EQ(find(4), 2U) << "query of layer 0 in step 2";
    EXPECT_EQ(find(1), BlockHistory::kNone) << "B saves no mask";
}

TEST(BlockLabels, AnotherRecipeMayMakeATensorInAnotherModule) {
    const auto probs_in = [](std::string_view path, int64_t bytes) {
        TraceBuilder b;
        b.begin_step();
        const auto module = b.module_path(path, 3);
        b.allocate({.bytes = bytes, .op = b.op("aten::_softmax", module), .name = "probs"});
        return b.finish();
    };
    const Loaded a(probs_in("encoder.layer.3.softmax", 64)),
        b(probs_in("encoder.layer.3.core", 64));
    const Loaded other(probs_in("encoder.layer.3.core", 8));
    EXPECT_EQ(b.index.labels().counterpart(a.index.labels(), 0), 0U);
    EXPECT_EQ(other.index.labels().counterpart(a.index.labels(), 0), BlockHistory::kNone)
        << "of another size";
}

TEST(BlockLabels, TheLastStepStandsForStepsThatAreMissing) {
    const Loaded a(two_layers(64, 3)), b(two_layers(64, 1));
    EXPECT_EQ(b.index.labels().counterpart(a.index.labels(), 8), 0U);
}

TEST(BlockLabels, OfEqualBlocksTheNthOfAStepStandsForTheNth) {
    const auto drops = [](std::array<int, 2> per_step) {
        TraceBuilder b;
        const auto module = b.module_path("encoder.layer.0", 0);
        for (const int count : per_step) {
            b.begin_step();
            for (int i = 0; i < count; ++i) {
                b.allocate({.bytes = 64, .op = b.op("aten::dropout", module), .name = "dropped"});
                b.allocate({.bytes = 64, .op = b.op("aten::gt", module), .name = "mask"});
            }
            b.end_step();
        }
        return b.finish();
    };
    const Loaded a(drops({3, 3})), b(drops({2, 3}));
    const auto find = [&](std::size_t block) {
        return b.index.labels().counterpart(a.index.labels(), block);
    };
    EXPECT_EQ(find(0), 0U);
    EXPECT_EQ(find(3), 3U) << "the second mask of step 1";
    EXPECT_EQ(find(4), BlockHistory::kNone) << "B has two in step 1";
    EXPECT_EQ(find(6), 4U) << "the first of step 2";
    EXPECT_EQ(find(11), 9U) << "the third mask of step 2";
}

TEST(AddressMap, LeavesOutWhatIsNeverUsed) {
    TraceBuilder builder;
    builder.allocate({.bytes = 100});
    builder.allocate({.bytes = 50});
    builder.allocate({.bytes = 10});
    Trace trace = builder.finish();
    const auto place = [&](std::size_t row, int64_t address, int64_t bytes) {
        trace.allocations.set<&Allocation::address>(Id<Allocation>(row), address);
        trace.allocations.set<&Allocation::block_bytes>(Id<Allocation>(row), bytes);
    };
    place(0, 1000, 100);
    place(1, 9000, 50);
    place(2, 1100, 10);  // touches the first
    const BlockHistory history(trace);
    const AddressMap map(trace, history);
    ASSERT_EQ(map.ranges().size(), 2U);
    EXPECT_EQ(map.total_bytes(), 160);
    EXPECT_EQ(map.offset_of(1000), 0);
    EXPECT_EQ(map.offset_of(1105), 105);
    EXPECT_EQ(map.offset_of(9000), 110);
    EXPECT_EQ(map.offset_of(5000), 110) << "in the hole";
    EXPECT_EQ(map.offset_of(-5), 0);
    EXPECT_EQ(map.offset_of(INT64_MAX), 160);
}

TEST(AddressMap, SurvivesAddressesOfDamagedFiles) {
    TraceBuilder builder;
    builder.allocate({.bytes = 100});
    builder.allocate({.bytes = 50});
    Trace trace = builder.finish();
    const Id<Allocation> first(std::size_t{0}), second(std::size_t{1});
    trace.allocations.set<&Allocation::address>(first, INT64_MIN);
    trace.allocations.set<&Allocation::address>(second, INT64_MAX - 3);
    const BlockHistory history(trace);
    const AddressMap map(trace, history);
    EXPECT_GE(map.total_bytes(), 0);
    EXPECT_GE(map.offset_of(INT64_MAX), 0);
    EXPECT_EQ(map.offset_of(INT64_MIN), 0);
}

TEST(BlockHistory, KnowsEveryBlockOfALargeTrace) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 20'000});
    const BlockHistory history(trace);
    EXPECT_EQ(history.size(), trace.allocations.size());
    EXPECT_EQ(history.change_count(), ordered_changes(trace).size());
    int64_t live_bytes = 0;
    for (std::size_t rank = 0; rank < history.change_count(); ++rank) {
        const auto change = history.change(rank);
        live_bytes += (change.is_free ? -1 : 1) * history.size_bytes(change.block);
        ASSERT_GE(live_bytes, 0);
    }
}

}  // namespace
