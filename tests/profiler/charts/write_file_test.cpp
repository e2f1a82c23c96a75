#include "profiler/charts/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;
using profiler::write_file;
using testing::HasSubstr;

class WriteFile : public testing::Test {
protected:
    void SetUp() override {
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = fs::temp_directory_path() /
                  ("temposcope_" + std::string(test->name()) + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    static std::string read(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::ptrdiff_t file_count() const {
        return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    }

    fs::path folder_;
};

/// No file of this process may grow beyond the limit: what a full disk looks like to a writer.
class ScopedFileSizeLimit {
public:
    explicit ScopedFileSizeLimit(rlim_t limit_bytes) {
        old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &old_limit_);
        rlimit limit = old_limit_;
        limit.rlim_cur = limit_bytes;
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~ScopedFileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &old_limit_);
        std::signal(SIGXFSZ, old_handler_);
    }
    ScopedFileSizeLimit(const ScopedFileSizeLimit&) = delete;
    ScopedFileSizeLimit& operator=(const ScopedFileSizeLimit&) = delete;

private:
    rlimit old_limit_{};
    void (*old_handler_)(int) = SIG_DFL;
};

TEST_F(WriteFile, ReplacesTheWholeContent) {
    const fs::path path = folder_ / "chart.svg";
    ASSERT_TRUE(write_file(path, "a long first content"));
    ASSERT_TRUE(write_file(path, "short"));
    EXPECT_EQ(read(path), "short");
    EXPECT_EQ(file_count(), 1);
}

TEST_F(WriteFile, SaysThatAFolderIsMissing) {
    const auto result = write_file(folder_ / "missing" / "chart.svg", "x");
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("cannot be written (No such file or directory)"));
}

TEST_F(WriteFile, RefusesAFolder) {
    const auto result = write_file(folder_, "x");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, folder_.string() + " is a folder; name a file in it.");
}

TEST_F(WriteFile, KeepsTheOldContentWhenThereIsNoRoom) {
    const fs::path path = folder_ / "chart.svg";
    ASSERT_TRUE(write_file(path, "old"));
    models::Result<void> result;
    {
        const ScopedFileSizeLimit limit(4096);
        result = write_file(path, std::string(10'000, 'x'));
    }
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("could not be written (File too large)"));
    EXPECT_EQ(read(path), "old");
    EXPECT_EQ(file_count(), 1) << "nothing half-written is left";
}

TEST_F(WriteFile, ReportsAFullDevice) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
    const auto result = write_file("/dev/full", "x");
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("No space left on device"));
}

}  // namespace
