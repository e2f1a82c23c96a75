#include "app/workspace/jobs/file_watch.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FileWatch : public testing::Test {
protected:
    FileWatch() { fs::create_directories(folder_); }
    ~FileWatch() override { fs::remove_all(folder_); }

    /// In one piece: a file that is empty for a moment would be a change of its own.
    fs::path write(const std::string& name, const std::string& content) {
        std::ofstream(folder_ / "written") << content;
        fs::rename(folder_ / "written", folder_ / name);
        return folder_ / name;
    }
    void watch(const fs::path& file) { watch_.watch(file, app::stamp_of(file).value()); }
    /// Waits for a change. A loaded machine takes longer, so the limit is generous.
    std::vector<fs::path> next_change() {
        for (int i = 0; i < 4000; ++i) {
            if (auto changed = watch_.take_changed(); !changed.empty()) return changed;
            std::this_thread::sleep_for(5ms);
        }
        return {};
    }
    std::vector<fs::path> changes_during(std::chrono::milliseconds time) {
        std::this_thread::sleep_for(time);
        return watch_.take_changed();
    }

    const fs::path folder_ =
        fs::temp_directory_path() / ("temposcope_watch_" + std::to_string(getpid()));
    app::FileWatch watch_{10ms};
};

TEST_F(FileWatch, ReportsAFileThatWasRewrittenOnce) {
    const fs::path file = write("a", "one");
    const fs::path other = write("b", "one");
    watch(file);
    watch(other);
    EXPECT_TRUE(changes_during(60ms).empty());
    write("a", "longer");
    EXPECT_EQ(next_change(), std::vector<fs::path>{file});
    EXPECT_TRUE(changes_during(60ms).empty());
    write("a", "longer still");
    EXPECT_EQ(next_change(), std::vector<fs::path>{file});
}

TEST_F(FileWatch, ReportsAFileThatAnotherReplaced) {
    const fs::path file = write("a", "one");
    watch(file);
    fs::rename(write("new", "another"), file);
    EXPECT_EQ(next_change(), std::vector<fs::path>{file});
}

TEST_F(FileWatch, ReportsAChangeBetweenReadingAndWatching) {
    const fs::path file = write("a", "one");
    const auto read = app::stamp_of(file);
    write("a", "longer");
    watch_.watch(file, read.value());
    EXPECT_EQ(next_change(), std::vector<fs::path>{file});
}

TEST_F(FileWatch, SaysNothingWhileAFileIsMissing) {
    const fs::path file = write("a", "one");
    watch(file);
    fs::remove(file);
    EXPECT_TRUE(changes_during(60ms).empty());
    write("a", "it is back");
    EXPECT_EQ(next_change(), std::vector<fs::path>{file});
}

TEST_F(FileWatch, ForgetsFilesAndKnowsNoVersionOfAFileThatIsNotThere) {
    const fs::path file = write("a", "one");
    watch(file);
    EXPECT_EQ(app::stamp_of(folder_ / "none"), std::nullopt);
    watch_.forget(file);
    write("a", "longer");
    write("none", "there now");
    EXPECT_TRUE(changes_during(60ms).empty());
}

}  // namespace
