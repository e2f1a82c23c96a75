#include "profiler/capture/cuda/activity_recording.h"

#include "tests/profiler/capture/cuda/activity_buffers.h"
#include "tests/profiler/capture/cuda/recorded_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace profiler {
namespace {

using testing::HasSubstr;

class SyntheticActivityRecording : public testing::Test {
protected:
    void SetUp() override {
        path_ = std::filesystem::temp_directory_path() /
                ("temposcope-recording-" + std::to_string(::getpid()));
    }
    void TearDown() override { std::filesystem::remove(path_); }

    void write() {
        // Names that are gone when the file is read.
        std::string name = "_Z4gelumPf";
        std::string library = "libcublas.so.13";
        CUpti_ActivityMemory4 memory =
            tests::memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x7000, 512, 30);
        memory.source = library.c_str();
        tests::ActivityBuffer first, second;
        first.add(tests::kernel(10, 20, 1, name.c_str())).add(tests::op_correlation(1, 5));
        second.add(memory).add(tests::kernel(40, 50, 2, name.c_str()));
        ActivityRecordingWriter writer(path_, tests::next_activity_record());
        writer.add(first.bytes());
        writer.add(second.bytes());
        EXPECT_TRUE(writer.good());
        name.assign("overwritten");
        library.assign("overwritten");
    }
    std::string read_file() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write_file(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary) << bytes;
    }
    auto read() const { return tests::read_activity_recording(path_); }

    std::filesystem::path path_;
};

TEST_F(SyntheticActivityRecording, HoldsTheRecordsAndTheirNames) {
    write();
    auto recording = read();
    ASSERT_TRUE(recording.has_value()) << recording.error().message;
    ASSERT_EQ(recording->buffers.size(), 2U);
    ActivityRecords records;
    for (auto& buffer : recording->buffers) {
        parse_activity_buffer(tests::ActivityRecording::bytes_of(buffer),
                              tests::next_activity_record(), records);
    }
    EXPECT_EQ(records.broken_buffers, 0);
    ASSERT_EQ(records.kernels.size(), 2U);
    EXPECT_EQ(records.kernels[0].name, "_Z4gelumPf");
    EXPECT_EQ(records.kernels[1].name.data(), records.kernels[0].name.data());
    EXPECT_EQ(records.kernels[1].start_ns, 40U);
    ASSERT_EQ(records.memory.size(), 1U);
    EXPECT_EQ(records.memory[0].library, "libcublas.so.13");
    EXPECT_EQ(records.op_correlations.at(0).external_id, 5U);
}

TEST_F(SyntheticActivityRecording, AFileThatIsCutIsRefused) {
    write();
    const std::string whole = read_file();
    int refused = 0;
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
        write_file(whole.substr(0, bytes));
        refused += read().has_value() ? 0 : 1;
    }
    // All cuts but those between two chunks.
    EXPECT_GT(refused, static_cast<int>(whole.size() / 7) - 5);
}

TEST_F(SyntheticActivityRecording, AnotherVersionOrAnotherFileIsRefused) {
    write();
    std::string bytes = read_file();
    ++bytes[8];
    write_file(bytes);
    EXPECT_THAT(read().error().message, HasSubstr("another version"));
    write_file("SQLite format 3");
    EXPECT_THAT(read().error().message, HasSubstr("no recording"));
    std::filesystem::remove(path_);
    EXPECT_THAT(read().error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace profiler
