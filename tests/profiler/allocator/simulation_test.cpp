#include "profiler/allocator/settings_run.h"

#include "profiler/formats/snapshot/recorded_trace.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

TEST(Simulate, GivesPlacementsSegmentsAndTheCurve) {
    RequestStream stream;
    const auto a = stream.allocate(3 * kMiB);
    const auto b = stream.allocate(100);
    stream.free(a);
    const auto c = stream.allocate(2 * kMiB);
    const Simulation result = simulate(stream, {.keep_placements = true, .keep_curve = true});

    ASSERT_EQ(result.placements.size(), 3u);
    EXPECT_EQ(result.placements[c].address, result.placements[a].address);
    EXPECT_EQ(result.placements[b].block_bytes, 512);
    ASSERT_EQ(result.segment_events.size(), 2u);
    EXPECT_EQ(result.segment_events[1].request, 1u);
    EXPECT_EQ(result.segment_events[1].event.size_bytes, 2 * kMiB);
    ASSERT_EQ(result.curve.size(), 4u);
    EXPECT_EQ(result.curve[1].allocated_bytes, 3 * kMiB + 512);
    EXPECT_EQ(result.curve[2].allocated_bytes, 512);
    EXPECT_EQ(result.curve[3].inactive_split_bytes, 20 * kMiB - 512);
    EXPECT_EQ(result.peak.reserved_bytes, 22 * kMiB);
    EXPECT_EQ(result.at_peak.allocated_bytes, 3 * kMiB + 512);
    EXPECT_EQ(result.num_segments_at_peak, 2);
    EXPECT_EQ(result.segments.size(), 2u);
    EXPECT_FALSE(result.out_of_memory);
}

TEST(Simulate, KnowsMemoryWhenMostWasReserved) {
    RequestStream stream;
    stream.free(stream.allocate(60 * kMiB));
    stream.allocate(30 * kMiB);
    stream.allocate(70 * kMiB);
    stream.free(2);
    stream.allocate(65 * kMiB);
    const Simulation result = simulate(stream, {});
    EXPECT_EQ(result.at_reserved_peak.reserved_bytes, 130 * kMiB);
    EXPECT_EQ(result.at_reserved_peak.allocated_bytes, 100 * kMiB);
    EXPECT_EQ(result.num_segments_at_reserved_peak, 2);
}

TEST(Simulate, EndsWhenItIsCancelled) {
    RequestStream stream;
    for (int i = 0; i < 100'000; ++i) stream.free(stream.allocate(kMiB));
    int reports = 0;
    simulate(stream, {.progress = [&](double share) {
                 EXPECT_LE(share, 1);
                 return ++reports < 3;
             }});
    EXPECT_EQ(reports, 3);
}

TEST(RunSettings, CountsWhatTheDriverWasAskedFor) {
    RequestStream stream;
    stream.allocate(30 * kMiB);
    stream.allocate(30 * kMiB);
    const SettingsRun plain = run_settings(stream, {});
    EXPECT_EQ(plain.num_segment_calls, 2);
    EXPECT_EQ(plain.num_allocations, 2);
    EXPECT_FALSE(plain.out_of_memory);
    const SettingsRun limited = run_settings(stream, {.memory_limit_bytes = 40 * kMiB});
    EXPECT_EQ(limited.allocations_done, 1);
    EXPECT_TRUE(limited.out_of_memory);
}

constexpr std::size_t kFirstEvents[]{0, 8, 9};  // all, both segments free, one holds a block

RequestStream refused_stream(std::size_t first_event) {
    const Trace trace = trace_of({tests::out_of_memory_recording(first_event)}).value();
    return stream_to_failure(trace, profiled_device(trace)).value();
}

TEST(RunSettings, RefusesTheRequestThatTheProgramWasRefused) {
    for (const std::size_t first_event : kFirstEvents) {
        const SettingsRun run = run_settings(refused_stream(first_event), {});
        EXPECT_EQ(run.from_recorded_start, first_event > 0);
        EXPECT_EQ(run.memory_limit_bytes, 96 * kMiB) << "the recorded one";
        EXPECT_FALSE(run.fits()) << first_event;
        ASSERT_TRUE(run.refused);
        EXPECT_FALSE(run.refused->is_served);
        EXPECT_EQ(run.refused->requested_bytes, 18 * kMiB);
        EXPECT_EQ(run.refused->free_bytes, 16 * kMiB);
        EXPECT_EQ(run.refused->cached, (CachedPieces{2, 20 * kMiB, 10 * kMiB}));
        EXPECT_EQ(run.out_of_memory->detail.use.reserved_bytes, 80 * kMiB);
    }
}

TEST(RunSettings, ServesItWhereTheCachedMemoryIsInOnePiece) {
    for (const std::size_t first_event : kFirstEvents) {
        const SettingsRun run =
            run_settings(refused_stream(first_event), {.settings = {.expandable_segments = true}});
        EXPECT_FALSE(run.from_recorded_start) << "the recorded segments are plain";
        EXPECT_TRUE(run.fits()) << first_event;
        ASSERT_TRUE(run.refused);
        EXPECT_TRUE(run.refused->is_served);
        EXPECT_EQ(run.refused->free_bytes, 16 * kMiB);
        EXPECT_EQ(run.refused->cached.total_bytes, 2 * kMiB);
    }
}

TEST(RunSettings, ServesItWithMoreMemory) {
    const SettingsRun run = run_settings(refused_stream(9), {.memory_limit_bytes = 98 * kMiB});
    EXPECT_TRUE(run.from_recorded_start);
    EXPECT_TRUE(run.fits());
    EXPECT_EQ(run.refused->free_bytes, 0);
}

TEST(Simulate, StartsEmptyBelowALimitThatTheRecordedSegmentsExceed) {
    const RequestStream stream = refused_stream(9);
    EXPECT_FALSE(simulate(stream, {.memory_limit_bytes = 70 * kMiB}).from_recorded_start);
    EXPECT_FALSE(simulate(stream, {.from_recorded_start = false}).from_recorded_start);
}

/// A ring buffer lost the first events: what follows is as if it had not.
TEST(Simulate, FromARecordedStartReservesAsMuchAsTheWholeProgram) {
    tests::Recorder recorder({});
    run_random(recorder, {.num_steps = 2'000, .num_streams = 2, .share_streams = true});
    const int64_t reserved_bytes = recorder.simulator().use().reserved_bytes;
    for (const std::size_t cut : {std::size_t{500}, std::size_t{1'500}}) {
        const Trace trace = trace_of({recorder.recording(cut)}).value();
        const RequestStream stream = stream_to_failure(trace, profiled_device(trace)).value();
        const Simulation simulation = simulate(stream, {.keep_placements = true});
        EXPECT_TRUE(simulation.from_recorded_start);
        EXPECT_NEAR(static_cast<double>(simulation.peak.reserved_bytes),
                    static_cast<double>(reserved_bytes), 0.1 * static_cast<double>(reserved_bytes))
            << "new segments have other addresses, which decide between free blocks of one size";
    }
}

TEST(SettingsToTry, BeginWithTheDefaults) {
    EXPECT_EQ(settings_to_try(false).front(), AllocatorSettings{});
    EXPECT_GT(settings_to_try(true).size(), settings_to_try(false).size());
}

TEST(Simulate, PeaksCountFromAGivenRequestOn) {
    RequestStream stream;
    const auto large = stream.allocate(60 * kMiB);
    stream.free(large);
    const auto small = stream.allocate(30 * kMiB);
    stream.free(small);
    const Simulation result = simulate(stream, {.first_measured = 2});
    EXPECT_EQ(result.peak.allocated_bytes, 30 * kMiB);
    EXPECT_EQ(result.at_peak.allocated_bytes, 30 * kMiB);
    EXPECT_EQ(result.peak_request, 2U);
    EXPECT_EQ(result.peak.reserved_bytes,
              60 * kMiB);  // cached from before the first measured request
}

TEST(Simulate, StopsWhereMemoryRunsOut) {
    RequestStream stream;
    stream.allocate(60 * kMiB);
    const auto b = stream.allocate(30 * kMiB + 1);
    stream.allocate(kMiB);
    const Simulation result =
        simulate(stream, {.memory_limit_bytes = 80 * kMiB, .keep_placements = true});
    ASSERT_TRUE(result.out_of_memory);
    EXPECT_EQ(result.out_of_memory->request, 1u);
    EXPECT_EQ(result.out_of_memory->detail.requested_bytes, 30 * kMiB + 1);
    EXPECT_EQ(result.out_of_memory->detail.asked_bytes, 32 * kMiB);
    EXPECT_EQ(result.out_of_memory->detail.free_bytes, 20 * kMiB);
    EXPECT_EQ(result.placements[b].address, -1);
    EXPECT_EQ(result.placements[b + 1].address, -1);
}

TEST(Simulate, FragmentationIsTheShareOfReservedMemoryThatIsNotAllocatedAtThePeak) {
    RequestStream stream;
    stream.allocate(15 * kMiB);
    stream.free(stream.allocate(5 * kMiB));
    const Simulation result = simulate(stream, {});
    EXPECT_EQ(result.at_peak.allocated_bytes, 21 * kMiB) << "15 take 16 MiB";
    EXPECT_DOUBLE_EQ(result.fragmentation(), 15.0 / 36.0);
}

TEST(Simulate, PendingFreesAreCompletedByARelease) {
    RequestStream stream;
    const auto a = stream.allocate(60 * kMiB);
    stream.requests.push_back({AllocatorRequestKind::kFreeRequested, a});
    const auto b = stream.allocate(60 * kMiB);
    stream.requests.push_back({AllocatorRequestKind::kFreeCompleted, a});
    stream.free(b);
    const Simulation result = simulate(stream, {.memory_limit_bytes = 80 * kMiB});
    EXPECT_FALSE(result.out_of_memory);
    EXPECT_EQ(result.num_retries, 1);
    EXPECT_EQ(result.peak.active_bytes, 60 * kMiB);
    ASSERT_EQ(result.segments.size(), 1u);
    EXPECT_EQ(result.segments[0].blocks.size(), 1u);
}

TEST(Simulate, EmptyCacheReturnsSegments) {
    RequestStream stream;
    stream.free(stream.allocate(12 * kMiB));
    stream.requests.push_back({.kind = AllocatorRequestKind::kEmptyCache});
    const Simulation result = simulate(stream, {});
    EXPECT_TRUE(result.segments.empty());
    EXPECT_EQ(result.segment_events.back().event.action, RecordedAction::kSegmentFree);
}

TEST(Simulate, OfNothingIsNothing) {
    const Simulation result = simulate({}, {});
    EXPECT_EQ(result.peak.reserved_bytes, 0);
    EXPECT_EQ(result.fragmentation(), 0);
}

}  // namespace
}  // namespace profiler
