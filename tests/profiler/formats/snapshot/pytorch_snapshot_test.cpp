#include "profiler/formats/snapshot/pytorch_snapshot.h"
#include "tests/profiler/formats/snapshot_bytes.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

namespace profiler {
namespace {

using testing::HasSubstr;
using tests::PickleBytes;

AllocatorRecording sample() {
    AllocatorRecording recording;
    recording.settings.alloc_conf = "expandable_segments:True";
    recording.settings.expandable_segments = true;
    const int64_t base = int64_t{1} << 45;
    recording.segments = {{.address = base,
                           .size_bytes = 2048,
                           .stream = 7,
                           .pool = 0,
                           .is_small = true,
                           .blocks = {{base, 512, 100, BlockState::kAllocated},
                                      {base + 512, 512, 512, BlockState::kPendingFree},
                                      {base + 1024, 1024, 0, BlockState::kInactive}}},
                          {.address = base + 4096,
                           .size_bytes = 512,
                           .pool = 1,
                           .is_expandable = true,
                           .blocks = {{base + 4096, 512, 0, BlockState::kInactive}}}};
    recording.events = {
        {.action = RecordedAction::kAlloc,
         .address = base,
         .size_bytes = 100,
         .stream = 7,
         .time_us = 5},
        {.action = RecordedAction::kFreeRequested, .address = base + 512, .size_bytes = 512},
        {.action = RecordedAction::kOom, .address = 1'000, .size_bytes = 2'000}};
    return recording;
}

std::string problem(const std::string& bytes) {
    const auto snapshot = parse_pytorch_snapshot(bytes, "s.pickle");
    return snapshot ? "no problem" : snapshot.error().message;
}

TEST(PytorchSnapshot, ReadsSegmentsBlocksEventsAndSettings) {
    for (const int protocol : {2, 3, 4, 5}) {
        const AllocatorRecording written = sample();
        const std::string bytes = tests::snapshot_bytes(written, protocol);
        const auto snapshot = parse_pytorch_snapshot(bytes, "s.pickle");
        ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
        ASSERT_EQ(snapshot->devices.size(), 1u);
        const AllocatorRecording& read = snapshot->main();
        EXPECT_EQ(read.segments, written.segments);
        EXPECT_EQ(read.events, written.events);
        EXPECT_EQ(read.settings.alloc_conf, "expandable_segments:True");
        EXPECT_TRUE(read.settings.expandable_segments);
        EXPECT_EQ(read.settings.max_split_bytes, -1);
    }
}

/// A snapshot with a text beside torch's own keys, read as a trace.
models::Result<Trace> trace_with(const std::string& watched) {
    std::string bytes = tests::snapshot_bytes(sample());
    bytes.resize(bytes.size() - 2);  // the end of the dictionary
    bytes += PickleBytes().entry("temposcope", watched).op("u").finish().substr(2);
    const tests::TemporaryFolder folder;
    std::ofstream(folder / "s.pickle", std::ios::binary) << bytes;
    return read_snapshot_trace(folder / "s.pickle", {});
}

TEST(PytorchSnapshot, ReadsWhatTemposcopeWatchAdds) {
    const auto trace = trace_with(fmt::format(
        R"({{"command": ["python", "train.py"], "folder": "/home/me", "environment": {{"A": "1"}},
        "lines": [{{"file": "train.py", "line": 9, "function": "<module>", "code": "train"}},
                  {{"file": "train.py", "line": 5, "function": "step", "code": "y = x + x"}}],
        "blocks": [
          {{"address": {}, "keepers": [
            {{"kind": "container", "text": "list `kept[0]`", "file": "train.py", "line": 7}}]}},
          {{"address": 64, "keepers": [{{"kind": "no such"}}]}}]}})",
        int64_t{1} << 45));
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->text(trace->run().command), R"(["python","train.py"])");
    EXPECT_EQ(trace->text(trace->run().folder), "/home/me");
    EXPECT_EQ(trace->text(trace->run().environment), R"({"A":"1"})");
    ASSERT_EQ(trace->keepers.size(), 1u);
    const Keeper keeper = trace->keepers[Id<Keeper>(0)];
    EXPECT_EQ(trace->allocations.get<&Allocation::address>(keeper.allocation), int64_t{1} << 45);
    EXPECT_EQ(keeper.kind, KeeperKind::kContainer);
    EXPECT_EQ(trace->text(keeper.text), "list `kept[0]`");
    EXPECT_EQ(trace->text(keeper.file), "train.py");
    EXPECT_EQ(keeper.line, 7);
    const Stack inner = trace->stacks[trace->failures.get<&Failure::stack>(Id<Failure>(0))];
    EXPECT_EQ(trace->text(trace->frames[inner.frame].code), "y = x + x");
    EXPECT_EQ(trace->frames[trace->stacks[inner.parent].frame].line, 9);
}

TEST(PytorchSnapshot, RefusesDamagedAdditions) {
    const std::string ghost = R"({"command": [], "environment": {}, "folder": "", "blocks": [
        {"address": 35184372088832, "keepers": [
          {"kind": "ghost", "text": "", "file": "", "line": 0}]}]})";
    for (const std::string& watched :
         {std::string("{"), std::string("[]"), std::string(R"({"command": 3})"),
          std::string("\xff"), ghost}) {
        const auto trace = trace_with(watched);
        ASSERT_FALSE(trace.has_value()) << watched;
        EXPECT_THAT(trace.error().message, HasSubstr("temposcope.watch has added is damaged"));
    }
}

TEST(PytorchSnapshot, KeepsTheInnermostFramesOfADeepStack) {
    RecordedStacks deep{.texts = {"recurse", "deep.py"}, .frames = {}, .stacks = {}};
    for (int32_t i = 0; i < 300; ++i) {
        deep.frames.push_back({.function = 0, .file = 1, .line = i});
        deep.stacks.push_back({.parent = i - 1, .frame = i});
    }
    AllocatorRecording written = sample();
    written.stacks = std::make_shared<const RecordedStacks>(deep);
    written.events[0].stack = 299;
    const auto snapshot = parse_pytorch_snapshot(tests::snapshot_bytes(written), "s.pickle");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const AllocatorRecording& read = snapshot->main();
    ASSERT_NE(read.stacks, nullptr);
    ASSERT_EQ(read.stacks->stacks.size(), 256u);
    EXPECT_EQ(read.stacks->texts, deep.texts);
    EXPECT_EQ(read.events[0].stack, 255);
    EXPECT_EQ(read.events[1].stack, -1);
    EXPECT_EQ(read.stacks->frames.front().line, 44);
    EXPECT_EQ(read.stacks->frames.back().line, 299);
}

TEST(PytorchSnapshot, KeepsTheStacksOfBlocksInUse) {
    AllocatorRecording written = sample();
    written.stacks = std::make_shared<const RecordedStacks>(
        RecordedStacks{.texts = {"forward", "bert.py"},
                       .frames = {{.function = 0, .file = 1, .line = 7}},
                       .stacks = {{.parent = -1, .frame = 0}}});
    const auto& blocks = written.segments[0].blocks;
    written.block_stacks = {{blocks[1].address, 0}, {blocks[2].address, 0}};
    const auto snapshot = parse_pytorch_snapshot(tests::snapshot_bytes(written), "s.pickle");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const AllocatorRecording& read = snapshot->main();
    EXPECT_EQ(read.block_stacks, (std::vector<RecordedBlockStack>{{blocks[1].address, 0}}))
        << "the third block is free";
    ASSERT_NE(read.stacks, nullptr);
    EXPECT_EQ(read.stacks->frames[0].line, 7);
}

TEST(PytorchSnapshot, KeepsDevicesApart) {
    PickleBytes out;
    out.op("}(").text("segments").op("](}(").entry("device", 1).entry("address", 0);
    out.entry("total_size", 512).text("blocks").op("](}(").entry("size", 512);
    out.entry("state", "inactive").op("ueue").text("device_traces").op("](]]eu");
    const auto snapshot = parse_pytorch_snapshot(out.finish(), "s.pickle");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    ASSERT_EQ(snapshot->devices.size(), 2u);
    EXPECT_EQ(snapshot->main().device, 1);
    EXPECT_EQ(snapshot->main().segments[0].blocks.size(), 1u);
}

TEST(PytorchSnapshot, SkipsActionsThatDoNotChangeTheAllocator) {
    PickleBytes out;
    out.op("}(").text("segments").op("]").text("device_traces").op("](](}(");
    out.entry("action", "user_defined").op("ueeu");
    const auto snapshot = parse_pytorch_snapshot(out.finish(), "s.pickle");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    EXPECT_TRUE(snapshot->main().events.empty());
}

TEST(PytorchSnapshot, OtherPicklesAreNamed) {
    EXPECT_THAT(problem("Dear diary"),
                HasSubstr("s.pickle is not a PyTorch memory snapshot: byte 0"));
    EXPECT_THAT(problem(PickleBytes().op("]").finish()),
                HasSubstr("no segments and device_traces"));
    EXPECT_THAT(problem(PickleBytes()
                            .op("}(")
                            .text("segments")
                            .op("N")
                            .text("device_traces")
                            .op("Nu")
                            .finish()),
                HasSubstr("a list is expected"));
}

TEST(PytorchSnapshot, ValuesThatCannotBeAreNamedWithTheirPlace) {
    auto negative = sample();
    negative.events[0].address = -5;
    EXPECT_THAT(problem(tests::snapshot_bytes(negative)),
                testing::AllOf(HasSubstr("byte "), HasSubstr("'addr' is -5, which is impossible")));
    auto gap = sample();
    gap.segments[0].blocks[1].address += 512;
    EXPECT_THAT(problem(tests::snapshot_bytes(gap)), HasSubstr("does not follow the block before"));
    auto beyond = sample();
    beyond.segments[1].size_bytes = 256;
    EXPECT_THAT(problem(tests::snapshot_bytes(beyond)), HasSubstr("ends after its segment"));
    auto unfilled = sample();
    unfilled.segments[1].size_bytes = 1024;
    EXPECT_THAT(problem(tests::snapshot_bytes(unfilled)), HasSubstr("do not fill it"));
    auto huge = sample();
    huge.events[1].size_bytes = int64_t{1} << 50;
    EXPECT_THAT(problem(tests::snapshot_bytes(huge)), HasSubstr("which is impossible"));
}

TEST(PytorchSnapshot, TellsTheOrderOfTiesOfTorch213ByItsSettings) {
    const std::string json =
        R"({"device_traces": [[{"action": "alloc", "addr": 4096, "size": 600}]],
        "segments": [], "allocator_settings": {"max_split_size": -1%s}})";
    const auto order_with = [&](std::string_view keys) {
        std::string text = json;
        text.replace(text.find("%s"), 2, keys);
        return parse_pytorch_snapshot(text, "s.json").value().main().settings.tie_order;
    };
    EXPECT_EQ(order_with(""), std::nullopt);
    EXPECT_EQ(order_with(R"(, "max_round_threshold": -1)"), TieOrder::kSegmentAge);
}

TEST(PytorchSnapshot, ReadsTheSameDictionaryAsJson) {
    const std::string json = R"( {"device_traces": [[], [
        {"action": "alloc", "addr": 4096, "size": 600, "stream": 7, "time_us": 12,
         "pool_id": [0, 3],
         "frames": [{"name": "inner", "filename": "a.py", "line": 2},
                    {"name": "outer", "filename": "b.py", "line": 1}]},
        {"action": "free_requested", "addr": 4096, "size": 600, "stream": 7, "time_us": 13},
        {"action": "oom", "device_free": 18446744073709551615, "size": 5}]],
        "segments": [{"device": 1, "address": 4096, "total_size": 1024, "segment_type": "small",
                      "segment_pool_id": [0, 3],
                      "blocks": [{"size": 1024, "requested_size": 600,
                                  "state": "active_pending_free", "frames": []}]}],
        "allocator_settings": {"max_split_size": 20, "garbage_collection_threshold": 0.5,
                               "roundup_power2_divisions": {"1": 0, "2": 4}},
        "external_annotations": [{"name": "r", "stage": "START", "device": 1, "time_us": 12}]})";
    const auto snapshot = parse_pytorch_snapshot(json, "s.json");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    ASSERT_EQ(snapshot->devices.size(), 2u);
    const AllocatorRecording& read = snapshot->main();
    EXPECT_EQ(read.device, 1);
    EXPECT_EQ(
        read.events,
        (std::vector<RecordedEvent>{
            {.stack = 1, .address = 4096, .size_bytes = 600, .stream = 7, .pool = 1, .time_us = 12},
            {.action = RecordedAction::kFreeRequested,
             .address = 4096,
             .size_bytes = 600,
             .stream = 7,
             .time_us = 13},
            {.action = RecordedAction::kOom, .size_bytes = 5}}));
    EXPECT_EQ(read.stacks->texts, (std::vector<std::string>{"outer", "b.py", "inner", "a.py"}));
    ASSERT_EQ(read.segments.size(), 1u);
    EXPECT_EQ(read.segments[0].pool, 1);
    EXPECT_EQ(read.segments[0].blocks,
              (std::vector<RecordedBlock>{{4096, 1024, 600, BlockState::kPendingFree}}));
    EXPECT_EQ(read.settings.max_split_bytes, 20);
    EXPECT_EQ(read.settings.gc_threshold, 0.5);
    EXPECT_EQ(read.settings.roundup_power2_divisions[1], 4);
    ASSERT_EQ(snapshot->annotations.size(), 1u);
    EXPECT_EQ(snapshot->annotations[0].name, "r");
    for (std::size_t size = 20; size < json.size(); size += 7) {
        EXPECT_NE(problem(json.substr(0, size)), "no problem") << size;
    }
}

std::string innermost_function(const AllocatorRecording& recording, std::size_t event) {
    const RecordedStacks& stacks = *recording.stacks;
    const auto stack = static_cast<std::size_t>(recording.events[event].stack);
    const auto frame = static_cast<std::size_t>(stacks.stacks[stack].frame);
    return stacks.texts[static_cast<std::size_t>(stacks.frames[frame].function)];
}

/// A text is for the block that lives at its address then.
TEST(PytorchSnapshot, GivesAnnotationsToTheirBlocks) {
    const std::string json = R"({"device_traces": [[
        {"action": "annotate", "addr": 512, "size": 512, "user_metadata": "of an older block"},
        {"action": "alloc", "addr": 512, "size": 512},
        {"action": "free_requested", "addr": 512, "size": 512},
        {"action": "free_completed", "addr": 512, "size": 512},
        {"action": "annotate", "addr": 512, "size": 512, "user_metadata": "of none"},
        {"action": "alloc", "addr": 512, "size": 512,
         "frames": [{"name": "f", "filename": "a.py", "line": 3}]},
        {"action": "annotate", "addr": 512, "size": 512, "user_metadata": "parameter: w"}]],
        "segments": []})";
    const auto snapshot = parse_pytorch_snapshot(json, "s.json");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    ASSERT_EQ(snapshot->main().events.size(), 4U);
    EXPECT_EQ(snapshot->main().events[0].stack, -1);
    EXPECT_EQ(innermost_function(snapshot->main(), 3), "parameter: w");
}

/// Its own stack is that of its segment.
TEST(PytorchSnapshot, GivesAnnotationsToBlocksFromBeforeTheHistory) {
    const std::string json = R"({"device_traces": [[
        {"action": "annotate", "addr": 512, "size": 512, "user_metadata": "parameter: w"},
        {"action": "annotate", "addr": 1024, "size": 512, "user_metadata": "parameter: freed"},
        {"action": "free_requested", "addr": 1024, "size": 512}]],
        "segments": [{"device": 0, "address": 512, "total_size": 1024, "segment_type": "small",
                      "segment_pool_id": [0, 0], "blocks": [
            {"address": 512, "size": 512, "requested_size": 512, "state": "active_allocated",
             "frames": [{"name": "f", "filename": "a.py", "line": 3}]},
            {"address": 1024, "size": 512, "requested_size": 0, "state": "inactive"}]}]})";
    const auto snapshot = parse_pytorch_snapshot(json, "s.json");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const auto& blocks = snapshot->main().block_stacks;
    ASSERT_EQ(blocks.size(), 1U);
    const RecordedStacks& stacks = *snapshot->main().stacks;
    const RecordedStack inner = stacks.stacks[static_cast<std::size_t>(blocks[0].stack)];
    const auto function_of = [&](const RecordedStack& stack) {
        const auto frame = static_cast<std::size_t>(stack.frame);
        return stacks.texts[static_cast<std::size_t>(stacks.frames[frame].function)];
    };
    EXPECT_EQ(function_of(inner), "parameter: w");
    EXPECT_EQ(function_of(stacks.stacks[static_cast<std::size_t>(inner.parent)]), "f");
}

/// Since torch 2.14, if record_pinned_host_memory asks for it.
TEST(PytorchSnapshot, ReadsPinnedMemoryBesideTheDevices) {
    const std::string json = R"({"device_traces": [[
        {"action": "alloc", "addr": 512, "size": 512},
        {"action": "annotate", "addr": 512, "size": 512, "user_metadata": "a weight"}]],
        "segments": [],
        "host_segments": [{"device": -1, "address": 8192, "total_size": 4096,
                           "segment_type": "small", "segment_pool_id": [0, 0],
                           "blocks": [{"address": 8192, "size": 4096, "requested_size": 4096,
                                       "state": "active_allocated", "frames": []}]}],
        "host_traces": [{"action": "segment_alloc", "addr": 8192, "size": 4096, "time_us": 5},
                        {"action": "alloc", "addr": 8192, "size": 4096, "time_us": 6,
                         "frames": [{"name": "f", "filename": "a.py", "line": 3}]}],
        "allocator_settings": {"max_round_threshold": -1}})";
    const auto snapshot = parse_pytorch_snapshot(json, "s.json");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    ASSERT_EQ(snapshot->devices.size(), 1U);
    ASSERT_EQ(snapshot->main().events.size(), 1U);
    EXPECT_EQ(innermost_function(snapshot->main(), 0), "a weight");
    EXPECT_EQ(snapshot->host.device, kHostDevice);
    ASSERT_EQ(snapshot->host.events.size(), 2U);
    EXPECT_EQ(snapshot->host.events[1].size_bytes, 4096);
    EXPECT_GE(snapshot->host.events[1].stack, 0);
    ASSERT_EQ(snapshot->host.segments.size(), 1U);
    EXPECT_EQ(snapshot->host.segments[0].address, 8192);
}

/// Of 2022: blocks have their stack and the bytes asked for in a history, the last use first.
TEST(PytorchSnapshot, ReadsTheHistoryOfOldBlocks) {
    const auto snapshot = parse_pytorch_snapshot(
        R"({"segments": [{"address": 512, "total_size": 512, "blocks": [
            {"size": 512, "state": "active_allocated", "history": [
                {"addr": 512, "real_size": 100,
                 "frames": [{"name": "f", "filename": "a.py", "line": 3}]},
                {"addr": 512, "real_size": 7, "frames": []}]}]}], "device_traces": []})",
        "s.json");
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    const AllocatorRecording& read = snapshot->main();
    EXPECT_EQ(read.segments[0].blocks[0].requested_bytes, 100);
    ASSERT_EQ(read.block_stacks.size(), 1u);
    EXPECT_EQ(read.stacks->frames[0].line, 3);
}

/// A file can repeat a list at no cost, but a reader pays for each visit.
TEST(PytorchSnapshot, RepeatedListsAreRefused) {
    PickleBytes out;
    out.op("}(").text("segments").op("]").text("device_traces").op("](](");
    for (int i = 0; i < 1'000; ++i)
        out.op("}(").entry("action", "snapshot").entry("addr", 0).entry("size", 0).op("u");
    out.op("eq").op(std::string(1, '\0'));
    for (int i = 0; i < 1'000; ++i) out.op("h").op(std::string(1, '\0'));
    EXPECT_THAT(problem(out.op("eu").finish()), HasSubstr("listed twice"));
}

TEST(PytorchSnapshot, FilesThatCannotBeOpenedAreNamed) {
    EXPECT_THAT(read_pytorch_snapshot("/no/such/file").error().message,
                HasSubstr("/no/such/file does not exist"));
    EXPECT_THAT(read_pytorch_snapshot("/").error().message, HasSubstr("is a folder"));
    EXPECT_THAT(read_pytorch_snapshot("/dev/null").error().message, HasSubstr("is not a file"));
}

}  // namespace
}  // namespace profiler
