#include "profiler/trace/available_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace profiler {
namespace {

namespace fs = std::filesystem;

/// A root folder with the files that a kernel would show.
class AvailableMemory : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::path(testing::TempDir()) /
                (std::string("available_memory_") +
                 testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::remove_all(root_);
        write("proc/meminfo", "MemTotal:       100 kB\nMemAvailable:    64 kB\n");
    }
    void TearDown() override { fs::remove_all(root_); }

    void write(const std::string& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    int64_t bytes() const { return available_memory_bytes(root_); }
    const fs::path& root() const { return root_; }

private:
    fs::path root_;
};

TEST_F(AvailableMemory, IsWhatTheKernelCallsAvailable) { EXPECT_EQ(bytes(), 64 * 1024); }

TEST_F(AvailableMemory, IsLessWhereTheContainerHasALimit) {
    write("proc/self/cgroup", "0::/box\n");
    write("sys/fs/cgroup/box/memory.max", "40000\n");
    write("sys/fs/cgroup/box/memory.current", "30000\n");
    write("sys/fs/cgroup/box/memory.stat", "anon 20000\ninactive_file 5000\n");
    EXPECT_EQ(bytes(), 40000 - 30000 + 5000);
}

TEST_F(AvailableMemory, IsLessWhereAGroupAroundItHasALimit) {
    write("proc/self/cgroup", "0::/pod/box\n");
    write("sys/fs/cgroup/pod/box/memory.max", "max\n");
    write("sys/fs/cgroup/pod/box/memory.current", "1\n");
    write("sys/fs/cgroup/pod/memory.max", "9000\n");
    write("sys/fs/cgroup/pod/memory.current", "1000\n");
    EXPECT_EQ(bytes(), 8000);
}

TEST_F(AvailableMemory, KnowsTheOlderGroups) {
    write("proc/self/cgroup", "4:memory:/box\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "50000\n");
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "20000\n");
    EXPECT_EQ(bytes(), 30000);
}

TEST_F(AvailableMemory, IsUnknownWithoutAKernelThatTells) {
    EXPECT_EQ(available_memory_bytes("/no/such/folder"), -1);
}

TEST_F(AvailableMemory, ResidentMemoryIsALineOfTheStatus) {
    write("proc/self/status", "Name:\tworker\nVmSize:\t  900 kB\nVmRSS:\t   70 kB\n");
    EXPECT_EQ(resident_memory_bytes(root()), 70 * 1024);
    EXPECT_EQ(resident_memory_bytes("/no/such/folder"), -1);
}

TEST(AvailableMemoryOfThisMachine, IsPositive) {
    EXPECT_GT(available_memory_bytes(), 0);
    EXPECT_GT(resident_memory_bytes(), 0);
}

}  // namespace
}  // namespace profiler
