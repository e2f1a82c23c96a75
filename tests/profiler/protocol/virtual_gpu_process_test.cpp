#include "profiler/protocol/virtual_gpu_process.h"

#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace profiler {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const VirtualCard kCard{.name = "A \"card\"",
                        .capability = {8, 6},
                        .total_bytes = 1000,
                        .sm_count = 2,
                        .l2_bytes = 64,
                        .memory_bus_bits = 384};

/// A folder with two empty files in place of libraries.
std::filesystem::path folder_of_libraries(const tests::TemporaryFolder& folder,
                                          const std::string& name) {
    const std::filesystem::path path = folder.path() / name;
    std::filesystem::create_directory(path);
    for (const char* file : {"libb.so", "liba.so"}) std::ofstream(path / file) << "";
    return path;
}

TEST(VirtualGpuProcess, NamesTheLibrariesAndDescribesTheCards) {
    const tests::TemporaryFolder folder;
    const std::filesystem::path path = folder_of_libraries(folder, "libraries");
    const auto environment = virtual_gpu_environment(path, {kCard});
    ASSERT_TRUE(environment) << environment.error().message;
    ASSERT_EQ(environment->size(), 4U);
    EXPECT_THAT((*environment)[0], StartsWith("LD_PRELOAD=" + (path / "liba.so").string() + ":" +
                                              (path / "libb.so").string()));
    EXPECT_THAT((*environment)[1], StartsWith("LD_LIBRARY_PATH=" + path.string() + ":"));
    EXPECT_THAT((*environment)[1], testing::EndsWith(":" + path.string() + "_fallback"));
    EXPECT_THAT((*environment)[2], StartsWith("TEMPOSCOPE_VIRTUAL_GPU={"));
    EXPECT_THAT((*environment)[2], HasSubstr(R"("compute_capability":"8.6")"));
    EXPECT_THAT((*environment)[2], HasSubstr(R"("threads_per_sm":1536)"));
    EXPECT_THAT((*environment)[2], HasSubstr(R"("name":"A \"card\"")"));
    EXPECT_EQ((*environment)[3], "TORCH_DIST_USE_NCCL2=0");
    EXPECT_THAT((*environment)[2], HasSubstr(R"("memory_bus_bits":384)"));
    EXPECT_THAT((*environment)[2], testing::Not(HasSubstr("memory_clock_khz")));
}

TEST(VirtualGpuProcess, KeepsWhatTheUserPreloads) {
    const tests::TemporaryFolder folder;
    setenv("LD_PRELOAD", "libof_the_user.so", 1);
    const auto environment =
        virtual_gpu_environment(folder_of_libraries(folder, "libraries"), {kCard});
    unsetenv("LD_PRELOAD");
    ASSERT_TRUE(environment);
    EXPECT_THAT((*environment)[0], testing::EndsWith("libb.so:libof_the_user.so"));
}

TEST(VirtualGpuProcess, SaysWhatIsMissing) {
    const tests::TemporaryFolder folder;
    const auto missing = virtual_gpu_environment(folder.path() / "nowhere", {kCard});
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("run scripts/build again"));
    const auto spaced = virtual_gpu_environment(folder_of_libraries(folder, "a folder"), {kCard});
    ASSERT_FALSE(spaced);
    EXPECT_THAT(spaced.error().message, HasSubstr("space or a colon"));
}

}  // namespace
}  // namespace profiler
