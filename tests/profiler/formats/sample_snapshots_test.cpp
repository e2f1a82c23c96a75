/// Real snapshots, replayed event for event. TEMPOSCOPE_SAMPLES names their folder.
#include "profiler/allocator/replay.h"
#include "profiler/allocator/simulation.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "tests/profiler/formats/samples.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace profiler {
namespace {

class SampleSnapshots : public testing::Test {
protected:
    void SetUp() override {
        files_ = tests::sample_snapshots();
        if (files_.empty()) {
            GTEST_SKIP() << "no snapshots: set TEMPOSCOPE_SAMPLES to the folder of real captures";
        }
    }
    static AllocatorRecording recording_of(const std::filesystem::path& file) {
        const auto snapshot = read_pytorch_snapshot(file);
        EXPECT_TRUE(snapshot.has_value()) << (snapshot ? "" : snapshot.error().message);
        return snapshot ? snapshot->main() : AllocatorRecording{};
    }
    std::vector<std::filesystem::path> files_;
};

void expect_exact(const AllocatorRecording& recording, const std::string& where) {
    const auto report = replay(recording, settings_of(recording.settings));
    ASSERT_TRUE(report.has_value()) << where << ": " << report.error().message;
    EXPECT_EQ(report->address_matches, report->allocations) << where;
    EXPECT_EQ(report->segment_event_matches, report->segment_events) << where;
    EXPECT_EQ(report->extra_segment_events, 0) << where;
    EXPECT_EQ(report->reserved_mismatches, 0) << where;
    EXPECT_TRUE(report->final_state_matches) << where << ": " << report->first_difference;
}

TEST_F(SampleSnapshots, AreReplayedEventForEvent) {
    for (const auto& file : files_) {
        const AllocatorRecording recording = recording_of(file);
        ASSERT_FALSE(recording.events.empty()) << file;
        expect_exact(recording, file.string());
    }
}

TEST_F(SampleSnapshots, AreReplayedEventForEventWhereverTheyAreCut) {
    std::mt19937 random(300);
    for (const auto& file : files_) {
        const AllocatorRecording whole = recording_of(file);
        for (int cut = 0; cut < 100; ++cut) {
            AllocatorRecording part = whole;
            const auto first = static_cast<std::ptrdiff_t>(random() % whole.events.size());
            part.events.erase(part.events.begin(), part.events.begin() + first);
            expect_exact(part, file.string() + " from event " + std::to_string(first));
            if (HasFailure()) return;
        }
    }
}

/// Negative controls: under other rules the replay differs, so the tests above prove something.
TEST_F(SampleSnapshots, AreNotReproducedUnderOtherRules) {
    const AllocatorRecording recording = recording_of(files_.front());
    for (const char* conf :
         {"roundup_power2_divisions:2", "max_split_size_mb:20", "expandable_segments:True"}) {
        const auto report = replay(recording, *parse_alloc_conf(conf));
        if (report) {
            EXPECT_FALSE(report->is_exact()) << conf;
        }
    }
}

TEST_F(SampleSnapshots, FromAnEmptyAllocatorReserveNearlyAsMuch) {
    for (const auto& file : files_) {
        const AllocatorRecording recording = recording_of(file);
        const Trace trace = trace_of({recording}).value();
        const auto stream = stream_to_failure(trace, profiled_device(trace)).value();
        int64_t recorded_bytes = 0;
        for (const RecordedSegment& segment : recording.segments)
            recorded_bytes += segment.size_bytes;
        const Simulation simulation = simulate(stream, {.from_recorded_start = false});
        EXPECT_NEAR(static_cast<double>(simulation.peak.reserved_bytes),
                    static_cast<double>(recorded_bytes), 0.02 * static_cast<double>(recorded_bytes))
            << file;
    }
}

TEST_F(SampleSnapshots, FromTheRecordedStartReserveAsMuch) {
    for (const auto& file : files_) {
        const AllocatorRecording recording = recording_of(file);
        const auto exact = replay(recording, settings_of(recording.settings)).value();
        const Trace trace = trace_of({recording}).value();
        const auto stream = stream_to_failure(trace, profiled_device(trace)).value();
        const Simulation simulation =
            simulate(stream, {.settings = settings_of(recording.settings)});
        EXPECT_TRUE(simulation.from_recorded_start) << file;
        EXPECT_NEAR(static_cast<double>(simulation.peak.reserved_bytes),
                    static_cast<double>(exact.peak.reserved_bytes),
                    0.002 * static_cast<double>(exact.peak.reserved_bytes))
            << file;
    }
}

TEST_F(SampleSnapshots, AreRefusedWhereverTheyEndTooEarly) {
    const auto file = files_.front();
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::mt19937 random(1);
    for (int round = 0; round < 40; ++round) {
        const std::size_t size = random() % bytes.size();
        const auto cut = parse_pytorch_snapshot(std::string_view(bytes).substr(0, size), "cut");
        ASSERT_FALSE(cut.has_value()) << size;
    }
}

}  // namespace
}  // namespace profiler
