#include "profiler/trace/file/write_file.h"

#include "tests/profiler/trace/file_size_limit.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using tests::TemporaryFolder;

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string message(const models::Result<void>& result) {
    return result ? "no error" : result.error().message;
}

TEST(WriteFile, ReplacesTheWholeContent) {
    const TemporaryFolder folder;
    const fs::path path = folder / "chart.svg";
    ASSERT_TRUE(write_file(path, "a long first content"));
    ASSERT_TRUE(write_file(path, "short"));
    EXPECT_EQ(read(path), "short");
    EXPECT_THAT(folder.names(), ElementsAre("chart.svg"));
}

TEST(WriteFile, SaysWhatIsInTheWayAndWhatToDo) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "file", "x"));
    EXPECT_EQ(message(write_file(folder / "file/deep/chart.svg", "x")),
              "Cannot write " + (folder / "file/deep/chart.svg").string() + ": the folder " +
                  (folder / "file/deep").string() +
                  " cannot be made: Not a directory; a part of its path is a file; choose another "
                  "folder.");
    EXPECT_THAT(message(write_file(folder.path(), "x")),
                EndsWith(": Is a directory; it is a folder; name a file in it."));
    EXPECT_THAT(message(write_file(folder / "file/chart.svg", "x")),
                HasSubstr("Not a directory; a part of its path is a file"));
    EXPECT_THAT(message(write_file(folder / std::string(400, 'x'), "x")),
                HasSubstr("File name too long; choose a shorter name"));
}

TEST(WriteFile, NeverReplacesATraceByAnythingElse) {
    const TemporaryFolder folder;
    const fs::path path = folder / "comparison.svg";
    const std::string trace("SQLite format 3\0", 16);
    ASSERT_TRUE(write_file(path, trace));
    EXPECT_THAT(message(write_file(path, "<svg>")), HasSubstr("it is a trace; choose another"));
    EXPECT_EQ(message(check_can_write(path)), message(write_file(path, "<svg>")));
    ASSERT_TRUE(write_file(path, trace + "newer"));
    EXPECT_EQ(read(path), trace + "newer");
}

TEST(WriteFile, ALinkStaysALink) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "elsewhere");
    fs::create_symlink("elsewhere/chart.svg", folder / "first");  // does not exist yet
    fs::create_symlink("first", folder / "second");
    ASSERT_TRUE(write_file(folder / "second", "x"));
    EXPECT_TRUE(fs::is_symlink(folder / "first") && fs::is_symlink(folder / "second"));
    EXPECT_EQ(read(folder / "elsewhere/chart.svg"), "x");
}

TEST(WriteFile, KeepsThePermissionsOfTheFileThatItReplaces) {
    const TemporaryFolder folder;
    const fs::path path = folder / "chart.svg";
    ASSERT_TRUE(write_file(path, "old"));
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    ASSERT_TRUE(write_file(path, "new"));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WriteFile, LeavesAFileThatMayOnlyBeRead) {
    if (geteuid() == 0) GTEST_SKIP() << "root may write every file";
    const TemporaryFolder folder;
    const fs::path path = folder / "chart.svg";
    ASSERT_TRUE(write_file(path, "old"));
    fs::permissions(path, fs::perms::owner_read);
    EXPECT_THAT(message(write_file(path, "new")), HasSubstr("Permission denied"));
    EXPECT_EQ(read(path), "old");
}

TEST(CheckCanWrite, SaysWhatWritingWouldSayAndLeavesNothing) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "file", "x"));
    const fs::path dangling = folder / "link";
    fs::create_symlink(folder / "file/target", dangling);
    const fs::path circle = folder / "circle";
    fs::create_symlink(circle, circle);
    for (const fs::path& path : {folder.path(), dangling, circle, folder / "file/chart.svg",
                                 folder / std::string(400, 'x')}) {
        EXPECT_EQ(message(check_can_write(path)), message(write_file(path, "x"))) << path;
    }
    EXPECT_THAT(message(write_file(circle, "x")),
                HasSubstr(circle.string() + ": Too many levels of symbolic links; it is a link"));
    for (const fs::path& path : {folder / "new", folder / "file", folder / "missing/deep/chart.svg",
                                 fs::path("/dev/null"), fs::path()})
        EXPECT_TRUE(check_can_write(path)) << path;
    EXPECT_THAT(folder.names(), testing::UnorderedElementsAre("circle", "file", "link"));
    EXPECT_EQ(read(folder / "file"), "x");
}

TEST(WriteFile, MakesTheFolderAndThoseAroundIt) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "new/deep/chart.svg", "x"));
    EXPECT_EQ(read(folder / "new/deep/chart.svg"), "x");
}

TEST(MadeFolder, IsDeletedUnlessSomethingLiesInside) {
    const TemporaryFolder folder;
    fs::create_symlink(folder / "nothing", folder / "link");
    for (const bool is_filled : {false, true}) {
        {
            const auto made = MadeFolder::make(folder / "new/deep/");
            ASSERT_TRUE(made);
            EXPECT_TRUE(fs::is_directory(folder / "new/deep"));
            if (is_filled) std::ofstream(folder / "new/file") << "x";
            EXPECT_FALSE(MadeFolder::make(folder / "link"));
        }
        EXPECT_FALSE(fs::exists(folder / "new/deep"));
        EXPECT_EQ(fs::exists(folder / "new/file"), is_filled);
    }
    EXPECT_TRUE(fs::is_symlink(folder / "link")) << "the user's link stays";
    const auto there = MadeFolder::make(folder.path());
    ASSERT_TRUE(there);
}

TEST(WriteFile, KeepsTheOldContentWhenThereIsNoRoom) {
    const TemporaryFolder folder;
    const fs::path path = folder / "chart.svg";
    ASSERT_TRUE(write_file(path, "old"));
    models::Result<void> result;
    {
        const tests::FileSizeLimit limit(4096);
        result = write_file(path, std::string(10'000, 'x'));
    }
    EXPECT_THAT(message(result), HasSubstr("File too large; raise the limit"));
    EXPECT_EQ(read(path), "old");
    EXPECT_THAT(folder.names(), ElementsAre("chart.svg")) << "nothing half-written is left";
}

TEST(WriteFile, ReportsAFullDevice) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
    EXPECT_THAT(message(write_file("/dev/full", "x")),
                HasSubstr("No space left on device; free some space"));
}

TEST(CreateNew, NeverTakesALinkOrAFileThatIsThere) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "theirs", "x"));
    fs::create_symlink(folder / "theirs", folder / "link");
    fs::create_symlink(folder / "nothing", folder / "dangling");
    for (const char* name : {"theirs", "link", "dangling"}) {
        EXPECT_THAT(message(create_new(folder / name)), HasSubstr("remove it or choose another"));
    }
    EXPECT_EQ(read(folder / "theirs"), "x");
    EXPECT_FALSE(fs::exists(folder / "nothing"));
}

TEST(UnfinishedFile, HasANameOfItsOwn) {
    const TemporaryFolder folder;
    const auto first = UnfinishedFile::create(folder / "a");
    const auto second = UnfinishedFile::create(folder / "a");
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->name(), second->name());
    EXPECT_EQ(fs::file_size(first->name()), 0U);
}

TEST(UnfinishedFile, NeverTakesThePlaceOfAPipe) {
    const TemporaryFolder folder;
    const fs::path pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto created = UnfinishedFile::create(pipe);
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().message,
              "Cannot write " + pipe.string() + ": it is a device or a pipe; name a file.");
    EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(UnfinishedFile, IsRemovedUnlessItBecomesAnother) {
    const TemporaryFolder folder;
    ASSERT_TRUE(UnfinishedFile::create(folder / "a"));
    EXPECT_TRUE(fs::is_empty(folder.path()));
    ASSERT_TRUE(UnfinishedFile::create(folder / "a")->become(folder / "a"));
    EXPECT_TRUE(fs::exists(folder / "a"));
}

TEST(ReplaceFile, LeavesTheNewFileWhereItWasWhenItCannotTakeItsPlace) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "new", "x"));
    fs::create_directory(folder / "old");
    EXPECT_THAT(message(replace_file(folder / "new", folder / "old")),
                HasSubstr("Is a directory; it is a folder"));
    EXPECT_EQ(read(folder / "new"), "x");
}

TEST(WriteRemedy, DiffersWithTheReason) {
    EXPECT_THAT(write_remedy(EACCES), HasSubstr("permissions"));
    EXPECT_THAT(write_remedy(EROFS), HasSubstr("choose another folder"));
    EXPECT_THAT(write_remedy(EDQUOT), HasSubstr("free some space"));
    EXPECT_THAT(write_remedy(EIO), HasSubstr("check the disk"));
}

}  // namespace
}  // namespace profiler
