#include "profiler/allocator/replay.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

#include <random>

/// Replays recordings that the simulator itself made, for rules that no real recording at hand
/// exercises. Recordings are whole, or cut at random events like those of a full ring buffer. Real
/// recordings are in tests/profiler/formats/sample_snapshots_test.cpp.
namespace profiler {
namespace {

using tests::Recorder;

struct Program {
    const char* name;
    const char* conf;
    std::optional<int64_t> limit_bytes;
    tests::RandomProgram random;
};

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }

class ReplayOfPrograms : public testing::TestWithParam<Program> {};

void expect_exact(const AllocatorRecording& recording, const std::string& where) {
    const auto report = replay(recording, settings_of(recording.settings));
    ASSERT_TRUE(report.has_value()) << where << ": " << report.error().message;
    EXPECT_TRUE(report->is_exact())
        << where << ": " << report->first_difference << " addresses " << report->address_matches
        << "/" << report->allocations << " segment events " << report->segment_event_matches << "/"
        << report->segment_events << " extra " << report->extra_segment_events << " reserved "
        << report->reserved_mismatches << " final " << report->final_state_matches;
}

TEST_P(ReplayOfPrograms, IsExactWholeAndCutAnywhere) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
        Program program = GetParam();
        program.random.seed = seed;
        Recorder recorder({.settings = *parse_alloc_conf(program.conf),
                           .memory_limit_bytes = program.limit_bytes});
        tests::run_random(recorder, program.random);
        expect_exact(recorder.recording(), "whole, seed " + std::to_string(seed));
        std::mt19937 random(seed);
        for (int cut = 0; cut < 12; ++cut) {
            const std::size_t first = random() % recorder.num_events();
            expect_exact(recorder.recording(first),
                         "cut at " + std::to_string(first) + ", seed " + std::to_string(seed));
            if (HasFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ReplayOfPrograms,
    testing::Values(
        Program{"default settings", "", {}, {}}, Program{"streams", "", {}, {.num_streams = 3}},
        Program{"shared streams", "", {}, {.num_streams = 3, .share_streams = true}},
        Program{"emptied caches", "", {}, {.empty_cache_every = 60}},
        Program{"retries at a limit", "", 160 * kMiB, {}},
        Program{
            "retries of shared streams", "", 160 * kMiB, {.num_streams = 3, .share_streams = true}},
        Program{"divisions", "roundup_power2_divisions:[4:4,>:2]", {}, {}},
        Program{"expandable segments", "expandable_segments:True", {}, {}},
        Program{"expandable segments of streams",
                "expandable_segments:True",
                {},
                {.num_streams = 3, .share_streams = true}},
        Program{"expandable segments emptied",
                "expandable_segments:True",
                {},
                {.empty_cache_every = 60}}),
    [](const auto& param) {
        std::string name = param.param.name;
        std::replace(name.begin(), name.end(), ' ', '_');
        return name;
    });

TEST(Replay, TakesGarbageCollectionAsRecorded) {
    Recorder recorder({.settings = *parse_alloc_conf("garbage_collection_threshold:0.3"),
                       .memory_limit_bytes = 900 * kMiB});
    tests::run_random(recorder, {.num_steps = 4'000, .max_bytes = 64 * kMiB, .max_live = 30});
    const AllocatorRecording recording = recorder.recording();
    const auto report = replay(recording, settings_of(recording.settings)).value();
    EXPECT_EQ(report.address_matches, report.allocations);
    EXPECT_TRUE(report.final_state_matches);
    EXPECT_LT(report.segment_event_matches, report.segment_events)
        << "neither ages nor the limit are recorded: these are not counted as predicted";
}

/// Negative control: the comparison notices wrong rules.
TEST(Replay, UnderOtherSettingsIsNotExact) {
    Recorder recorder({});
    tests::run_random(recorder, {.num_steps = 1'000});
    const AllocatorRecording recording = recorder.recording();
    const auto report = replay(recording, *parse_alloc_conf("roundup_power2_divisions:2")).value();
    EXPECT_LT(report.address_match_rate(), 0.9);
    EXPECT_FALSE(report.final_state_matches);
    EXPECT_FALSE(report.first_difference.empty());
}

TEST(Replay, ReportsPeaks) {
    Recorder recorder({});
    const auto a = recorder.allocate(3 * kMiB);
    recorder.free(recorder.allocate(4 * kMiB));
    recorder.free(a);
    const auto report = replay(recorder.recording(), {}).value();
    EXPECT_EQ(report.events, 7);
    EXPECT_EQ(report.peak.allocated_bytes, 7 * kMiB);
    EXPECT_EQ(report.peak.reserved_bytes, 20 * kMiB);
    EXPECT_EQ(report.num_segments_at_peak, 1);
    EXPECT_EQ(report.segment_events, 1);
}

TEST(Replay, CountsAFreeWithoutARequest) {
    Recorder recorder({});
    recorder.free(recorder.allocate(3 * kMiB));
    recorder.free(recorder.allocate(4 * kMiB));
    AllocatorRecording recording = recorder.recording();
    std::erase_if(recording.events, [](const RecordedEvent& event) {
        return event.action == RecordedAction::kFreeRequested;
    });
    EXPECT_EQ(replay(recording, {}).value().at_peak.allocated_bytes, 4 * kMiB);
}

TEST(Replay, OfNothingMatches) {
    const auto report = replay({}, {}).value();
    EXPECT_TRUE(report.is_exact());
    EXPECT_EQ(report.address_match_rate(), 1);
}

}  // namespace
}  // namespace profiler
