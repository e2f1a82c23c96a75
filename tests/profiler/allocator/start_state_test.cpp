#include "profiler/allocator/start_state.h"
#include "tests/profiler/allocator/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profiler {
namespace {

using testing::HasSubstr;
using tests::Recorder;

std::string problem_of(const AllocatorRecording& recording) {
    const auto state = rebuild_start_state(recording, settings_of(recording.settings));
    return state ? "no problem" : state.error().message;
}

TEST(StartState, OfAWholeRecordingIsEmpty) {
    Recorder recorder({});
    tests::run_random(recorder, {.num_steps = 300});
    const auto state = rebuild_start_state(recorder.recording(), {}).value();
    EXPECT_TRUE(state.segments.empty());
}

TEST(StartState, OfNoEventsIsTheFinalState) {
    Recorder recorder({});
    tests::run_random(recorder, {.num_steps = 300});
    const auto recording = recorder.recording(recorder.num_events());
    const auto state = rebuild_start_state(recording, {}).value();
    EXPECT_EQ(state.segments, recording.segments);
}

/// A rest of up to 1 MiB belongs to the block although no event says so.
TEST(StartState, KnowsTheRestThatCannotBeAFreeBlock) {
    Recorder recorder({});
    const auto a =
        recorder.allocate(19 * kMiB + 512);  // the last MiB - 512 bytes of the segment stay with it
    const std::size_t cut = recorder.num_events();
    recorder.free(a);
    const auto state = rebuild_start_state(recorder.recording(cut), {}).value();
    ASSERT_EQ(state.segments.size(), 1u);
    ASSERT_EQ(state.segments[0].blocks.size(), 1u);
    EXPECT_EQ(state.segments[0].blocks[0].size_bytes, 20 * kMiB);
    EXPECT_TRUE(state.open.empty());
}

TEST(StartState, FindsWhereAnOpenBlockEndsFromTheNextAllocationBehindIt) {
    Recorder recorder({});
    const auto low = recorder.allocate(3 * kMiB);
    const auto next = recorder.allocate(2 * kMiB);
    recorder.allocate(2 * kMiB);
    recorder.free(low);
    const auto a = recorder.allocate(3 * kMiB - 4096);  // takes all 3 MiB
    recorder.free(next);
    const std::size_t cut = recorder.num_events();
    const auto behind = recorder.allocate(2 * kMiB);
    ASSERT_EQ(behind, a + 3 * kMiB);
    recorder.free(a);
    const auto state = rebuild_start_state(recorder.recording(cut), {}).value();
    EXPECT_EQ(state.segments[0].blocks[0].size_bytes, 3 * kMiB);
    EXPECT_TRUE(state.open.empty());
}

TEST(StartState, RefusesEventsThatContradictTheFinalState) {
    Recorder recorder({});
    const auto a = recorder.allocate(3 * kMiB);
    recorder.allocate(2 * kMiB);
    recorder.free(a);
    const AllocatorRecording good = recorder.recording();
    EXPECT_EQ(problem_of(good), "no problem");

    auto cut_at_end = good;
    cut_at_end.events.pop_back();
    EXPECT_THAT(problem_of(cut_at_end), HasSubstr("free_requested"));
    auto other_size = good;
    other_size.events[1].size_bytes += 1;
    EXPECT_THAT(problem_of(other_size), HasSubstr("event 1 (alloc"));
    EXPECT_THAT(problem_of(other_size), HasSubstr("the sizes differ"));
    auto no_segment = good;
    no_segment.segments.clear();
    EXPECT_NE(problem_of(no_segment), "no problem");
    auto twice = good;
    twice.events.push_back(twice.events.back());
    EXPECT_THAT(problem_of(twice), HasSubstr("a block is in use there"));
    auto huge = good;
    huge.events.clear();
    for (int64_t i = 0; i < 64; ++i) {
        huge.events.push_back({.action = RecordedAction::kSegmentFree,
                               .address = i << 50,
                               .size_bytes = int64_t{1} << 52});
    }
    EXPECT_THAT(problem_of(huge), HasSubstr("no device has so much memory"));
}

TEST(StartState, RefusesBlocksThatOverlapOrLieNowhere) {
    AllocatorRecording recording;
    recording.segments = {{.address = 0,
                           .size_bytes = 2 * kMiB,
                           .is_small = true,
                           .blocks = {{.address = 0, .size_bytes = 2 * kMiB}}}};
    const auto freed = [](int64_t address, int64_t bytes) {
        return RecordedEvent{
            .action = RecordedAction::kFreeCompleted, .address = address, .size_bytes = bytes};
    };
    recording.events = {freed(0, 1024), freed(512, 512)};
    EXPECT_THAT(problem_of(recording), HasSubstr("overlaps"));
    recording.events = {freed(4 * kMiB, 1024)};
    EXPECT_THAT(problem_of(recording), HasSubstr("lies in no segment"));
}

}  // namespace
}  // namespace profiler
