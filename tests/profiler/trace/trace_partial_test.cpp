/// Captures that are running, were killed, or compete for a name.
#include "profiler/trace/file/trace_file.h"
#include "tests/profiler/trace/file_size_limit.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/profiler/trace/trace_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using tests::add_step;
using tests::create;
using tests::read;
using tests::TemporaryFolder;

/// A child process commits this many steps, records one more without committing it, and dies.
void record_and_die(const fs::path& path, int committed_steps) {
    const pid_t child = fork();
    if (child == 0) {
        auto writer = TraceWriter::create(path);
        if (!writer) _exit(1);
        Trace trace;
        for (int step = 0; step < committed_steps; ++step) {
            add_step(trace);
            if (!writer->commit(trace)) _exit(2);
        }
        add_step(trace);
        raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void record_two_steps_and_die(const fs::path& path) { record_and_die(path, 2); }

TEST(PartialTrace, ALinkThatAnotherUserPutThereIsNotFollowed) {
    const TemporaryFolder folder;
    std::ofstream(folder / "theirs") << "untouched";
    fs::create_symlink(folder / "theirs", folder / "a.tscope.partial");
    ASSERT_TRUE(TraceWriter::create(folder / "a.tscope"));
    std::string content;
    std::ifstream(folder / "theirs") >> content;
    EXPECT_EQ(content, "untouched");
    EXPECT_FALSE(fs::is_symlink(folder / "a.tscope.partial"));
}

TEST(PartialTrace, OneKilledBeforeItsFirstStepHoldsNothing) {
    const TemporaryFolder folder;
    record_and_die(folder / "a.tscope", 0);
    const fs::path partial = folder / "a.tscope.partial";
    EXPECT_FALSE(holds_committed_rows(partial));
    const auto trace = read_trace(partial);
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message, HasSubstr("ended before the first step"));
    remove_partial(partial);
    EXPECT_THAT(folder.names(), testing::IsEmpty());

    record_and_die(folder / "b.tscope", 1);
    EXPECT_TRUE(holds_committed_rows(folder / "b.tscope.partial"));
}

TEST(PartialTrace, AKilledCaptureOpensWithWhatItCommitted) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    EXPECT_FALSE(fs::exists(folder / "a.tscope"));
    const auto before = folder.names();
    const Trace trace = read(folder / "a.tscope.partial");
    EXPECT_EQ(trace.run().state, RunState::kIncomplete);
    EXPECT_EQ(trace.steps.size(), 2u);
    EXPECT_EQ(trace.allocations.size(), 2u);
    EXPECT_EQ(folder.names(), before) << "reading wrote beside the file";
}

TEST(PartialTrace, NamesALogThatIsALinkToItself) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    const fs::path log = folder / "a.tscope.partial-wal";
    fs::remove(log);
    fs::create_symlink(log, log);
    const auto trace = read_trace(folder / "a.tscope.partial");
    ASSERT_FALSE(trace);
    EXPECT_THAT(
        trace.error().message,
        HasSubstr("a.tscope.partial-wal cannot be read (Too many levels of symbolic links); "
                  "it is a link that points to itself"));
}

TEST(PartialTrace, AKilledCaptureOpensFromAFolderThatIsReadOnly) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    // Root may write everywhere; for root this test repeats the one above.
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    const auto trace = read_trace(folder / "a.tscope.partial");
    fs::permissions(folder.path(), fs::perms::owner_all);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->steps.size(), 2u);
}

TEST(PartialTrace, AKilledCaptureOpensWithoutTheIndexOfItsLog) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    fs::remove(folder / "a.tscope.partial-shm");  // as after copying the other two elsewhere
    EXPECT_EQ(read(folder / "a.tscope.partial").steps.size(), 2u);
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope.partial", "a.tscope.partial-wal"));
}

TEST(PartialTrace, SaysThatTheLogIsMissingOfACopyWithoutIt) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    fs::remove(folder / "a.tscope.partial-shm");
    fs::remove(folder / "a.tscope.partial-wal");
    const auto trace = read_trace(folder / "a.tscope.partial");
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message,
                HasSubstr("its log a.tscope.partial-wal is missing or damaged"));
}

TEST(PartialTrace, SaysThatTheLogIsMissingOfACopyUnderTheFinalName) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    fs::rename(folder / "a.tscope.partial", folder / "a.tscope");
    const auto trace = read_trace(folder / "a.tscope");
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message, HasSubstr("its log a.tscope-wal is missing or damaged"));
}

std::vector<std::string> diagnostic_codes(const Trace& trace) {
    std::vector<std::string> codes;
    for (const StringId code : trace.diagnostics.column<&Diagnostic::code>()) {
        codes.emplace_back(trace.text(code));
    }
    return codes;
}

/// Moves the log into the file, which SQLite does now and then, and removes the log.
void merge_log_and_lose_it(const fs::path& partial) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(partial.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, "PRAGMA wal_checkpoint", nullptr, nullptr, nullptr), SQLITE_OK);
    ASSERT_EQ(sqlite3_close(db), SQLITE_OK);
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(partial.string() + suffix);
}

TEST(PartialTrace, AKilledCaptureWithoutItsLogSaysThatStepsMayBeMissing) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    const fs::path partial = folder / "a.tscope.partial";
    EXPECT_THAT(diagnostic_codes(read(partial)), testing::IsEmpty());
    merge_log_and_lose_it(partial);
    const Trace trace = read(partial);
    EXPECT_EQ(trace.steps.size(), 2u);
    EXPECT_THAT(diagnostic_codes(trace), testing::ElementsAre("missing_log"));
    EXPECT_THAT(trace.text(trace.diagnostics[Id<Diagnostic>(0)].explanation),
                HasSubstr("a.tscope.partial-wal of this capture is missing or damaged"));

    std::ofstream(partial.string() + "-wal") << "<?xml version=\"1.0\"?>" << std::string(99, ' ');
    EXPECT_THAT(diagnostic_codes(read(partial)), testing::ElementsAre("missing_log"));
}

TEST(PartialTrace, ACaptureThatEndedInOrderNeedsNoLog) {
    const TemporaryFolder folder;
    {
        TraceWriter writer = create(folder / "a.tscope");
        Trace trace;
        add_step(trace);
        ASSERT_TRUE(writer.commit(trace));
    }
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope.partial"));
    const Trace trace = read(folder / "a.tscope.partial");
    EXPECT_EQ(trace.run().state, RunState::kIncomplete);
    EXPECT_EQ(trace.steps.size(), 1u);
    EXPECT_THAT(diagnostic_codes(trace), testing::IsEmpty());
}

/// Sets TMPDIR during its lifetime.
class TemporaryFilesIn {
public:
    explicit TemporaryFilesIn(const fs::path& folder) {
        if (const char* before = std::getenv("TMPDIR")) before_ = before;
        setenv("TMPDIR", folder.c_str(), 1);
    }
    ~TemporaryFilesIn() {
        if (before_) setenv("TMPDIR", before_->c_str(), 1);
        if (!before_) unsetenv("TMPDIR");
    }

private:
    std::optional<std::string> before_;
};

TEST(PartialTrace, NamesTheFolderForTheCopyWhenThereIsNoRoomAndLeavesNothingThere) {
    const TemporaryFolder folder;
    const TemporaryFolder temporary;
    record_two_steps_and_die(folder / "a.tscope");
    fs::remove(folder / "a.tscope.partial-shm");
    models::Result<Trace> trace;
    {
        const TemporaryFilesIn module_path(temporary.path());
        const tests::FileSizeLimit limit(4096);
        trace = read_trace(folder / "a.tscope.partial");
    }
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message, HasSubstr("a.tscope.partial cannot be read: its log"));
    EXPECT_THAT(trace.error().message, HasSubstr(temporary.path().string()));
    EXPECT_THAT(trace.error().message, HasSubstr("set TMPDIR"));
    EXPECT_TRUE(temporary.names().empty()) << "the copy is left behind";
}

TEST(PartialTrace, NamesAFolderForTheCopyThatIsNotThere) {
    const TemporaryFolder folder;
    record_two_steps_and_die(folder / "a.tscope");
    fs::remove(folder / "a.tscope.partial-shm");
    const TemporaryFilesIn module_path("/no/such/folder");
    const auto trace = read_trace(folder / "a.tscope.partial");
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message, HasSubstr("/no/such/folder"));
}

/// If the final name cannot be written, the capture is not lost. This holds when the log was
/// merged, and when a reader prevented that.
TEST(PartialTrace, FinishKeepsThePartialWhenTheFinalNameCannotBeWritten) {
    for (const bool with_reader : {false, true}) {
        const TemporaryFolder folder;
        const fs::path path = folder / "a.tscope";
        Trace trace;
        add_step(trace);
        TraceWriter writer = create(path);
        ASSERT_TRUE(writer.commit(trace));
        sqlite3* reader = nullptr;
        if (with_reader) {
            ASSERT_EQ(sqlite3_open((path.string() + ".partial").c_str(), &reader), SQLITE_OK);
            ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT * FROM step", nullptr, nullptr, nullptr),
                      SQLITE_OK);
        }
        fs::create_directory(path);  // while the capture ran
        const auto finished = writer.finish(trace);
        sqlite3_close(reader);
        ASSERT_FALSE(finished);
        EXPECT_THAT(finished.error().message, HasSubstr("a.tscope: "));
        EXPECT_THAT(finished.error().message,
                    testing::EndsWith("; the capture stays in " + path.string() + ".partial."));
        EXPECT_EQ(read(path.string() + ".partial").steps.size(), 1u);
    }
}

TEST(PartialTrace, TheNextCaptureSetsAKilledOneAside) {
    const TemporaryFolder folder;
    for (int round = 0; round < 2; ++round) record_two_steps_and_die(folder / "a.tscope");
    Trace trace;
    for (int step = 0; step < 3; ++step) add_step(trace);
    TraceWriter writer = create(folder / "a.tscope");
    ASSERT_TRUE(writer.finish(trace));
    EXPECT_THAT(folder.names(),
                UnorderedElementsAre("a.tscope", "a.tscope.partial.1", "a.tscope.partial.2"));
    EXPECT_EQ(read(folder / "a.tscope.partial.1").steps.size(), 2u);
    EXPECT_EQ(read(folder / "a.tscope.partial.2").steps.size(), 2u);
    EXPECT_EQ(read(folder / "a.tscope").steps.size(), 3u);
}

TEST(PartialTrace, APartialThatIsNoDatabaseIsSetAsideToo) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a.tscope.partial")
        << "something else, longer than an SQLite header: " << std::string(200, '.');
    Trace trace;
    ASSERT_TRUE(create(folder / "a.tscope").finish(trace));
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope", "a.tscope.partial.1"));
}

/// A process that answers the same question each time it is asked. It must start before this
/// process opens a database: SQLite's locks do not survive a fork.
class OtherProcess {
public:
    explicit OtherProcess(const std::function<bool()>& question) {
        int to[2], from[2];
        if (pipe(to) != 0 || pipe(from) != 0) throw std::runtime_error("no pipe");
        pid_ = fork();
        if (pid_ == 0) {
            close(to[1]);
            close(from[0]);
            char byte = 0;
            while (::read(to[0], &byte, 1) == 1) {
                byte = question() ? 'y' : 'n';
                if (write(from[1], &byte, 1) != 1) break;
            }
            _exit(0);
        }
        close(to[0]);
        close(from[1]);
        ask_ = to[1];
        answer_ = from[0];
    }
    ~OtherProcess() {
        close(ask_);
        close(answer_);
        waitpid(pid_, nullptr, 0);
    }
    bool ask() const {
        char byte = '?';
        return write(ask_, &byte, 1) == 1 && ::read(answer_, &byte, 1) == 1 && byte == 'y';
    }

private:
    pid_t pid_ = -1;
    int ask_ = -1;
    int answer_ = -1;
};

TEST(PartialTrace, TheSecondWriterIsRefusedWhileTheFirstLives) {
    const TemporaryFolder folder;
    const fs::path path = folder / "a.tscope";
    const OtherProcess other([&] {
        const auto writer = TraceWriter::create(path);
        return !writer && writer.error().message.find("is being written") != std::string::npos;
    });
    Trace trace;
    add_step(trace);
    TraceWriter first = create(path);
    EXPECT_FALSE(TraceWriter::create(path)) << "before the first commit";
    EXPECT_TRUE(other.ask()) << "before the first commit";
    ASSERT_TRUE(first.commit(trace));
    const auto second = TraceWriter::create(path);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message,
                HasSubstr("a.tscope.partial is being written by another capture"));
    EXPECT_TRUE(other.ask());
    add_step(trace);
    ASSERT_TRUE(first.commit(trace)) << "the refused ones did harm";
    EXPECT_TRUE(other.ask()) << "the refused one took the lock away";
    ASSERT_TRUE(first.finish(trace));
    EXPECT_EQ(read(path).steps.size(), 2u);
    EXPECT_TRUE(TraceWriter::create(path)) << "a finished capture still holds its name";
}

TEST(PartialTrace, ALiveCaptureIsReadByAnotherProcessWithoutWritingBesideIt) {
    const TemporaryFolder folder;
    const fs::path path = folder / "a.tscope";
    std::size_t expected_steps = 0;
    const OtherProcess other([&] {
        const auto seen = read_trace(path.string() + ".partial");
        return seen && seen->steps.size() == ++expected_steps;
    });
    Trace trace;
    TraceWriter writer = create(path);
    for (int step = 0; step < 3; ++step) {
        add_step(trace);
        ASSERT_TRUE(writer.commit(trace));
        const auto before = folder.names();
        EXPECT_TRUE(other.ask());
        EXPECT_EQ(folder.names(), before);
    }
    ASSERT_TRUE(writer.finish(trace));
}

TEST(PartialTrace, FinishSucceedsThoughAReaderHoldsThePartial) {
    const TemporaryFolder folder;
    const fs::path path = folder / "a.tscope";
    Trace trace;
    add_step(trace);
    TraceWriter writer = create(path);
    ASSERT_TRUE(writer.commit(trace));
    int ready[2], done[2];
    ASSERT_EQ(pipe(ready), 0);
    ASSERT_EQ(pipe(done), 0);
    const pid_t child = fork();
    if (child == 0) {
        // Another program is in the middle of a query.
        execlp("python3", "python3", "-c",
               "import sqlite3,sys,os\n"
               "db=sqlite3.connect(sys.argv[1]); db.execute('BEGIN'); db.execute('SELECT * FROM "
               "step').fetchone()\n"
               "os.write(int(sys.argv[2]), b'x'); os.read(int(sys.argv[3]), 1)",
               (path.string() + ".partial").c_str(), std::to_string(ready[1]).c_str(),
               std::to_string(done[0]).c_str(), nullptr);
        _exit(127);
    }
    close(ready[1]);
    char byte = 0;
    const bool reading = ::read(ready[0], &byte, 1) == 1;
    const auto finished = writer.finish(trace);
    close(ready[0]);
    (void)!write(done[1], "x", 1);
    waitpid(child, nullptr, 0);
    close(done[0]);
    close(done[1]);
    ASSERT_TRUE(finished) << finished.error().message;
    EXPECT_EQ(read(path).run().state, RunState::kComplete);
    EXPECT_FALSE(fs::exists(path.string() + ".partial"));
    if (!reading) GTEST_SKIP() << "python3 with sqlite3 is not there: finished without a reader";
}

}  // namespace
}  // namespace profiler
