/// Writing and reading traces: round trips, commits, and folders and disks that cannot be written.
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/file/write_file.h"
#include "tests/profiler/trace/file_size_limit.h"
#include "tests/profiler/trace/random_trace.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/profiler/trace/trace_steps.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_equality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <algorithm>
#include <csignal>
#include <fstream>

namespace profiler {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using tests::add_step;
using tests::create;
using tests::first_difference;
using tests::RandomTrace;
using tests::read;
using tests::TemporaryFolder;

TEST(TraceFile, KeepsEveryValueOfEveryTable) {
    const TemporaryFolder folder;
    for (unsigned seed = 0; seed < 5; ++seed) {
        const Trace trace = RandomTrace(seed).make(seed == 4 ? 3000 : 10 * seed);
        const auto written = write_trace(trace, folder / "a.tscope");
        ASSERT_TRUE(written) << written.error().message;
        EXPECT_EQ(first_difference(trace, read(folder / "a.tscope")), "") << "seed " << seed;
    }
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope"));
}

TEST(TraceFile, KeepsWhatWasAddedAndChangedBetweenCommits) {
    const TemporaryFolder folder;
    const fs::path path = folder / "a.tscope";
    RandomTrace random(7);
    Trace trace = random.make(40);
    TraceWriter writer = create(path);
    for (int round = 0; round < 4; ++round) {
        ASSERT_TRUE(writer.commit(trace));
        EXPECT_EQ(first_difference(trace, read(path.string() + ".partial")), "")
            << "round " << round;
        trace.strings.intern("round " + std::to_string(round));
        const Id<Allocation> freed(static_cast<std::size_t>(round));
        trace.allocations.set<&Allocation::free_requested_event>(freed, 1000 + round);
        trace.allocations.set<&Allocation::free_requested_event>(freed, 2000 + round);
        trace.ops.append({.name = StringId(0),
                          .module_path = {},
                          .phase = {},
                          .thread = {},
                          .parent = {},
                          .forward = {}});
    }
    ASSERT_TRUE(writer.finish(trace));
    EXPECT_EQ(first_difference(trace, read(path)), "");
}

TEST(TraceFile, FinishMakesOneCompleteFile) {
    const TemporaryFolder folder;
    Trace trace;
    add_step(trace);
    TraceWriter writer = create(folder / "a.tscope");
    EXPECT_FALSE(fs::exists(folder / "a.tscope"));
    ASSERT_TRUE(writer.commit(trace));
    EXPECT_EQ(read(folder / "a.tscope.partial").run().state, RunState::kIncomplete);
    add_step(trace);
    ASSERT_TRUE(writer.finish(trace));
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope"));
    EXPECT_EQ(read(folder / "a.tscope").run().state, RunState::kComplete);
    EXPECT_EQ(read(folder / "a.tscope").steps.size(), 2u);
}

TEST(TraceFile, FinishReplacesAnOlderFileAndItsLog) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a.tscope") << "older";
    std::ofstream(folder / "a.tscope-wal") << "of the older";
    Trace trace;
    add_step(trace);
    TraceWriter writer = create(folder / "a.tscope");
    ASSERT_TRUE(writer.finish(trace));
    EXPECT_THAT(folder.names(), UnorderedElementsAre("a.tscope"));
    EXPECT_EQ(read(folder / "a.tscope").steps.size(), 1u);
}

TEST(TraceFile, AFullDiskLeavesNothingHalfWrittenUnderTheFinalName) {
    const TemporaryFolder folder;
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 20'000});
    models::Result<void> written;
    {
        const tests::FileSizeLimit limit(1 << 20);
        written = write_trace(trace, folder / "a.tscope");
    }
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, HasSubstr("File too large; raise the limit"));
    EXPECT_THAT(written.error().message, HasSubstr((folder / "a.tscope").string()));
    EXPECT_TRUE(folder.names().empty());
}

TEST(TraceFile, AFullDiskInMidCaptureKeepsWhatWasCommitted) {
    const TemporaryFolder folder;
    Trace trace;
    add_step(trace);
    {
        TraceWriter writer = create(folder / "a.tscope");
        ASSERT_TRUE(writer.commit(trace));
        for (int i = 0; i < 50'000; ++i) add_step(trace);
        {
            const tests::FileSizeLimit limit(1 << 20);
            const auto committed = writer.commit(trace);
            ASSERT_FALSE(committed);
            EXPECT_THAT(committed.error().message, HasSubstr("File too large; raise the limit"));
            const auto finished = writer.finish(trace);
            ASSERT_FALSE(finished);
            EXPECT_EQ(trace.run().state, RunState::kIncomplete);
        }
        EXPECT_EQ(read(folder / "a.tscope.partial").steps.size(), 1u);
        // There is space again, and the same writer continues.
        const auto finished = writer.finish(trace);
        ASSERT_TRUE(finished) << finished.error().message;
    }
    EXPECT_EQ(read(folder / "a.tscope").steps.size(), 50'001u);
}

TEST(TraceFile, ARemovedPartialIsNoticed) {
    const TemporaryFolder folder;
    Trace trace;
    add_step(trace);
    TraceWriter writer = create(folder / "a.tscope");
    fs::remove(folder / "a.tscope.partial");
    const auto committed = writer.commit(trace);
    ASSERT_FALSE(committed);
    EXPECT_THAT(committed.error().message, HasSubstr("was removed or replaced"));
}

TEST(TraceFile, PlacesThatCannotBeWrittenAreRefused) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_file(folder / "file", "x"));
    const Trace trace;
    const auto message = [&](const fs::path& path) {
        const auto written = write_trace(trace, path);
        const auto created = TraceWriter::create(path);
        EXPECT_FALSE(written);
        EXPECT_FALSE(created);
        EXPECT_THAT(created.error().message, HasSubstr(path.string()));
        return written.error().message;
    };
    EXPECT_THAT(message(folder / "file/a.tscope"), HasSubstr("a part of its path is a file"));
    EXPECT_THAT(message(folder.path()), HasSubstr("it is a folder"));
    EXPECT_THAT(message("/proc/a.tscope"), HasSubstr("Cannot write /proc/a.tscope"));
}

TEST(TraceFile, WritesToARelativePathWithoutAFolder) {
    const TemporaryFolder folder;
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    Trace trace;
    add_step(trace);
    TraceWriter writer = create("odd name?#%41.tscope");
    const bool finished = writer.finish(trace).has_value();
    const auto seen = read_trace("odd name?#%41.tscope");
    fs::current_path(before);
    ASSERT_TRUE(finished);
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->steps.size(), 1u);
}

TEST(ReadTrace, TellsHowFarItIsAndStopsOnRequest) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_trace(tests::make_synthetic_trace({.num_allocations = 100'000}),
                            folder / "a.tscope"));
    std::vector<double> shares;
    ReadOptions options{.progress = [&](double share) {
        shares.push_back(share);
        return true;
    }};
    ASSERT_TRUE(read_trace(folder / "a.tscope", options));
    ASSERT_GE(shares.size(), 3u);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_LE(shares.back(), 1);
    EXPECT_GT(shares.back(), 0.5);

    options.progress = [](double share) { return share < 0.5; };
    const auto stopped = read_trace(folder / "a.tscope", options);
    ASSERT_FALSE(stopped);
    EXPECT_THAT(stopped.error().message, HasSubstr("was cancelled"));
}

}  // namespace
}  // namespace profiler
