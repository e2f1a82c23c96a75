/// Joins a memory snapshot and a profiler trace of one run. Both are written from one trace, so
/// that the op of every block is known.
#include "profiler/formats/join/joined_trace.h"

#include "profiler/formats/chrome/chrome_writer.h"
#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/shift_times.h"
#include "profiler/formats/snapshot/snapshot_writer.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/trace_notes.h"
#include "tests/profiler/formats/samples.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"

#include <gtest/gtest.h>

#include <functional>

namespace profiler {
namespace {

constexpr int64_t kNow = 1'783'874'422'287'973'000;

/// A run as its two files show it. `clock_ns` is what the snapshot's clock is ahead.
struct TwoFiles {
    Trace memory, profile;
};
Trace written_and_read(const Trace& trace, bool as_snapshot) {
    const tests::TemporaryFolder folder;
    const auto path = folder / (as_snapshot ? "a.pickle" : "a.pt.trace.json");
    const auto ok = as_snapshot ? write_snapshot(trace, path) : write_chrome_trace(trace, path);
    EXPECT_TRUE(ok.has_value()) << (ok ? "" : ok.error().message);
    auto read = open_trace(path);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    return read ? std::move(*read) : Trace();
}

Trace make_run() {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 4'000});
    trace.runs.set<&Run::start_unix_ns>(Id<Run>(0), kNow);
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        trace.devices.set<&Device::name>(Id<Device>(i), trace.strings.intern("cuda:0"));
    }
    return trace;
}

TwoFiles files_of(Trace trace, int64_t clock_ns, bool with_memory_in_profile) {
    Trace profile = trace;
    if (!with_memory_in_profile) profile.allocations = {};
    trace.runs.set<&Run::start_unix_ns>(Id<Run>(0), kNow + clock_ns);
    return {written_and_read(trace, true), written_and_read(profile, false)};
}

std::string_view op_name(const Trace& trace, const Allocation& block) {
    return block.op.valid() ? trace.text(trace.ops.get<&Op::name>(block.op)) : std::string_view();
}

/// How many blocks of the joined trace have the op of the run that both files come from.
std::size_t num_right(const Trace& run, const Trace& joined) {
    EXPECT_EQ(run.allocations.size(), joined.allocations.size());
    std::size_t right = 0;
    for (std::size_t i = 0; i < joined.allocations.size(); ++i) {
        const Allocation a = run.allocations[Id<Allocation>(i)];
        const Allocation b = joined.allocations[Id<Allocation>(i)];
        EXPECT_EQ(a.requested_bytes, b.requested_bytes) << i;
        right += op_name(run, a) == op_name(joined, b) ? 1 : 0;
    }
    return right;
}

TEST(JoinTraces, GivesEachBlockItsOpDespiteClocksThatDiffer) {
    const Trace run = make_run();
    for (const int64_t clock_ns : {0, 40'000'000}) {  // 40 ms: longer than any op
        const TwoFiles files = files_of(run, clock_ns, true);
        ASSERT_TRUE(is_memory_only(files.memory));
        const auto joined = join_traces({files.memory, "a.pickle"}, {files.profile, "b.json"});
        ASSERT_TRUE(joined.has_value()) << joined.error().message;
        EXPECT_EQ(num_right(run, *joined), run.allocations.size()) << clock_ns;
        EXPECT_EQ(joined->ops.size(), run.ops.size());
        EXPECT_EQ(joined->steps.size(), run.steps.size());
        EXPECT_EQ(joined->phases.size(), run.phases.size());
        for (std::size_t i = 0; i < joined->phases.size(); ++i) {
            const Phase phase = joined->phases[Id<Phase>(i)], wanted = run.phases[Id<Phase>(i)];
            EXPECT_EQ(phase.kind, wanted.kind);
            // A free is two events of a snapshot and one of the run.
            const auto frees_before = std::ranges::count_if(
                run.allocations.column<&Allocation::free_requested_event>(),
                [&](int64_t event) { return event >= 0 && event < wanted.first_event; });
            EXPECT_NEAR(static_cast<double>(phase.first_event),
                        static_cast<double>(wanted.first_event + frees_before), 6);
        }
    }
}

/// An address that is used again and again does not tell how far the clocks are apart.
TEST(JoinTraces, IsNotMisledByAddressesThatAreUsedAgain) {
    Trace run = make_run();
    for (std::size_t i = 0; i < run.allocations.size(); ++i) {
        const Id<Allocation> id(i);
        if (run.allocations.get<&Allocation::free_requested_event>(id) < 0) continue;
        run.allocations.set<&Allocation::address>(id, (1 + static_cast<int64_t>(i) % 16) << 30);
        run.allocations.set<&Allocation::requested_bytes>(id, 512);
        run.allocations.set<&Allocation::block_bytes>(id, 512);
        run.allocations.set<&Allocation::free_requested_event>(id, -1);
        run.allocations.set<&Allocation::free_completed_event>(id, -1);
    }
    Trace profile = run, memory = run;
    for (Trace* file : {&profile, &memory}) {
        file->runs.set<&profiler::Run::source>(Id<profiler::Run>(0), Source::kImported);
        file->tensors = {};
    }
    memory.ops = {};
    memory.kernels = {};
    memory.runs.set<&profiler::Run::start_unix_ns>(Id<profiler::Run>(0), kNow + 3'000'000);
    const auto joined = join_traces({memory, "a.pickle"}, {profile, "b.json"});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    EXPECT_EQ(num_right(run, *joined), run.allocations.size());
}

/// Blocks that were freed before the profiler began keep their free, and no time is below 0.
TEST(JoinTraces, KeepsTheTimesOfASnapshotThatBeganEarlier) {
    const Trace run = make_run();
    TwoFiles files = files_of(run, 0, true);
    const int64_t later_ns =
        files.profile.ops.get<&Op::end_ns>(Id<Op>(files.profile.ops.size() / 2));
    shift_times(files.profile, -later_ns);
    Trace late = files.profile;
    late.ops = {};
    for (std::size_t i = 0; i < files.profile.ops.size(); ++i) {
        Op op = files.profile.ops[Id<Op>(i)];
        op.parent = op.forward = Id<Op>();
        if (op.start_ns >= 0) late.ops.append(op);
    }
    late.allocations = {};
    late.memcpys = {};
    late.kernels = {};
    late.apis = {};
    const auto joined = join_traces({files.memory, "a.pickle"}, {late, "b.json"});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    for (std::size_t i = 0; i < joined->allocations.size(); ++i) {
        const Allocation block = joined->allocations[Id<Allocation>(i)];
        ASSERT_GE(block.alloc_ns, 0) << i;
        if (block.free_requested_event < 0) continue;
        ASSERT_GE(block.free_requested_ns, block.alloc_ns) << i;
        ASSERT_GE(block.free_completed_ns, block.free_requested_ns) << i;
    }
}

/// Steps and phases count the events of the snapshot's first device, so figures must be of it too.
TEST(JoinTraces, ShowsTheDeviceOfTheSnapshotFirst) {
    TwoFiles files = files_of(make_run(), 0, true);
    Trace& profile = files.profile;
    const Device other{.name = profile.strings.intern("cuda:1")};
    exchange_devices(profile, Id<Device>(0), profile.devices.append(other));
    const auto joined = join_traces({files.memory, "a.pickle"}, {profile, "b.json"});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    const Id<Device> first = profiled_device(*joined);
    EXPECT_EQ(joined->text(joined->devices.get<&Device::name>(first)), "cuda:0");
    EXPECT_EQ(joined->allocations.get<&Allocation::device>(Id<Allocation>(0)), first);
}

TEST(JoinTraces, UsesTimesAloneWhereTheProfilerRecordedNoMemory) {
    const Trace run = make_run();
    const TwoFiles files = files_of(run, 0, false);
    const auto joined = join_traces({files.memory, "a.pickle"}, {files.profile, "b.json"});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    const std::size_t right = num_right(run, *joined);
    // Blocks at the very boundary of two ops may go to the neighbour: a snapshot has microseconds.
    EXPECT_GT(right * 10, run.allocations.size() * 8);
}

TEST(JoinTraces, InfersCategoriesFromThePhases) {
    const TwoFiles files = files_of(make_run(), 0, true);
    const auto joined = join_traces({files.memory, "a.pickle"}, {files.profile, "b.json"});
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    std::size_t activations = 0;
    for (const Category category : joined->storages.column<&Storage::category>()) {
        activations += category == Category::kActivation ? 1 : 0;
    }
    EXPECT_GT(activations, 100U);
}

TEST(JoinTraces, RefusesFilesOfTwoRuns) {
    const TwoFiles files = files_of(make_run(), 3'600'000'000'000, true);
    const auto joined = join_traces({files.memory, "a.pickle"}, {files.profile, "b.json"});
    ASSERT_FALSE(joined.has_value());
    EXPECT_NE(joined.error().message.find("a.pickle and b.json do not overlap in time"),
              std::string::npos)
        << joined.error().message;
    const auto wrong = join_traces({files.profile, "b.json"}, {files.profile, "b.json"});
    ASSERT_FALSE(wrong.has_value());
    EXPECT_NE(wrong.error().message.find("b.json is not a memory snapshot"), std::string::npos);
}

TEST(JoinTraces, RefusesRealFilesOfTwoRuns) {
    const auto folder = tests::samples_folder();
    const auto snapshot = folder / "snapshot_medium_128_training.pickle";
    if (!std::filesystem::exists(snapshot)) GTEST_SKIP() << "no samples: set TEMPOSCOPE_SAMPLES";
    const auto memory = open_trace(snapshot);
    const auto profile = open_trace(folder / "kineto_bert_small_h100.json.gz");
    ASSERT_TRUE(memory.has_value() && profile.has_value());
    const auto joined = join_traces({*memory, "a.pickle"}, {*profile, "b.json"});
    ASSERT_FALSE(joined.has_value());
    EXPECT_NE(joined.error().message.find("record both in one run"), std::string::npos);
}

}  // namespace
}  // namespace profiler
