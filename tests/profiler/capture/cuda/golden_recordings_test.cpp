/// Recordings of real steps on a GPU (tools/gpu_check/gpu-check makes them), which lie in
/// tests/golden/cuda: allocators' actions are replayed event for event, CUPTI's buffers are read to
/// their ends. Files made by hand show that a wrong one would be found.
#include "profiler/allocator/replay.h"
#include "profiler/capture/cuda/activity_recording.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/capture/cuda/activity_buffers.h"
#include "tests/profiler/capture/cuda/recorded_buffers.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace profiler {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() == extension) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

/// Whether the allocator gave segments back for a reason that no snapshot holds: the program's
/// limit on memory, or its call of empty_cache before a graph was captured.
bool frees_without_a_record(const fs::path& file) {
    const std::string name = file.filename();
    return name.starts_with("garbage_collection_") || name.starts_with("graph_capture_");
}

/// Empty when the simulator does what torch's allocator did.
std::string problem_of_snapshot(const fs::path& file) {
    const auto snapshot = read_pytorch_snapshot(file);
    if (!snapshot) return snapshot.error().message;
    const AllocatorRecording& recording = snapshot->main();
    if (recording.events.empty()) return "it has no event";
    const auto report = replay(recording, settings_of(recording.settings));
    if (!report) return report.error().message;
    if (report->is_exact()) return "";
    const bool same_addresses = report->address_matches == report->allocations;
    if (frees_without_a_record(file) && same_addresses && report->final_state_matches) return "";
    return fmt::format("{} ({} of {} addresses, {} of {} segment events and {} more)",
                       report->first_difference, report->address_matches, report->allocations,
                       report->segment_event_matches, report->segment_events,
                       report->extra_segment_events);
}

/// Empty when every record is read, and they are of a step: kernels, calls and ops.
std::string problem_of_buffers(const fs::path& file) {
    auto recording = tests::read_activity_recording(file);
    if (!recording) return recording.error().message;
    ActivityRecords records;
    for (auto& buffer : recording->buffers) {
        parse_activity_buffer(tests::ActivityRecording::bytes_of(buffer),
                              tests::next_activity_record(), records);
    }
    if (records.broken_buffers > 0) return "a buffer ends within a record";
    if (records.kernels.empty()) return "it has no kernel";
    if (records.op_correlations.empty()) return "no kernel has an op";
    const bool named = std::all_of(records.kernels.begin(), records.kernels.end(),
                                   [](const KernelRecord& kernel) { return !kernel.name.empty(); });
    return named ? "" : "a kernel has no name";
}

class GoldenCuda : public testing::Test {
protected:
    static std::vector<fs::path> golden(std::string_view extension) {
        return files_in(fs::path(TEMPOSCOPE_SOURCE_DIR) / "tests/golden/cuda", extension);
    }
};

TEST_F(GoldenCuda, AllocatorsAreReplayedEventForEvent) {
    const auto files = golden(".pickle");
    ASSERT_EQ(files.size(), 16U);
    for (const auto& file : files) EXPECT_EQ(problem_of_snapshot(file), "") << file;
}

TEST_F(GoldenCuda, BuffersOfCuptiAreReadToTheirEnds) {
    const auto files = golden(".cupti");
    ASSERT_EQ(files.size(), 4U);
    for (const auto& file : files) EXPECT_EQ(problem_of_buffers(file), "") << file;
}

TEST_F(GoldenCuda, TakesNoMoreThanEightMebibytes) {
    uintmax_t bytes = 0;
    for (const char* extension : {".pickle", ".cupti"}) {
        for (const auto& file : golden(extension)) bytes += fs::file_size(file);
    }
    EXPECT_LE(bytes, uintmax_t{8} << 20);
}

// ---- the reader of such files, on some made by hand ------------------------------------------

class SyntheticGoldenCuda : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("temposcope-golden-" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(const AllocatorRecording& recording) const {
        std::ofstream(folder_ / "eager_bert.pickle", std::ios::binary)
            << tests::snapshot_bytes(recording);
    }
    std::string problem_of_the_snapshot() const {
        const auto files = files_in(folder_, ".pickle");
        return files.size() == 1 ? problem_of_snapshot(files[0]) : "no file is found";
    }
    std::string problem_of_the_buffers() const {
        const auto files = files_in(folder_, ".cupti");
        return files.size() == 1 ? problem_of_buffers(files[0]) : "no file is found";
    }
    void write_buffers(bool with_op) const {
        tests::ActivityBuffer buffer;
        buffer.add(tests::kernel(10, 20, 1));
        if (with_op) buffer.add(tests::op_correlation(1, 5));
        ActivityRecordingWriter(folder_ / "eager_bert.cupti", tests::next_activity_record())
            .add(buffer.bytes());
    }

    fs::path folder_;
};

TEST_F(SyntheticGoldenCuda, AnAllocatorThatDidSomethingElseIsFound) {
    EXPECT_EQ(problem_of_the_snapshot(), "no file is found");
    tests::Recorder recorder({.memory_limit_bytes = 160 * kMiB});
    tests::run_random(recorder, {.num_streams = 2, .share_streams = true});
    const AllocatorRecording recording = recorder.recording();
    write(recording);
    EXPECT_EQ(problem_of_the_snapshot(), "");
    // The first block was asked for larger than what follows allows.
    AllocatorRecording larger = recording;
    const auto alloc = std::find_if(
        larger.events.begin(), larger.events.end(),
        [](const RecordedEvent& event) { return event.action == RecordedAction::kAlloc; });
    ASSERT_NE(alloc, larger.events.end());
    alloc->size_bytes += 30 * kMiB;
    write(larger);
    EXPECT_NE(problem_of_the_snapshot(), "");
    write({});
    EXPECT_EQ(problem_of_the_snapshot(), "it has no event");
}

TEST_F(SyntheticGoldenCuda, BuffersThatAreCutOrWithoutOpsAreFound) {
    EXPECT_EQ(problem_of_the_buffers(), "no file is found");
    write_buffers(/*with_op=*/true);
    EXPECT_EQ(problem_of_the_buffers(), "");
    const fs::path file = folder_ / "eager_bert.cupti";
    fs::resize_file(file, fs::file_size(file) - 8);
    EXPECT_THAT(problem_of_the_buffers(), HasSubstr("ends in the middle"));
    write_buffers(/*with_op=*/false);
    EXPECT_EQ(problem_of_the_buffers(), "no kernel has an op");
}

}  // namespace
}  // namespace profiler
