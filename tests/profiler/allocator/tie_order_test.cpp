#include "profiler/allocator/replay.h"
#include "profiler/allocator/request_stream.h"
#include "profiler/allocator/simulation.h"
#include "tests/profiler/allocator/invariants.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

/// Which of several free blocks of one size serves a request, in each version of torch. The
/// expected blocks are worked out by hand from torch's sources (docs/dev/allocator.md).
namespace profiler {
namespace {

class Ties : public testing::TestWithParam<TieOrder> {
protected:
    int64_t allocate(double mebibytes) {
        const auto bytes = static_cast<int64_t>(mebibytes * static_cast<double>(kMiB));
        const auto block = simulator_.allocate({bytes});
        EXPECT_TRUE(block.has_value());
        handles_[simulator_.block(*block).address] = *block;
        return simulator_.block(*block).address;
    }
    void free(int64_t address) { simulator_.free(handles_.at(address)); }
    /// `by_address`, `by_block` or `by_segment`, as the version's order asks for.
    int64_t expected(int64_t by_address, int64_t by_block, int64_t by_segment) const {
        if (GetParam() == TieOrder::kAddress) return by_address;
        return GetParam() == TieOrder::kBlockAge ? by_block : by_segment;
    }
    void TearDown() override { tests::expect_sound(simulator_); }

    ModelDriver driver_;
    Simulator simulator_{{.tie_order = GetParam()}, driver_};
    std::map<int64_t, BlockHandle> handles_;
};

TEST_P(Ties, TheOldestSegmentGoesBeforeTheLowestAddressSince212) {
    const int64_t first = allocate(12);
    const int64_t second = allocate(12);
    ASSERT_NE(first, second);
    free(second);
    free(first);
    const int64_t lower = std::min(first, second);
    EXPECT_EQ(allocate(12), expected(lower, first, first));
}

TEST_P(Ties, ASegmentThatIsTakenAgainIsNew) {
    const int64_t first = allocate(12);
    const int64_t second = allocate(14);
    free(first);
    simulator_.empty_cache();  // `first` goes back to the driver
    const int64_t third = allocate(14);
    free(second);
    free(third);
    EXPECT_EQ(allocate(14), expected(std::min(second, third), second, second));
}

TEST_P(Ties, InASegmentTheBlockThatWasMadeFirstGoesFirstIn212Alone) {
    //   MiB   0     3     6     9     12
    //         | a   | hole| c   | hole| rest |        a request splits the front off: a new block
    const int64_t a = allocate(3);
    const int64_t left = allocate(3);
    allocate(3);
    const int64_t right = allocate(3);
    allocate(3);
    ASSERT_EQ(left, a + 3 * kMiB);
    ASSERT_EQ(right, a + 9 * kMiB);
    // The left hole is cut in two: the new block is its front. Freed last, the front takes over the
    // rest, which was made before the right hole.
    free(left);
    const int64_t front = allocate(1.5);
    const int64_t rest = allocate(1.5);
    ASSERT_EQ(front, left);
    ASSERT_EQ(rest, left + 3 * kMiB / 2);
    free(rest);
    free(front);
    free(right);
    EXPECT_EQ(allocate(3), expected(left, right, left));
}

TEST_P(Ties, AFreedBlockKeepsItsAgeWhenItTakesOverAYoungerOne) {
    allocate(3);
    const int64_t left = allocate(3);
    allocate(3);
    const int64_t right = allocate(3);
    allocate(3);
    free(left);
    const int64_t front = allocate(1.5);
    const int64_t rest = allocate(1.5);
    free(front);
    free(rest);  // made first of the three, it takes over the front
    free(right);
    EXPECT_EQ(allocate(3), left);
}

TEST_P(Ties, TheOldestSegmentIsChosenThenTheLowestAddressInIt) {
    // Two segments of 20 MiB, each with six blocks of 3 MiB; holes in both.
    std::vector<int64_t> blocks;
    for (int i = 0; i < 12; ++i) blocks.push_back(allocate(3));
    ASSERT_EQ(blocks[5], blocks[0] + 15 * kMiB);
    ASSERT_EQ(blocks[11], blocks[6] + 15 * kMiB);
    for (const int i : {10, 8, 4, 2}) free(blocks[static_cast<std::size_t>(i)]);
    const int64_t lowest = std::min(blocks[2], blocks[8]);
    EXPECT_EQ(allocate(3), expected(lowest, blocks[2], blocks[2]));
}

TEST_P(Ties, ARecordingIsReplayedInItsOwnOrder) {
    for (const auto* conf : {"", "expandable_segments:True"}) {
        tests::Recorder recorder({.settings = *parse_alloc_conf(conf), .tie_order = GetParam()});
        tests::run_random(recorder, {.seed = 3, .empty_cache_every = 90});
        AllocatorRecording recording = recorder.recording();
        const auto exact = replay(recording, settings_of(recording.settings)).value();
        EXPECT_TRUE(exact.is_exact()) << conf << ": " << exact.first_difference;
    }
}

INSTANTIATE_TEST_SUITE_P(Versions, Ties,
                         testing::Values(TieOrder::kAddress, TieOrder::kBlockAge,
                                         TieOrder::kSegmentAge),
                         [](const auto& param) -> std::string {
                             if (param.param == TieOrder::kAddress) return "Up_to_2_11";
                             return param.param == TieOrder::kBlockAge ? "In_2_12" : "Since_2_13";
                         });

/// Negative control: programs meet ties.
TEST(TieOrders, AReplayInAnotherOrderDiffers) {
    tests::Recorder recorder({.tie_order = TieOrder::kBlockAge});
    tests::run_random(recorder, {.num_steps = 2'000});
    AllocatorRecording recording = recorder.recording();
    for (const TieOrder other : {TieOrder::kAddress, TieOrder::kSegmentAge}) {
        recording.settings.tie_order = other;
        EXPECT_LT(replay(recording, {}).value().address_match_rate(), 1);
    }
}

TEST(TieOrders, OfARecordingThatDoesNotTellIsTheOneThatFits) {
    for (const TieOrder order : {TieOrder::kAddress, TieOrder::kBlockAge}) {
        tests::Recorder recorder({.tie_order = order});
        tests::run_random(recorder, {.num_steps = 2'000});
        AllocatorRecording recording = recorder.recording();
        recording.settings.tie_order = std::nullopt;
        EXPECT_EQ(tie_order_of(recording), order);
        EXPECT_TRUE(replay(recording, {}).value().is_exact());
    }
    EXPECT_EQ(tie_order_of(AllocatorRecording{}), TieOrder::kAddress);
}

/// A snapshot does not tell the ages of its segments. The driver places each below the ones before.
TEST(TieOrders, OfTheSegmentsAtTheStartTheHighestCountsAsTheOldest) {
    const auto segment_at = [](int64_t address) {
        return RecordedSegment{.address = address,
                               .size_bytes = 12 * kMiB,
                               .blocks = {{.address = address, .size_bytes = 12 * kMiB}}};
    };
    const std::vector<RecordedSegment> segments{segment_at(32 * kMiB), segment_at(64 * kMiB)};
    for (const TieOrder order : {TieOrder::kAddress, TieOrder::kBlockAge, TieOrder::kSegmentAge}) {
        ModelDriver driver;
        Simulator simulator({.tie_order = order}, driver);
        simulator.load(segments);
        const auto block = simulator.allocate({12 * kMiB});
        const int64_t expected = order == TieOrder::kAddress ? 32 * kMiB : 64 * kMiB;
        EXPECT_EQ(simulator.block(*block).address, expected);
    }
}

TEST(TieOrders, FollowFromTheVersionOfTorch) {
    for (const auto* version : {"2.8.0", "2.11.0+cu130", "1.13.1", "", "nonsense", "2."}) {
        EXPECT_EQ(tie_order_of_torch(version), TieOrder::kAddress) << version;
    }
    EXPECT_EQ(tie_order_of_torch("2.12.1+cu130"), TieOrder::kBlockAge);
    for (const auto* version : {"2.13.0", "2.15.0+cu132", "2.13 or newer", "2.20.0a0+git12"}) {
        EXPECT_EQ(tie_order_of_torch(version), TieOrder::kSegmentAge) << version;
    }
}

TEST(TieOrders, ATraceNamesItsTorch) {
    Trace trace;
    EXPECT_EQ(tie_order_of(trace), TieOrder::kAddress);
    trace.runs.append({.software = trace.strings.intern(R"({"torch": "2.12.0"})")});
    EXPECT_EQ(tie_order_of(trace), TieOrder::kBlockAge);
    EXPECT_EQ(request_stream_of(trace, {}).value().tie_order, TieOrder::kBlockAge);
    for (const auto* text : {"", "{", "[]", R"({"torch": 2.13})", R"({"other": "2.13.0"})"}) {
        trace.runs.set<&profiler::Run::software>(Id<profiler::Run>(0), trace.strings.intern(text));
        EXPECT_EQ(tie_order_of(trace), TieOrder::kAddress) << text;
    }
}

}  // namespace
}  // namespace profiler
