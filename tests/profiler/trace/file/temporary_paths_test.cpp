#include "profiler/trace/file/temporary_paths.h"

#include "profiler/trace/file/write_file.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using testing::KilledBySignal;

class EndingSignal : public testing::TestWithParam<int> {};

/// In a child process, since it ends.
[[noreturn]] void raise_with_unfinished_files(const fs::path& folder, int number) {
    setenv("TMPDIR", folder.c_str(), 1);
    remove_paths_on_signals();
    const auto unfinished = UnfinishedFile::create(folder / "chart.svg");
    const profiler::TemporaryFolder temporary;
    const RemovedOnSignal inside(temporary / "copy");
    if (!unfinished || !temporary.exists() || !create_new(temporary / "copy")) std::_Exit(1);
    std::raise(number);
    std::_Exit(2);
}

TEST_P(EndingSignal, RemovesWhatIsUnfinishedAndEndsTheProcess) {
    const tests::TemporaryFolder folder;
    EXPECT_EXIT(raise_with_unfinished_files(folder.path(), GetParam()), KilledBySignal(GetParam()),
                "");
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_P(EndingSignal, StaysIgnored) {
    const tests::TemporaryFolder folder;
    const auto raise_ignored = [&] {
        std::signal(GetParam(), SIG_IGN);
        raise_with_unfinished_files(folder.path(), GetParam());
    };
    EXPECT_EXIT(raise_ignored(), testing::ExitedWithCode(2), "");
    EXPECT_FALSE(fs::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(Signals, EndingSignal, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(RemovedOnSignal, RemovesWhatIsRegisteredAndNothingElse) {
    const tests::TemporaryFolder folder;
    for (const char* name : {"gone", "moved", "kept", "later"}) {
        ASSERT_TRUE(create_new(folder / name));
    }
    const RemovedOnSignal gone(folder / "gone");
    RemovedOnSignal from(folder / "moved");
    const RemovedOnSignal to(std::move(from));
    { const RemovedOnSignal over(folder / "kept"); }
    remove_temporary_paths();
    EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("kept", "later"));
}

TEST(RemovedOnSignal, ManyPathsAtATimeAreNoProblem) {
    const tests::TemporaryFolder folder;
    std::vector<RemovedOnSignal> many;
    for (int i = 0; i < 100; ++i) many.emplace_back(folder / std::to_string(i));
}

}  // namespace
}  // namespace profiler
