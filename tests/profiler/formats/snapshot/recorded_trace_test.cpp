/// Recordings of caching allocators as traces: small ones by hand, random programs on the
/// simulator, and real snapshots where there are samples.
#include "profiler/formats/snapshot/recorded_trace.h"

#include "profiler/allocator/replay.h"
#include "profiler/analysis/blocks/allocator_counts.h"
#include "profiler/analysis/step/breakdown.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/formats/parts/chosen_device.h"
#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "profiler/formats/trace_formats.h"
#include "tests/profiler/allocator/recorder.h"
#include "tests/profiler/formats/samples.h"
#include "tests/profiler/formats/snapshot_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>

namespace profiler {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::Recorder;

constexpr int64_t kBase = 0x7f0000000000;

std::vector<std::string> codes(const Trace& trace) {
    std::vector<std::string> codes;
    for (const auto& item : report_diagnostics(trace, report_step(trace))) {
        codes.push_back(item.code);
    }
    return codes;
}

/// A block that was there before, one that is allocated and freed, and one that stays.
AllocatorRecording three_blocks() {
    AllocatorRecording recording{.device = 1};
    recording.segments.push_back(
        {.address = kBase,
         .size_bytes = 2 * kMiB,
         .stream = 7,
         .is_small = true,
         .blocks = {{kBase, 1024, 1000, BlockState::kAllocated},
                    {kBase + 1024, 1024, 0},
                    {kBase + 2048, 2 * kMiB - 2048, 600, BlockState::kAllocated}}});
    const auto event = [](RecordedAction action, int64_t address, int64_t bytes, int64_t time_us) {
        return RecordedEvent{.action = action,
                             .address = address,
                             .size_bytes = bytes,
                             .stream = 7,
                             .time_us = time_us};
    };
    recording.events = {event(RecordedAction::kAlloc, kBase + 1024, 700, 1'000'000),
                        event(RecordedAction::kAlloc, kBase + 2048, 600, 1'000'002),
                        event(RecordedAction::kFreeRequested, kBase + 1024, 700, 1'000'003),
                        event(RecordedAction::kFreeCompleted, kBase + 1024, 700, 1'000'005)};
    return recording;
}

/// However busy it is, analyses look at the first GPU of a trace.
TEST(TraceOfRecordings, PinnedMemoryIsTheHostsAndComesLast) {
    AllocatorRecording pinned = three_blocks();
    pinned.device = kHostDevice;
    AllocatorRecording gpu = three_blocks();
    gpu.events.resize(1);
    const Trace trace = trace_of({pinned, gpu}).value();
    ASSERT_EQ(trace.devices.size(), 2U);
    EXPECT_EQ(trace.text(trace.devices[Id<Device>(0)].name), "cuda:1");
    EXPECT_TRUE(is_host(trace, Id<Device>(1)));
    EXPECT_EQ(profiled_device(trace), Id<Device>(0));
    EXPECT_EQ(trace.text(trace.run().device_name), "cuda:1");
}

TEST(TraceOfRecordings, HasEachBlockFromItsAllocationToItsFree) {
    const std::vector devices{three_blocks()};
    const Trace trace = trace_of(devices).value();
    EXPECT_EQ(trace.run().source, Source::kImported);
    EXPECT_EQ(trace.run().time_basis, TimeBasis::kMeasured);
    EXPECT_EQ(trace.run().state, RunState::kComplete);
    EXPECT_EQ(trace.run().start_unix_ns, 1'000'000'000);
    EXPECT_EQ(trace.text(trace.devices[Id<Device>(0)].name), "cuda:1");
    ASSERT_EQ(trace.allocations.size(), 3u);
    const Allocation before = trace.allocations[Id<Allocation>(0)];
    EXPECT_EQ(before.address, kBase);
    EXPECT_EQ(before.requested_bytes, 1000);
    EXPECT_EQ(before.alloc_ns, 0);
    EXPECT_EQ(before.free_requested_event, -1);
    const Allocation freed = trace.allocations[Id<Allocation>(1)];
    EXPECT_EQ(freed.requested_bytes, 700);
    EXPECT_EQ(freed.block_bytes, 1024);
    EXPECT_EQ(freed.free_requested_event, freed.alloc_event + 2);
    EXPECT_EQ(freed.free_completed_event, freed.alloc_event + 3);
    EXPECT_EQ(freed.free_requested_ns, 3000);
    EXPECT_EQ(freed.free_completed_ns, 5000);
    EXPECT_EQ(trace.streams[freed.stream].handle, 7);
    const Allocation last = trace.allocations[Id<Allocation>(2)];
    EXPECT_EQ(last.block_bytes, 2 * kMiB - 2048) << "the snapshot says how large the block is";
    EXPECT_EQ(trace.allocator_events[last.segment].size_bytes, 2 * kMiB);
    EXPECT_TRUE(has_recorded_step(trace));
}

/// A step that began before the first event of its snapshot is not cut there. PyTorch marks the two
/// ends of a range with whichever device is current.
TEST(TraceOfRecordings, BeginsWithTheRangeAroundItsFirstEvent) {
    const std::vector devices{three_blocks()};
    const std::vector<RecordedAnnotation> annotations{{"ProfilerStep#2", true, 0, 500'000},
                                                      {"ProfilerStep#2", false, 0, 600'000},
                                                      {"ProfilerStep#3", true, 0, 999'900},
                                                      {"ProfilerStep#3", false, 1, 1'000'003}};
    const Trace trace = trace_of(devices, annotations).value();
    ASSERT_EQ(trace.annotations.size(), 1u) << "the one before holds no event";
    const Annotation step = trace.annotations[Id<Annotation>(0)];
    EXPECT_EQ(step.start_ns, 0);
    EXPECT_EQ(step.end_ns, 103'000);
    EXPECT_EQ(trace.run().start_unix_ns, 999'900'000);
    EXPECT_EQ(trace.allocations.get<&Allocation::alloc_ns>(Id<Allocation>(2)), 102'000);
}

TEST(TraceOfRecordings, MakesStepsAndPhasesOfAnnotations) {
    const std::vector devices{three_blocks()};
    const auto mark = [](const char* name, bool is_start, int64_t time_us) {
        return RecordedAnnotation{name, is_start, 0, time_us};
    };
    const std::vector annotations{
        mark("ProfilerStep#3", true, 999'999), mark("Optimizer.step#SGD", true, 1'000'002),
        mark("mine", false, 1'000'003), mark("Optimizer.step#SGD", false, 1'000'004),
        mark("open", true, 1'000'004)};
    const Trace trace = trace_of(devices, annotations).value();
    ASSERT_EQ(trace.annotations.size(), 4u);
    const auto range = [&](std::size_t i) {
        const Annotation row = trace.annotations[Id<Annotation>(i)];
        return std::tuple(std::string(trace.text(row.text)), row.start_ns, row.end_ns);
    };
    EXPECT_EQ(range(0), std::tuple("ProfilerStep#3", 0, 3'000));
    EXPECT_EQ(range(1), std::tuple("mine", 0, 3'000)) << "its start was not recorded";
    EXPECT_EQ(range(2), std::tuple("Optimizer.step#SGD", 2'000, 4'000));
    EXPECT_EQ(range(3), std::tuple("open", 4'000, 4'000));
    ASSERT_EQ(trace.steps.size(), 1u);
    ASSERT_EQ(trace.phases.size(), 1u) << "what ran before the optimizer is not known";
    EXPECT_EQ(trace.phases[Id<Phase>(0)].kind, PhaseKind::kOptimizer);
    const Allocation last = trace.allocations[Id<Allocation>(2)];
    EXPECT_EQ(trace.phases[Id<Phase>(0)].first_event, last.alloc_event);
    EXPECT_EQ(trace.storages[last.storage].category, Category::kOptimizerState);
    EXPECT_THAT(codes(trace), Contains("inferred_categories"));
}

TEST(TraceOfRecordings, SaysWhatARecordingLacksInOneNote) {
    const std::vector devices{three_blocks()};
    const Trace trace = trace_of(devices).value();
    EXPECT_TRUE(trace.ops.empty() && trace.steps.empty() && trace.saves.empty());
    EXPECT_THAT(codes(trace), Contains("allocations_only"));
    EXPECT_THAT(codes(trace), Not(Contains("no_steps")));
    EXPECT_THAT(codes(trace), Not(Contains("unknown_role_at_peak")));
    EXPECT_THAT(codes(trace), Not(Contains("unmatched_frees")));
}

/// From the innermost frame outwards.
std::vector<std::string> frames_of(const Trace& trace, Id<Stack> stack) {
    std::vector<std::string> frames;
    for (; stack.valid(); stack = trace.stacks[stack].parent) {
        const Frame frame = trace.frames[trace.stacks[stack].frame];
        frames.push_back(fmt::format("{} {}:{}", trace.text(frame.function), trace.text(frame.file),
                                     frame.line));
    }
    return frames;
}

TEST(TraceOfRecordings, HasTheCallStackOfEachRecordedAllocation) {
    AllocatorRecording recording = three_blocks();
    recording.device = 0;
    recording.stacks = std::make_shared<const RecordedStacks>(RecordedStacks{
        .texts = {"train", "forward", "bert.py"},
        .frames = {{.function = 0, .file = 2, .line = 20},
                   {.function = 1, .file = 2, .line = 10},
                   {.function = 1, .file = 2, .line = 11}},
        .stacks = {
            {.parent = -1, .frame = 0}, {.parent = 0, .frame = 1}, {.parent = 0, .frame = 2}}});
    recording.events[0].stack = 1;
    recording.events[1].stack = 2;
    recording.events.push_back(recording.events[0]);
    recording.segments[0].blocks[1] = {kBase + 1024, 1024, 700, BlockState::kAllocated};
    const auto snapshot = parse_pytorch_snapshot(tests::snapshot_bytes(recording), "s.pickle");
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const Trace trace = trace_of(snapshot->devices).value();
    ASSERT_EQ(trace.allocations.size(), 4u);
    const auto stacks = trace.allocations.column<&Allocation::stack>();
    EXPECT_FALSE(stacks[0].valid()) << "it was there before the recording";
    EXPECT_THAT(frames_of(trace, stacks[1]), ElementsAre("forward bert.py:10", "train bert.py:20"));
    EXPECT_THAT(frames_of(trace, stacks[2]), ElementsAre("forward bert.py:11", "train bert.py:20"));
    EXPECT_EQ(stacks[3], stacks[1]);
    EXPECT_EQ(trace.frames.size(), 3u);
    EXPECT_EQ(trace.stacks.size(), 3u) << "both stacks have one caller";
}

/// With context="state" a snapshot has the stacks of the blocks in use and no others.
TEST(TraceOfRecordings, HasTheCallStackOfABlockFromBeforeTheRecording) {
    AllocatorRecording recording = three_blocks();
    recording.stacks = std::make_shared<const RecordedStacks>(
        RecordedStacks{.texts = {"load", "bert.py"},
                       .frames = {{.function = 0, .file = 1, .line = 3}},
                       .stacks = {{.parent = -1, .frame = 0}}});
    recording.block_stacks = {{kBase, 0}};
    const Trace trace = trace_of({recording}).value();
    const auto stacks = trace.allocations.column<&Allocation::stack>();
    ASSERT_EQ(stacks.size(), 3u);
    EXPECT_THAT(frames_of(trace, stacks[0]), ElementsAre("load bert.py:3"));
    EXPECT_FALSE(stacks[1].valid());
    EXPECT_FALSE(stacks[2].valid());
}

TEST(TraceOfRecordings, SaysWhetherThereAreCallStacks) {
    const auto note = [](const AllocatorRecording& recording) {
        const Trace trace = trace_of({recording}).value();
        for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
            const Diagnostic row = trace.diagnostics[Id<Diagnostic>(i)];
            if (trace.text(row.code) == kAllocationsOnly) {
                return std::string(trace.text(row.explanation));
            }
        }
        return std::string();
    };
    AllocatorRecording recording = three_blocks();
    EXPECT_THAT(note(recording), HasSubstr("saved tensors or call stacks."));
    EXPECT_THAT(note(recording), Not(HasSubstr("by line")));
    recording.stacks = std::make_shared<const RecordedStacks>(RecordedStacks{
        .texts = {"x.py"}, .frames = {{.line = 1}}, .stacks = {{.parent = -1, .frame = 0}}});
    EXPECT_THAT(note(recording), HasSubstr("the call stacks of its allocations, but no ops"));
    EXPECT_THAT(note(recording), HasSubstr("by line"));
}

TEST(TraceOfRecordings, CountsEventsBlocksAndSegments) {
    const std::vector devices{three_blocks()};
    const AllocatorCounts counts = count_allocator_rows(trace_of(devices).value());
    EXPECT_EQ(counts.events, 4);
    EXPECT_EQ(counts.allocations, 3);
    EXPECT_EQ(counts.live_blocks, 2);
    EXPECT_EQ(counts.segments, 1);
}

TEST(TraceOfRecordings, WithoutTimesFollowsTheOrderOfEvents) {
    std::vector devices{three_blocks()};
    devices[0].events[1].time_us = -1;
    const Trace trace = trace_of(devices).value();
    EXPECT_EQ(trace.run().time_basis, TimeBasis::kEventOrder);
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        EXPECT_EQ(a.alloc_ns, a.alloc_event);
    }
}

TEST(TraceOfRecordings, TakesNoTimeThatATraceCannotHold) {
    for (const int64_t late_us : {INT64_MAX, int64_t{1} << 50}) {
        std::vector devices{three_blocks()};
        devices[0].events[3].time_us = late_us;
        EXPECT_EQ(trace_of(devices).value().run().time_basis, TimeBasis::kEventOrder);
    }
    std::vector devices{three_blocks()};
    devices[0].events[2].time_us = 1'000'001;  // before the event in front of it
    const Trace trace = trace_of(devices).value();
    EXPECT_EQ(trace.allocations[Id<Allocation>(1)].free_requested_ns, 2000);
}

TEST(TraceOfRecordings, ShowsTheBusiestDeviceAndSaysThatThereAreOthers) {
    AllocatorRecording quiet{.device = 0, .segments = three_blocks().segments};
    const std::vector devices{quiet, three_blocks(), AllocatorRecording{.device = 2}};
    const Trace trace = trace_of(devices).value();
    ASSERT_EQ(trace.devices.size(), 2u);
    EXPECT_EQ(trace.text(trace.devices[profiled_device(trace)].name), "cuda:1");
    EXPECT_EQ(report_step(trace).peak.allocated_bytes, 2300);
    EXPECT_THAT(codes(trace), Contains("other_devices"));
    EXPECT_EQ(main_recording(devices)->device, 1);
}

/// Out of memory on cuda:1, at train.py:99; cuda:0 is busier.
std::vector<AllocatorRecording> out_of_memory_on_the_quiet_device() {
    Recorder busy({});
    run_random(busy, {.num_steps = 100});
    AllocatorRecording failed = tests::out_of_memory_recording();
    failed.device = 1;
    failed.events.back().stack = 0;
    failed.stacks = std::make_shared<RecordedStacks>(RecordedStacks{
        .texts = {"forward", "train.py"}, .frames = {{0, 1, 99}}, .stacks = {{-1, 0}}});
    return {busy.recording(), failed};
}

TEST(TraceOfRecordings, KeepsTheRequestThatWasRefused) {
    const auto devices = out_of_memory_on_the_quiet_device();
    EXPECT_EQ(main_recording(devices)->device, 1);
    const Trace trace = trace_of(devices).value();
    EXPECT_EQ(trace.text(trace.devices[profiled_device(trace)].name), "cuda:1");
    ASSERT_EQ(trace.failures.size(), 1u);
    const Failure failure = trace.failures[Id<Failure>(0)];
    EXPECT_EQ(trace.text(failure.error), "OutOfMemoryError");
    EXPECT_EQ(failure.device, profiled_device(trace));
    EXPECT_EQ(failure.requested_bytes, 18 * kMiB);
    EXPECT_EQ(failure.allocated_bytes, 60 * kMiB);
    EXPECT_EQ(failure.reserved_bytes, 80 * kMiB);
    EXPECT_EQ(failure.free_bytes, 16 * kMiB);
    EXPECT_EQ(failure.limit_bytes, 96 * kMiB);
    EXPECT_EQ(failure.outcome, FailureOutcome::kEnded);
    EXPECT_EQ(trace.frames[trace.stacks[failure.stack].frame].line, 99);
    const auto is_refusal = [&](const AllocatorEvent& event) {
        return event.action == AllocatorAction::kOom && event.event == failure.event &&
               event.device == failure.device;
    };
    int num_refusals = 0;
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        num_refusals += is_refusal(event) ? 1 : 0;
    }
    EXPECT_EQ(num_refusals, 1);
    EXPECT_EQ(recordings_of(trace)[0].events.back().stack, failure.stack.value);
}

TEST(TraceOfRecordings, KnowsWhatAProgramCaught) {
    Recorder recorder({}, 96 * kMiB);
    recorder.allocate(40 * kMiB);
    recorder.allocate(90 * kMiB);
    recorder.allocate(kMiB);
    recorder.allocate(70 * kMiB);
    const Trace trace = trace_of({recorder.recording()}).value();
    ASSERT_EQ(trace.failures.size(), 2u);
    EXPECT_EQ(trace.failures[Id<Failure>(0)].outcome, FailureOutcome::kCaught);
    EXPECT_EQ(trace.failures[Id<Failure>(1)].outcome, FailureOutcome::kEnded);
    EXPECT_EQ(fatal_failure(trace), Id<Failure>(1));
}

TEST(ChooseDevice, MakesAnotherDeviceTheOneOfTheFigures) {
    AllocatorRecording other = three_blocks();
    other.device = 2;
    other.events.resize(1);  // so that it is not the busiest
    other.segments.clear();
    const RecordedAnnotation marks[]{{"ProfilerStep#1", true, 0, 1'000'000},
                                     {"ProfilerStep#1", false, 0, 1'000'010}};
    const std::vector devices{three_blocks(), other};
    Trace trace = trace_of(devices, marks).value();
    const Trace alone = trace_of({other}, marks).value();
    const int64_t peak_bytes = report_step(trace).peak.allocated_bytes;
    ASSERT_NE(peak_bytes, report_step(alone).peak.allocated_bytes);
    ASSERT_TRUE(choose_device(trace, "cuda:2").has_value());
    EXPECT_EQ(trace.text(trace.devices[profiled_device(trace)].name), "cuda:2");
    EXPECT_EQ(trace.text(trace.run().device_name), "cuda:2");
    EXPECT_EQ(report_step(trace).peak.allocated_bytes, report_step(alone).peak.allocated_bytes);
    EXPECT_EQ(recordings_of(trace)[0].events.size(), other.events.size())
        << "what was rebuilt of the start of cuda:1 is no event of cuda:2";
    ASSERT_TRUE(choose_device(trace, "cuda:1").has_value());
    EXPECT_EQ(report_step(trace).peak.allocated_bytes, peak_bytes);
    EXPECT_EQ(recordings_of(trace)[0].events.size(), three_blocks().events.size());
    EXPECT_EQ(choose_device(trace, "cuda:7").error().message,
              "has no GPU 'cuda:7', only cuda:1, cuda:2");
}

TEST(TraceOfRecordings, WithoutHistoryShowsTheLastState) {
    const std::vector devices{AllocatorRecording{.segments = three_blocks().segments}};
    const Trace trace = trace_of(devices).value();
    EXPECT_EQ(trace.allocations.size(), 2u);
    EXPECT_EQ(report_step(trace).peak.allocated_bytes, 1600);
    EXPECT_THAT(codes(trace), Contains("no_history"));
    EXPECT_EQ(count_allocator_rows(trace).events, 0);
    EXPECT_TRUE(trace_of({}).value().allocations.empty());
    EXPECT_EQ(main_recording({}), nullptr);
}

/// The events and the final state come from two different programs.
TEST(TraceOfRecordings, ThatContradictThemselvesShowTheirEventsAndSaySo) {
    std::vector devices{three_blocks()};
    devices[0].events.insert(devices[0].events.begin(), devices[0].events[0]);
    const Trace trace = trace_of(devices).value();
    EXPECT_THAT(codes(trace), Contains("start_state_unknown"));
    EXPECT_THAT(codes(trace), Contains("replaced_blocks"));
    EXPECT_EQ(trace.allocations.size(), 3u);
}

TEST(TraceOfRecordings, RefusesSizesThatCouldNotBeAddedUp) {
    std::vector devices{three_blocks()};
    for (int64_t i = 0; i < (1 << 15); ++i) {
        devices[0].events.push_back(
            {.action = RecordedAction::kAlloc, .address = i << 20, .size_bytes = int64_t{1} << 44});
    }
    const auto trace = trace_of(devices);
    ASSERT_FALSE(trace);
    EXPECT_THAT(trace.error().message, HasSubstr("more than any device has"));
}

/// The blocks live at the end, and the peak, must equal what the recording says.
void expect_agreement(const AllocatorRecording& recording, const std::string& where) {
    const auto trace = trace_of({recording});
    ASSERT_TRUE(trace) << where << ": " << trace.error().message;
    std::map<int64_t, std::pair<int64_t, int64_t>>
        live;  // address -> bytes asked for, of the block
    int64_t reserved_bytes = 0;
    for (const RecordedSegment& segment : recording.segments) {
        reserved_bytes += segment.size_bytes;
        for (const RecordedBlock& block : segment.blocks) {
            if (block.state == BlockState::kInactive) continue;
            live[block.address] = {block.requested_bytes, block.size_bytes};
        }
    }
    for (std::size_t i = 0; i < trace->allocations.size(); ++i) {
        const Allocation a = trace->allocations[Id<Allocation>(i)];
        if (a.free_completed_event >= 0) continue;
        const auto block = live.find(a.address);
        ASSERT_NE(block, live.end()) << where;
        EXPECT_EQ(block->second, std::pair(a.requested_bytes, a.block_bytes)) << where;
        live.erase(block);
    }
    EXPECT_TRUE(live.empty()) << where;
    const MemoryCurve curve(*trace);
    EXPECT_EQ(curve.at(curve.end_ns()).reserved_bytes, reserved_bytes) << where;
    EXPECT_EQ(count_allocator_rows(*trace).events, static_cast<int64_t>(recording.events.size()));
    for (const char* code : {"unmatched_frees", "replaced_blocks", "outside_segments",
                             "unmatched_segments", "start_state_unknown"}) {
        EXPECT_THAT(codes(*trace), Not(Contains(code))) << where;
    }
    const auto replayed = replay(recording, settings_of(recording.settings));
    ASSERT_TRUE(replayed) << where;
    const PeakReport peak = find_peak(*trace);
    EXPECT_EQ(peak.reserved_bytes, replayed->peak.reserved_bytes) << where;
    EXPECT_LE(peak.allocated_bytes, replayed->peak.allocated_bytes) << where;
    EXPECT_GT(peak.allocated_bytes, 0) << where;
}

TEST(TraceOfRecordings, OfRandomProgramsEndWhereTheRecordingEndsWhereverItBegins) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
        Recorder recorder({.settings = {.expandable_segments = seed % 2 == 0}});
        tests::run_random(recorder, {.seed = seed,
                                     .num_steps = 600,
                                     .num_streams = seed % 3 == 0 ? 3 : 1,
                                     .share_streams = seed % 3 == 0,
                                     .empty_cache_every = seed % 4 == 0 ? 100 : 0});
        for (const std::size_t first : {std::size_t{0}, recorder.num_events() / 2}) {
            expect_agreement(recorder.recording(first),
                             fmt::format("seed {} from {}", seed, first));
        }
    }
}

TEST(TraceOfSamples, EndWhereTheRecordingEnds) {
    const auto files = tests::sample_snapshots();
    if (files.empty()) GTEST_SKIP() << "no snapshots: set TEMPOSCOPE_SAMPLES";
    for (const auto& file : files) {
        const auto recordings = open_recordings(file);
        ASSERT_TRUE(recordings) << recordings.error().message;
        const AllocatorRecording& recording = *main_recording(*recordings);
        expect_agreement(recording, file.string());
        const auto trace = open_trace(file);
        ASSERT_TRUE(trace) << trace.error().message;
        EXPECT_GT(trace->allocations.size(), 1000u);
        EXPECT_EQ(trace->run().time_basis, TimeBasis::kMeasured);
    }
}

/// One line of softmax keeps 256 MiB of each of the 24 layers.
TEST(TraceOfSamples, ShowTheLinesThatAllocatedAtThePeak) {
    const auto file = tests::samples_folder() / "snapshot_medium_1024_training.pickle";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no snapshot: set TEMPOSCOPE_SAMPLES";
    const auto trace = open_trace(file);
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_EQ(default_group_by(*trace), GroupBy::kLine);
    const PeakReport peak = find_peak(*trace);
    std::map<std::string, BreakdownRow> sites;
    int64_t total_bytes = 0;
    for (const BreakdownRow& row : break_down(*trace, peak, GroupBy::kLine)) {
        sites[row.name] = row;
        total_bytes += row.size_bytes;
        EXPECT_THAT(row.name, Not(HasSubstr("einops"))) << "it calls torch for the model";
        EXPECT_THAT(row.name, Not(HasSubstr("modules/module.py"))) << "it belongs to torch";
    }
    EXPECT_EQ(total_bytes, peak.allocated_bytes);
    EXPECT_EQ(sites["cs336_basics/nn_utils.py:6 softmax"].count, 24);
    EXPECT_EQ(sites["cs336_basics/nn_utils.py:6 softmax"].size_bytes, 24 * 256 * kMiB);
    EXPECT_EQ(sites["autograd AccumulateGrad"].count, 5);
    EXPECT_EQ(sites["no stack"].count, 664) << "the blocks from before the recording";
}

}  // namespace
}  // namespace profiler
