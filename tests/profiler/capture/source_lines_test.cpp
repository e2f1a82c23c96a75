#include "profiler/capture/call_stacks.h"

#include "tests/profiler/trace/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace {

using profiler::SourceLines;

class SourceLinesTest : public testing::Test {
protected:
    std::string write(const char* name, const std::string& text) const {
        const std::string file = (folder_.path() / name).string();
        std::ofstream(file) << text;
        return file;
    }

    tests::TemporaryFolder folder_;
    SourceLines lines_;
};

TEST_F(SourceLinesTest, ReadsALineWithoutItsIndentation) {
    const std::string file = write("train.py", "import torch\n\n    loss.backward()  # here\r\n");
    EXPECT_EQ(lines_.of(file, 1), "import torch");
    EXPECT_EQ(lines_.of(file, 2), "");
    EXPECT_EQ(lines_.of(file, 3), "loss.backward()  # here");
    for (const int64_t none : {-1, 0, 4}) EXPECT_EQ(lines_.of(file, none), "");
}

TEST_F(SourceLinesTest, CutsALongLineBetweenCharacters) {
    std::string line(SourceLines::kMaxLength - 1, 'x');
    const std::string file = write("train.py", line + "\u00e9 = 1\n");
    EXPECT_EQ(lines_.of(file, 1), line);
}

TEST_F(SourceLinesTest, LeavesOutWhatIsNotUtf8) {
    const std::string file = write("train.py", "x = 1  # \xe9\ny = 2\n");  // Latin-1
    EXPECT_EQ(lines_.of(file, 1), "");
    EXPECT_EQ(lines_.of(file, 2), "y = 2");
}

TEST_F(SourceLinesTest, OpensNothingButPythonFiles) {
    const std::string text = write("secret.txt", "text\n");
    const std::string pipe = (folder_.path() / "pipe.py").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // opening it would wait for a writer
    for (const std::string& file : {text, pipe, folder_.path().string(), std::string("<stdin>")}) {
        EXPECT_EQ(lines_.of(file, 1), "") << file;
    }
}

}  // namespace
