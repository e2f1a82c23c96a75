#include "profiler/formats/snapshot/snapshot_writer.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/formats/snapshot/pickle_writer.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/formats/snapshot/recorded_trace.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/contents_text.h"
#include "profiler/trace/trace_notes.h"
#include "tests/profiler/formats/samples.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_equality.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

namespace profiler {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Trace opened(const std::filesystem::path& path) {
    auto trace = open_trace(path);
    EXPECT_TRUE(trace.has_value()) << (trace ? "" : trace.error().message);
    return trace ? std::move(*trace) : Trace();
}

/// What a snapshot of the trace holds.
Trace through_a_snapshot(const Trace& trace) {
    const tests::TemporaryFolder folder;
    EXPECT_TRUE(write_snapshot(trace, folder / "a.pickle").has_value());
    return opened(folder / "a.pickle");
}

TEST(SnapshotWriter, GivesRealSnapshotsBackToTheLastColumn) {
    const auto files = tests::sample_snapshots();
    if (files.empty()) GTEST_SKIP() << "no snapshots: set TEMPOSCOPE_SAMPLES";
    const tests::TemporaryFolder folder;
    for (const auto& file : files) {
        const Trace first = opened(file);
        const auto out = folder.path() / "a.pickle";
        ASSERT_TRUE(write_snapshot(first, out).has_value());
        const Trace second = opened(out);
        EXPECT_EQ(tests::first_difference(first, second), "") << file;
        const auto again = folder.path() / "b.pickle";
        ASSERT_TRUE(write_snapshot(second, again).has_value());
        EXPECT_EQ(bytes_of(out), bytes_of(again)) << file;
    }
}

TEST(SnapshotWriter, KeepsTheEventsAndSegmentsOfARecording) {
    const auto files = tests::sample_snapshots();
    if (files.empty()) GTEST_SKIP() << "no snapshots: set TEMPOSCOPE_SAMPLES";
    for (const auto& file : files) {
        const auto snapshot = read_pytorch_snapshot(file).value();
        const AllocatorRecording& whole = snapshot.main();
        const auto made = recordings_of(opened(file));
        ASSERT_FALSE(made.empty());
        ASSERT_EQ(made[0].events.size(), whole.events.size());
        for (std::size_t i = 0; i < whole.events.size(); ++i) {
            RecordedEvent expected = whole.events[i];
            expected.pool = made[0].events[i].pool;
            ASSERT_EQ(made[0].events[i], expected) << file << ", event " << i;
        }
        EXPECT_EQ(made[0].segments, whole.segments) << file;
    }
}

/// Rows of a trace that was recorded here come back in their order. Where a capture counts a free
/// as one event, the file has two, as torch's has.
TEST(SnapshotWriter, KeepsTheBlocksOfACapture) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 5'000});
    const Trace read = through_a_snapshot(trace);
    ASSERT_EQ(read.allocations.size(), trace.allocations.size());
    std::vector<int64_t> frees;
    for (const int64_t event : trace.allocations.column<&Allocation::free_requested_event>()) {
        if (event >= 0) frees.push_back(event);
    }
    std::ranges::sort(frees);
    const auto number_in_file = [&](int64_t event) {
        return event < 0 ? event : event + (std::ranges::lower_bound(frees, event) - frees.begin());
    };
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        const Allocation b = read.allocations[Id<Allocation>(i)];
        ASSERT_EQ(a.requested_bytes, b.requested_bytes) << i;
        ASSERT_EQ(number_in_file(a.alloc_event), b.alloc_event) << i;
        ASSERT_EQ(number_in_file(a.free_requested_event), b.free_requested_event) << i;
        ASSERT_EQ(b.free_completed_event,
                  a.free_requested_event < 0 ? -1 : b.free_requested_event + 1)
            << i;
        ASSERT_EQ(a.alloc_ns / 1000 - trace.allocations[Id<Allocation>(0)].alloc_ns / 1000,
                  b.alloc_ns / 1000)
            << i;
        if (!a.op.valid()) continue;
        ASSERT_TRUE(b.stack.valid()) << i;  // the op stands as the innermost frame
        Frame frame = read.frames[read.stacks.get<&Stack::frame>(b.stack)];
        if (is_mark_file(read.text(frame.file))) {  // below what the block contains
            const Id<Stack> outer = read.stacks.get<&Stack::parent>(b.stack);
            frame = read.frames[read.stacks.get<&Stack::frame>(outer)];
        }
        EXPECT_EQ(read.text(frame.function), trace.text(trace.ops.get<&Op::name>(a.op)));
    }
}

/// "parameter: blocks.0.weight" of an allocation, which memory_viz shows.
TEST(SnapshotWriter, KeepsWhatBlocksContain) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 500});
    const Trace read = through_a_snapshot(trace);
    const auto contents = [](const Trace& of) {
        std::vector<std::string> texts(of.allocations.size());
        for (const Storage storage : of.storages.rows()) {
            texts[storage.allocation.index()] = name_of(storage.category);
        }
        std::vector<bool> has_name(texts.size());
        for (const Tensor tensor : of.tensors.rows()) {
            const Id<Allocation> row = of.storages.get<&Storage::allocation>(tensor.storage);
            if (!tensor.name.valid() || has_name[row.index()]) continue;
            has_name[row.index()] = true;
            texts[row.index()] += fmt::format(" {}", of.text(tensor.name));
        }
        return texts;
    };
    EXPECT_EQ(contents(read), contents(trace));
    EXPECT_EQ(tests::first_difference(read, through_a_snapshot(read)), "");
}

TEST(BlockContents, AreReadFromTextsThatBeginWithACategory) {
    const auto weight = parse_contents("parameter: encoder.weight");
    ASSERT_TRUE(weight.has_value());
    EXPECT_EQ(weight->category, Category::kParameter);
    EXPECT_EQ(weight->name, "encoder.weight");
    EXPECT_FALSE(weight->is_saved);
    EXPECT_EQ(to_text(weight->category, weight->name), "parameter: encoder.weight");
    EXPECT_EQ(to_text(Category::kTemporary, ""), "temporary");
    const auto saved = parse_contents("activation: layers.0.norm1, saved [1024, 256] float32");
    ASSERT_TRUE(saved.has_value() && saved->is_saved);
    EXPECT_EQ(saved->name, "layers.0.norm1");
    EXPECT_EQ(saved->shape, "[1024, 256]");
    EXPECT_EQ(saved->dtype, DType::kFloat32);
    EXPECT_EQ(parse_contents("gradient")->category, Category::kGradient);
    for (const auto* other : {"step 3", "parameters: a", "", ": a", "parameter:a"}) {
        EXPECT_FALSE(parse_contents(other).has_value()) << other;
    }
}

TEST(SnapshotWriter, KeepsStepsAndPhasesAsAnnotations) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 5'000});
    const Trace read = through_a_snapshot(trace);
    EXPECT_EQ(read.steps.size(), trace.steps.size());
    ASSERT_EQ(read.phases.size(), trace.phases.size());
    for (std::size_t i = 0; i < read.phases.size(); ++i) {
        const Phase a = trace.phases[Id<Phase>(i)], b = read.phases[Id<Phase>(i)];
        EXPECT_EQ(a.kind, b.kind) << i;
        EXPECT_EQ(a.step, b.step) << i;
    }
    EXPECT_EQ(tests::first_difference(read, through_a_snapshot(read)), "");
}

/// Marks come in the order of time: of ranges that lie in each other, the inner one ends first.
TEST(SnapshotWriter, WritesTheMarksOfAnnotationsByTime) {
    Trace trace;
    trace.runs.append({.time_basis = TimeBasis::kMeasured});
    for (const auto& [name, start_ns, end_ns] :
         {std::tuple("outer", 1'000, 9'000), std::tuple("inner", 2'000, 3'000),
          std::tuple("next", 4'000, 9'000)}) {
        trace.annotations.append({trace.strings.intern(name), start_ns, end_ns});
    }
    std::string order;
    int64_t last_us = 0;
    for (const RecordedAnnotation& mark : annotations_of(trace)) {
        order += fmt::format("{}{} ", mark.is_start ? "" : "/", mark.name);
        EXPECT_GE(mark.time_us, last_us);
        last_us = mark.time_us;
    }
    EXPECT_THAT(order, testing::AnyOf("outer inner /inner next /outer /next ",
                                      "outer inner /inner next /next /outer "));
}

/// The user's metadata and the compiled graph are frames here, and entries of the event there.
TEST(SnapshotWriter, KeepsTheUsersMetadataAndTheCompileContext) {
    const tests::TemporaryFolder folder;
    const RecordedStacks stacks{
        .texts = {"forward", "model.py", "2/0", "<compile_context>", "step 3", "<user_metadata>"},
        .frames = {{0, 1, 12}, {2, 3, 0}, {4, 5, 0}},
        .stacks = {{-1, 0}, {0, 1}, {1, 2}, {-1, 2}}};
    const AllocatorRecording recording{
        .events = {{.stack = 2, .address = 4096, .size_bytes = 512, .time_us = 1},
                   {.stack = 3, .address = 4608, .size_bytes = 512, .time_us = 2}},
        .segments = {{.address = 4096,
                      .size_bytes = 1024,
                      .blocks = {{4096, 512, 512, BlockState::kAllocated},
                                 {4608, 512, 512, BlockState::kAllocated}}}},
        .block_stacks = {{4096, 2}, {4608, 3}},
        .stacks = std::make_shared<const RecordedStacks>(stacks)};
    const auto path = folder / "a.pickle";
    ASSERT_TRUE(write_snapshot(std::span(&recording, 1), {}, path).has_value());
    const std::string bytes = bytes_of(path);
    EXPECT_NE(bytes.find("user_metadata"), std::string::npos);
    EXPECT_EQ(bytes.find("<user_metadata>"), std::string::npos);

    const Trace read = opened(path);
    const CallSites sites(read);
    const auto stack = read.allocations.column<&Allocation::stack>();
    EXPECT_EQ(sites.of(stack[0]), "model.py:12 forward");
    EXPECT_EQ(sites.of(stack[1]), "<user_metadata> step 3");
    EXPECT_EQ(tests::first_difference(read, through_a_snapshot(read)), "");
}

/// Metadata that changes with every call must not multiply the stacks: then the reader would refuse
/// the file for its need of memory.
TEST(SnapshotWriter, SharesStacksThatDifferInMetadataOnly) {
    constexpr int32_t kDepth = 60, kCalls = 2'000;
    RecordedStacks stacks{.texts = {"forward", "model.py", "<user_metadata>"}};
    AllocatorRecording recording;
    for (int32_t i = 0; i < kDepth; ++i) {
        stacks.frames.push_back({0, 1, i + 1});
        stacks.stacks.push_back({i - 1, i});
    }
    for (int32_t i = 0; i < kCalls; ++i) {
        stacks.texts.push_back(fmt::format("step {}", i));
        stacks.frames.push_back({i + 3, 2, 0});
        stacks.stacks.push_back({kDepth - 1, kDepth + i});
        recording.events.push_back(
            {.stack = kDepth + i, .address = 4096 + 512 * i, .size_bytes = 512, .time_us = i});
    }
    recording.stacks = std::make_shared<const RecordedStacks>(stacks);
    const tests::TemporaryFolder folder;
    ASSERT_TRUE(write_snapshot(std::span(&recording, 1), {}, folder / "a.pickle").has_value());
    const Trace read = opened(folder / "a.pickle");
    EXPECT_EQ(read.stacks.size(), static_cast<std::size_t>(kDepth + kCalls));
    EXPECT_EQ(CallSites(read).of(read.allocations.get<&Allocation::stack>(Id<Allocation>(7))),
              "model.py:60 forward");
}

TEST(SnapshotWriter, WritesLongListsInBatches) {
    const tests::TemporaryFolder folder;
    const auto path = folder.path() / "list.pickle";
    auto file = OutputFile::create(path);
    ASSERT_TRUE(file.has_value());
    PickleWriter out(*file);
    out.begin_list();
    for (int i = 0; i < 2500; ++i) {
        out.next_item();
        out.integer(0);
    }
    out.end_list();
    out.finish();
    ASSERT_TRUE(file->finish().has_value());
    const std::string bytes = bytes_of(path);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'e'), 3);
}

TEST(SnapshotWriter, TakesAStackWithoutAFrame) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 100});
    trace.frames = {};
    trace.stacks = {};
    trace.stacks.append({.parent = Id<Stack>(0), .frame = {}});  // lies in itself
    trace.allocations.set<&Allocation::stack>(Id<Allocation>(0), Id<Stack>(0));
    EXPECT_EQ(through_a_snapshot(trace).allocations.size(), 100U);
}

TEST(SnapshotWriter, RefusesATraceWithoutAllocations) {
    const tests::TemporaryFolder folder;
    const auto written = write_snapshot(Trace(), folder.path() / "a.pickle");
    ASSERT_FALSE(written.has_value());
    EXPECT_NE(written.error().message.find("holds no allocations"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.pickle"));
}

TEST(OutputFile, LeavesNothingWhenItIsNotFinished) {
    const tests::TemporaryFolder folder;
    const auto path = folder.path() / "a.json.gz";
    {
        auto file = OutputFile::create(path);
        ASSERT_TRUE(file.has_value());
        file->write(std::string(5 << 20, 'x'));
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(OutputFile, ReportsAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
    auto file = OutputFile::create("/dev/full");
    ASSERT_TRUE(file.has_value());
    file->write("x");
    const auto finished = file->finish();
    ASSERT_FALSE(finished.has_value());
    EXPECT_NE(finished.error().message.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace profiler
