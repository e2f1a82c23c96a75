#include "profiler/analysis/source_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace {

using profiler::SourceLines;
namespace fs = std::filesystem;

class SourceLinesTest : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::path(testing::TempDir()) /
                  testing::UnitTest::GetInstance()->current_test_info()->name();
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string write(const char* name, const char* text) const {
        const fs::path file = folder_ / name;
        std::ofstream(file) << text;
        return file.string();
    }
    static int64_t written_unix_ns(const std::string& file) {
        struct stat status {};
        stat(file.c_str(), &status);
        return status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    }

    fs::path folder_;
};

TEST_F(SourceLinesTest, ReadsALineWithoutItsIndentation) {
    const std::string file = write("train.py", "import torch\n\n    loss.backward()  # here\r\n");
    SourceLines lines(0);
    EXPECT_EQ(lines.of(file, 1), "import torch");
    EXPECT_EQ(lines.of(file, 2), "");
    EXPECT_EQ(lines.of(file, 3), "loss.backward()  # here");
    for (const int64_t none : {-1, 0, 4}) EXPECT_EQ(lines.of(file, none), "");
}

TEST_F(SourceLinesTest, DoesNotQuoteAFileThatIsNewerThanTheTrace) {
    const std::string file = write("train.py", "x = 1\n");
    EXPECT_EQ(SourceLines(written_unix_ns(file) + 1).of(file, 1), "x = 1");
    EXPECT_EQ(SourceLines(written_unix_ns(file) - 1).of(file, 1), "");
}

TEST_F(SourceLinesTest, OpensNothingButPythonFiles) {
    const std::string text = write("secret.txt", "text\n");
    const std::string pipe = (folder_ / "pipe.py").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // opening it would wait for a writer
    SourceLines lines(0);
    for (const std::string& file : {text, pipe, folder_.string(), std::string("<stdin>")}) {
        EXPECT_EQ(lines.of(file, 1), "") << file;
    }
}

}  // namespace
