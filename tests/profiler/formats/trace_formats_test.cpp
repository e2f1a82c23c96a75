#include "profiler/formats/trace_formats.h"

#include "profiler/trace/file/readable_file.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>

namespace profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::TemporaryFolder;

void write(const std::filesystem::path& file, std::string_view bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

AllocatorRecording one_block() {
    AllocatorRecording recording;
    recording.segments.push_back({.address = 0x7f0000000000,
                                  .size_bytes = 2 << 20,
                                  .is_small = true,
                                  .blocks = {{0x7f0000000000, 1024, 1000, BlockState::kAllocated},
                                             {0x7f0000000400, (2 << 20) - 1024}}});
    recording.events = {{.action = RecordedAction::kAlloc,
                         .address = 0x7f0000000000,
                         .size_bytes = 1000,
                         .time_us = 5}};
    return recording;
}

std::string problem(const std::filesystem::path& file) {
    const auto trace = open_trace(file);
    return trace ? "" : trace.error().message;
}

TEST(OpenTrace, ReadsEveryFormatByItsContentWhateverItsName) {
    const TemporaryFolder folder;
    Trace trace;
    trace.runs.append({});
    ASSERT_TRUE(write_trace(trace, folder / "a.tscope"));
    std::filesystem::rename(folder / "a.tscope", folder / "trace.pickle");
    write(folder / "snapshot.tscope", tests::snapshot_bytes(one_block()));
    const auto own = open_trace(folder / "trace.pickle");
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->run().source, Source::kMeasuredCpu);
    const auto snapshot = open_trace(folder / "snapshot.tscope");
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_EQ(snapshot->run().source, Source::kImported);
}

TEST(OpenTrace, EveryRowOfTheTableIsComplete) {
    for (const TraceFormat& format : trace_formats()) {
        EXPECT_FALSE(format.name.empty());
        EXPECT_FALSE(format.extensions.empty()) << format.name;
        ASSERT_NE(format.recognises, nullptr) << format.name;
        EXPECT_NE(format.read, nullptr) << format.name;
        EXPECT_FALSE(format.recognises("")) << format.name;
        EXPECT_FALSE(format.recognises("Dear diary,")) << format.name;
    }
}

TEST(OpenTrace, SaysWhatIsWrongWithAFile) {
    const TemporaryFolder folder;
    write(folder / "notes.txt", "Dear diary,");
    EXPECT_THAT(problem(folder / "notes.txt"),
                HasSubstr("notes.txt is neither a Temposcope trace (.tscope) nor a PyTorch"));
    write(folder / "empty.tscope", "");
    EXPECT_THAT(problem(folder / "empty.tscope"), HasSubstr("is empty"));
    write(folder / "empty.pickle", "");
    EXPECT_THAT(problem(folder / "empty.pickle"), HasSubstr("begins no pickle"));
    write(folder / "empty", "");
    EXPECT_THAT(problem(folder / "empty"), HasSubstr("is neither"));
    write(folder / "cut.tscope", "SQLite form");
    EXPECT_THAT(problem(folder / "cut.tscope"), HasSubstr("is truncated"));
    EXPECT_THAT(problem(folder / "missing.tscope"), HasSubstr("does not exist"));
    EXPECT_THAT(problem(folder / "missing.txt"), HasSubstr("does not exist"));
    EXPECT_THAT(problem(folder.path()), HasSubstr("is a folder"));
    write(folder / "code.pickle",
          "\x80\x02"
          "cos\nsystem\n.");
    EXPECT_THAT(problem(folder / "code.pickle"), HasSubstr("GLOBAL builds Python objects"));
}

constexpr std::string_view kJsonSnapshot = R"({"segments": [], "device_traces": [[]]})";
constexpr std::string_view kProfilerTrace =
    R"({"traceEvents": [{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":1}]})";

/// Packed traces of the profiler are read, so a packed snapshot must not be taken for one.
TEST(OpenTrace, SaysThatASnapshotIsPacked) {
    const TemporaryFolder folder;
    for (const std::string& bytes :
         {tests::snapshot_bytes(one_block()), std::string(kJsonSnapshot)}) {
        const auto file = folder / "s.json.gz";
        gzFile out = gzopen(file.c_str(), "wb");
        gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
        gzclose(out);
        EXPECT_THAT(problem(file), HasSubstr("is a packed memory snapshot: unpack it first"));
    }
}

TEST(OpenTrace, TellsARawMemoryTimelineFromOtherLists) {
    const TemporaryFolder folder;
    const auto file = folder / "a.raw.json";
    for (const char* timeline : {"[[-1, 1, 4096, 0], [1795718493654752513, 2, 512, 4]]",
                                 "[\n[1795718493654752513, 2, 125829120, 0],\n"}) {
        write(file, timeline);
        EXPECT_THAT(problem(file), HasSubstr("is a raw memory timeline"));
    }
    for (const std::string& list : {std::string(5000, '['), std::string("[[1, 2], [3]]")}) {
        write(file, list);
        EXPECT_THAT(problem(file), HasSubstr("is neither a Temposcope trace"));
    }
}

TEST(OpenTrace, ReadsJsonBehindAByteOrderMark) {
    const TemporaryFolder folder;
    for (const std::string_view json : {kJsonSnapshot, kProfilerTrace}) {
        write(folder / "a.json", std::string("\xEF\xBB\xBF") + std::string(json));
        EXPECT_EQ(problem(folder / "a.json"), "");
    }
}

TEST(OpenTrace, GivesTheReasonWhyAFileCannotBeReached) {
    const TemporaryFolder folder;
    write(folder / "file", "x");
    std::filesystem::create_symlink("loop.tscope", folder / "loop.tscope");
    for (const char* extension : {".tscope", ".pickle", ".txt"}) {
        EXPECT_THAT(problem(folder / "file/a" += extension),
                    HasSubstr("cannot be read (Not a directory)"));
    }
    EXPECT_THAT(problem(folder / "loop.tscope"),
                HasSubstr("cannot be read (Too many levels of symbolic links)"));
    EXPECT_THAT(problem(folder / (std::string(300, 'x') + ".tscope")),
                HasSubstr("cannot be read (File name too long)"));
}

/// Exit status of a child process that is not root, since root may read everything: 0 if `check`.
int ask_as_another_user(const std::function<bool()>& check) {
    constexpr uid_t kNobody = 65534;
    constexpr int kStillRoot = 2;
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(kNobody) != 0) _exit(kStillRoot);
        _exit(check() ? 0 : 1);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OpenTrace, NamesThePermissionsOfAFileAndOfItsFolder) {
    const TemporaryFolder folder;
    namespace fs = std::filesystem;
    fs::permissions(folder.path(), fs::perms::all);
    fs::create_directory(folder / "closed");
    std::vector<fs::path> files;
    for (const char* name : {"a.tscope", "a.pickle", "closed/a.tscope", "closed/a.pickle"}) {
        files.push_back(folder / name);
        write(files.back(), "x");
        fs::permissions(files.back(), fs::perms::none);
    }
    fs::permissions(folder / "closed", fs::perms::none);
    for (const fs::path& file : files) {
        const int status = ask_as_another_user([&] {
            return problem(file) == file.string() +
                                        " cannot be read (Permission denied); check its "
                                        "permissions and the permissions of its folders.";
        });
        if (status == 2) GTEST_SKIP() << "root cannot become another user here";
        EXPECT_EQ(status, 0) << file;
    }
    EXPECT_EQ(ask_as_another_user([&] {
                  return closed_folder(files.back()) == folder / "closed" &&
                         closed_folder(files.front()) == std::nullopt;
              }),
              0);
    fs::permissions(folder / "closed", fs::perms::owner_all);
}

/// The file is a hole of 4 TiB, which nobody reads in the time of a test.
TEST(OpenTrace, RefusesASnapshotThatDoesNotFitIntoMemoryUnread) {
    const TemporaryFolder folder;
    for (const char* start : {"\x80\x04", "{\"segments\": ["}) {
        write(folder / "large.pickle", start);
        std::filesystem::resize_file(folder / "large.pickle", uintmax_t{4} << 40);
        EXPECT_THAT(problem(folder / "large.pickle"),
                    AllOf(HasSubstr("has 4.00 TiB, and reading it may take 12.0 TiB of memory"),
                          HasSubstr("record less history")));
    }
}

TEST(BelongsToTrace, KnowsTheFilesOfSqliteAndCapturesSetAside) {
    for (const char* name :
         {"a.tscope", "a.tscope.partial", "a.tscope.partial.1", "a.tscope.partial-wal",
          "a.tscope.partial-shm", "a.tscope-journal", "a.tscope.partial.2-wal", "a.pickle"}) {
        EXPECT_TRUE(belongs_to_trace(name)) << name;
    }
    for (const char* name : {"a.svg", "tscope", "a.tscope.svg", "a-wal", "a.partial"}) {
        EXPECT_FALSE(belongs_to_trace(name)) << name;
    }
}

TEST(HoldsAnyTrace, GoesByTheContent) {
    const TemporaryFolder folder;
    const auto holds = [&](std::string_view bytes) {
        write(folder / "file.txt", bytes);
        return holds_any_trace(folder / "file.txt");
    };
    EXPECT_TRUE(holds(R"({"schemaVersion": 1, "traceEvents": []})"));
    EXPECT_TRUE(holds(R"([{"ph": "X", "name": "aten::mm"}])"));
    EXPECT_TRUE(holds(R"({"segments": [], "device_traces": []})"));
    EXPECT_FALSE(holds(R"({"rows": [{"model": "bert-large"}]})"));
    EXPECT_FALSE(holds("model,batch\nbert-large,8\n"));
    EXPECT_FALSE(holds(""));
    const std::filesystem::path pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(holds_any_trace(pipe)) << "to open it would wait";
    EXPECT_FALSE(holds_any_trace(folder / "none"));
}

TEST(OpenTrace, CanBeCancelledInEveryFormat) {
    const TemporaryFolder folder;
    write(folder / "a.pickle", tests::snapshot_bytes(one_block()));
    write(folder / "a.json", kJsonSnapshot);
    write(folder / "a.pt.trace.json", kProfilerTrace);
    for (const char* name : {"a.pickle", "a.json", "a.pt.trace.json"}) {
        const auto trace = open_trace(folder / name, {.progress = [](double) { return false; }});
        ASSERT_FALSE(trace) << name;
        EXPECT_THAT(trace.error().message, HasSubstr("was cancelled"));
    }
}

TEST(OpenRecordings, GivesTheActionsOfASnapshotAndNoneOfATrace) {
    const TemporaryFolder folder;
    write(folder / "a.pickle", tests::snapshot_bytes(one_block()));
    const auto recordings = open_recordings(folder / "a.pickle");
    ASSERT_TRUE(recordings) << recordings.error().message;
    ASSERT_EQ(recordings->size(), 1u);
    EXPECT_EQ((*recordings)[0].events, one_block().events);
    Trace trace;
    trace.runs.append({});
    ASSERT_TRUE(write_trace(trace, folder / "a.tscope"));
    EXPECT_TRUE(open_recordings(folder / "a.tscope").value().empty());
    EXPECT_FALSE(open_recordings(folder / "missing"));
}

TEST(TracesIn, OrdersByNameWithoutExtension) {
    const TemporaryFolder folder;
    for (const char* name : {"tempo-packed.tscope", "tempo.tscope", "a.tscope.partial", "notes.txt",
                             "a.tscope.partial-wal", "snapshot.pickle"}) {
        write(folder / name, "x");
    }
    std::filesystem::create_directory(folder / "inside");
    write(folder / "inside/b.tscope", "x");
    std::vector<std::string> names;
    const auto paths = traces_in(folder.path()).value();
    for (const auto& path : paths) names.push_back(path.filename().string());
    EXPECT_THAT(names, ElementsAre("a.tscope.partial", "snapshot.pickle", "tempo.tscope",
                                   "tempo-packed.tscope"));
}

TEST(TracesIn, LeavesOutWhatLiesBesideAnotherTrace) {
    EXPECT_EQ(oom_trace_of("ranks/rank-0003.tscope"), "ranks/rank-0003.oom.tscope");
    const TemporaryFolder folder;
    for (const char* name : {"rank-0003.tscope", "rank-0003.oom.tscope", "watched.oom.tscope"}) {
        write(folder / name, "x");
    }
    const auto files = traces_in(folder.path()).value();
    EXPECT_THAT(files, ElementsAre(folder.path() / "rank-0003.tscope",
                                   folder.path() / "watched.oom.tscope"));
}

TEST(TracesIn, FindsSnapshotsAmongOtherPickles) {
    const TemporaryFolder folder;
    write(folder / "a.pkl", tests::snapshot_bytes({}));
    write(folder / "weights.pkl", "\x80\x04K\x01.");  // of the number 1
    for (const auto& [name, text] : {std::pair("metrics.json.gz", R"({"a": 1})"),
                                     std::pair("packed.json.gz", kJsonSnapshot.data())}) {
        gzFile out = gzopen((folder / name).c_str(), "wb");
        gzputs(out, text);
        gzclose(out);
    }
    const auto files = traces_in(folder.path()).value();
    EXPECT_EQ(files, (std::vector{folder.path() / "a.pkl"}));
}

TEST(TracesIn, OfAFolderThatCannotBeReadIsAnError) {
    const TemporaryFolder folder;
    EXPECT_TRUE(traces_in(folder.path()).value().empty());
    const auto missing = traces_in(folder / "missing");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("missing cannot be read (No such file"));
    write(folder / "file", "x");
    EXPECT_FALSE(traces_in(folder / "file"));
}

}  // namespace
}  // namespace profiler
