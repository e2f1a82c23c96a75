// The traces that come with the program.
#include "app/user/examples.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/formats/trace_formats.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

using tests::TemporaryFolder;

TEST(Examples, OpenAndShowWhatTempoSaves) {
    const TemporaryFolder folder;
    const auto files = app::write_examples(folder.path() / "new" / "examples");
    ASSERT_TRUE(files) << files.error().message;
    ASSERT_EQ(files->size(), 2U);
    std::vector<int64_t> peaks;
    for (const auto& file : *files) {
        const auto trace = profiler::open_trace(file);
        ASSERT_TRUE(trace) << trace.error().message;
        EXPECT_EQ(trace->text(trace->run().recipe), file.stem().string());
        EXPECT_EQ(trace->run().source, profiler::Source::kPredicted);
        ASSERT_TRUE(profiler::workload_of(*trace));
        peaks.push_back(profiler::report_step(*trace).peak.allocated_bytes);
    }
    EXPECT_LT(peaks[1], peaks[0]);
}

TEST(Examples, AreWrittenOnceAndMendedWhenDamaged) {
    const TemporaryFolder folder;
    const auto files = app::write_examples(folder.path());
    ASSERT_TRUE(files);
    const auto time = std::filesystem::last_write_time((*files)[0]);
    const auto size = std::filesystem::file_size((*files)[1]);
    std::ofstream((*files)[1]) << "damaged";
    ASSERT_TRUE(app::write_examples(folder.path()));
    EXPECT_EQ(std::filesystem::last_write_time((*files)[0]), time);
    EXPECT_EQ(std::filesystem::file_size((*files)[1]), size);
}

TEST(Examples, AFolderThatCannotBeMadeIsOneSentence) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "x";
    const auto files = app::write_examples(folder.path() / "file" / "examples");
    ASSERT_FALSE(files);
    EXPECT_NE(files.error().message.find("cannot be created"), std::string::npos);
}

}  // namespace
