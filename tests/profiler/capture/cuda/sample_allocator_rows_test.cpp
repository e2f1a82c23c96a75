#include "profiler/allocator/start_state.h"
#include "profiler/capture/cuda/allocator_rows.h"
#include "profiler/formats/pytorch_snapshot.h"
#include "tests/profiler/formats/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

/// Real recordings of PyTorch's caching allocator through AllocatorRows: what lives at the end is
/// what the recording says, and nothing is out of place on the way.
namespace profiler {
namespace {

int64_t bytes_of(const std::vector<RecordedSegment>& segments) {
    int64_t bytes = 0;
    for (const RecordedSegment& segment : segments) bytes += segment.size_bytes;
    return bytes;
}

class SampleAllocatorRows : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SampleAllocatorRows, EndsWhereTheRecordingEnds) {
    const auto snapshot = read_pytorch_snapshot(GetParam());
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const AllocatorRecording& recording = snapshot->busiest();
    const auto start = rebuild_start_state(recording, settings_of(recording.settings));
    ASSERT_TRUE(start.has_value()) << start.error().message;

    Trace trace;
    StreamRows streams(trace, trace.devices.append({}));
    AllocatorRows rows(trace, streams);
    int64_t next_event = 0;
    const auto next = [&] { return AllocatorMoment{.event = next_event++}; };
    rows.load(start->segments, next);
    EXPECT_EQ(rows.reserved_bytes(), bytes_of(start->segments));
    for (const RecordedEvent& event : recording.events) rows.apply(event, next());

    EXPECT_EQ(rows.counts().unmatched_frees, 0);
    EXPECT_EQ(rows.counts().replaced_blocks, 0);
    EXPECT_EQ(rows.counts().outside_segments, 0);
    EXPECT_EQ(rows.counts().unmatched_segments, 0);
    EXPECT_EQ(rows.reserved_bytes(), bytes_of(recording.segments));

    std::map<int64_t, int64_t> live;  // address -> bytes asked for
    for (const RecordedSegment& segment : recording.segments) {
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state != BlockState::kInactive) live[block.address] = block.requested_bytes;
        }
    }
    EXPECT_EQ(rows.live_blocks(), live.size());
    for (const auto& [address, requested_bytes] : live) {
        const Id<Allocation> allocation = rows.at(address);
        ASSERT_TRUE(allocation.valid()) << address;
        EXPECT_EQ(trace.allocations.get<&Allocation::requested_bytes>(allocation), requested_bytes);
        EXPECT_EQ(trace.allocations.get<&Allocation::free_completed_event>(allocation), -1);
    }
    const auto allocs = std::count_if(
        recording.events.begin(), recording.events.end(),
        [](const RecordedEvent& event) { return event.action == RecordedAction::kAlloc; });
    EXPECT_GT(allocs, 1000);
}

INSTANTIATE_TEST_SUITE_P(Snapshots, SampleAllocatorRows,
                         testing::ValuesIn(tests::sample_snapshots()), [](const auto& sample) {
                             std::string name = sample.param.stem().string();
                             std::replace_if(
                                 name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                                 '_');
                             return name;
                         });
// Where there are no samples.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SampleAllocatorRows);

}  // namespace
}  // namespace profiler
