#include "profiler/formats/chrome/chrome_writer.h"

#include "profiler/formats/parts/memory_actions.h"
#include "profiler/formats/parts/output_file.h"
#include "profiler/formats/snapshot/memory_timeline_writer.h"
#include "profiler/formats/trace_formats.h"
#include "tests/profiler/formats/samples.h"
#include "tests/profiler/trace/temporary_folder.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

namespace profiler {
namespace {

Trace written_and_read(const Trace& trace, const std::string& name) {
    const tests::TemporaryFolder folder;
    const auto path = folder / name;
    const auto written = write_chrome_trace(trace, path);
    EXPECT_TRUE(written.has_value()) << (written ? "" : written.error().message);
    auto read = open_trace(path);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    return read ? std::move(*read) : Trace();
}

template <auto Member, typename Row>
std::vector<std::string> sorted_texts(const Trace& trace, const Table<Row>& table) {
    std::vector<std::string> texts;
    for (const StringId id : table.template column<Member>()) texts.emplace_back(trace.text(id));
    std::sort(texts.begin(), texts.end());
    return texts;
}

/// "model.py:12 forward <- train.py:3 main", the innermost frame first.
std::string stack_text(const Trace& trace, Id<Stack> stack) {
    std::string text;
    for (; stack.valid(); stack = trace.stacks.get<&Stack::parent>(stack)) {
        const Frame frame = trace.frames[trace.stacks.get<&Stack::frame>(stack)];
        text += fmt::format("{}{}:{} {}", text.empty() ? "" : " <- ", trace.text(frame.file),
                            frame.line, trace.text(frame.function));
    }
    return text;
}

/// One line for each block, in the order of allocation: what a profiler trace holds of it.
std::vector<std::string> block_lines(const Trace& trace, bool with_categories) {
    std::vector<std::string> lines;
    const auto name_of_op = [&](Id<Op> op) {
        return op.valid() ? trace.text(trace.ops.get<&Op::name>(op)) : std::string_view("no op");
    };
    const int64_t first_ns = trace.allocations.get<&Allocation::alloc_ns>(Id<Allocation>(0));
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        const int64_t free_ns = a.free_requested_ns < 0 ? -1 : a.free_requested_ns - first_ns;
        lines.push_back(fmt::format(
            "{} to {}, {} bytes at {} of {}, {}, {}, freed by {}, {}", a.alloc_ns - first_ns,
            free_ns, a.block_bytes, a.address,
            trace.text(trace.devices.get<&Device::name>(a.device)),
            with_categories ? name_of(trace.storages.get<&Storage::category>(a.storage)) : "",
            name_of_op(a.op), name_of_op(a.freeing_op), stack_text(trace, a.stack)));
    }
    return lines;
}

void expect_same_blocks(const Trace& a, const Trace& b, bool with_categories) {
    const auto written = block_lines(a, with_categories), found = block_lines(b, with_categories);
    ASSERT_EQ(written.size(), found.size());
    for (std::size_t i = 0; i < written.size(); ++i) ASSERT_EQ(written[i], found[i]) << i;
}

int64_t highest_sum(const Trace& trace) {
    std::map<int64_t, int64_t> changes;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        changes[a.alloc_event] += a.block_bytes;
        if (a.free_requested_event >= 0) changes[a.free_requested_event] -= a.block_bytes;
    }
    int64_t sum = 0, highest = 0;
    for (const auto& [event, change] : changes) highest = std::max(highest, sum += change);
    return highest;
}

void expect_same(const Trace& a, const Trace& b) {
    EXPECT_EQ((sorted_texts<&Op::name>(a, a.ops)), (sorted_texts<&Op::name>(b, b.ops)));
    EXPECT_EQ((sorted_texts<&Kernel::name>(a, a.kernels)),
              (sorted_texts<&Kernel::name>(b, b.kernels)));
    EXPECT_EQ(a.apis.size(), b.apis.size());
    EXPECT_EQ(a.memcpys.size(), b.memcpys.size());
    EXPECT_EQ(a.steps.size(), b.steps.size());
    ASSERT_EQ(a.phases.size(), b.phases.size());
    for (std::size_t i = 0; i < a.phases.size(); ++i) {
        EXPECT_EQ(a.phases.get<&Phase::kind>(Id<Phase>(i)),
                  b.phases.get<&Phase::kind>(Id<Phase>(i)));
    }
    ASSERT_EQ(a.allocations.size(), b.allocations.size());
    EXPECT_EQ(highest_sum(a), highest_sum(b));
}

TEST(ActionsByDevice, AreThoseOfEachDevice) {
    Trace trace;
    const Id<Device> one = trace.devices.append({}), other = trace.devices.append({});
    int64_t event = 0;
    for (const Id<Device> device : {other, one, Id<Device>(), other}) {
        trace.allocations.append({.device = device,
                                  .alloc_event = event,
                                  .free_requested_event = event + 10,
                                  .alloc_ns = event,
                                  .free_requested_ns = event + 10});
        trace.allocator_events.append({.event = event++, .device = device});
    }
    const ActionsByDevice actions(trace);
    for (const Id<Device> device : {one, other, Id<Device>()}) {
        const std::vector<MemoryAction> expected = memory_actions(trace, device);
        EXPECT_EQ(expected.size(), device == other ? 6U : 3U);
        EXPECT_TRUE(std::ranges::equal(actions.of(device), expected, {}, &MemoryAction::row,
                                       &MemoryAction::row));
    }
}

TEST(ChromeWriter, GivesACaptureBack) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 5'000});
    for (const std::string name : {"a.pt.trace.json", "a.pt.trace.json.gz"}) {
        const Trace read = written_and_read(trace, name);
        expect_same(trace, read);
        EXPECT_EQ((sorted_texts<&Annotation::text>(read, read.annotations)).size(),
                  trace.steps.size() + trace.phases.size());
    }
}

TEST(ChromeWriter, KeepsAnnotations) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 2'000});
    trace.annotations.append({trace.strings.intern("Optimizer.zero_grad#AdamW"), 1'000, 9'000});
    trace.annotations.append({trace.strings.intern("nccl:all_reduce"), 5'000, 12'000});
    const Trace read = written_and_read(trace, "a.json");
    std::vector<Annotation> kept;
    for (std::size_t i = 0; i < read.annotations.size(); ++i) {
        const Annotation row = read.annotations[Id<Annotation>(i)];
        const std::string_view name = read.text(row.text);
        if (name.starts_with("Optimizer") || name.starts_with("nccl")) kept.push_back(row);
    }
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(kept[0].end_ns - kept[0].start_ns, 8'000);
    EXPECT_EQ(kept[1].start_ns - kept[0].start_ns, 4'000);
    expect_same(trace, read);
}

TEST(ChromeWriter, KeepsCollectives) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 2'000});
    const auto text = [&](std::string_view words) { return trace.strings.intern(words); };
    const Id<Communicator> group = trace.communicators.append({.name = text("3"),
                                                               .description = text("mesh_shard"),
                                                               .num_ranks = 2,
                                                               .ranks = text("[0, 2]")});
    const Id<Device> device = trace.devices.append({.name = text("cuda:0")});
    const Op op = trace.ops[Id<Op>(40)];
    const Id<Kernel> kernel =
        trace.kernels.append({.name = text("ncclDevKernel_AllGather_RING_LL"),
                              .stream = trace.streams.append({.device = device, .handle = 20}),
                              .op = Id<Op>(40),
                              .start_ns = op.start_ns,
                              .end_ns = op.start_ns + 3'000});
    trace.collectives.append({.op = Id<Op>(40),
                              .kernel = kernel,
                              .communicator = group,
                              .kind = CollectiveKind::kAllGather,
                              .dtype = DType::kBFloat16,
                              .in_bytes = 4'000,
                              .out_bytes = 8'000});
    trace.collectives.append({.op = Id<Op>(90),
                              .communicator = group,
                              .kind = CollectiveKind::kRecv,
                              .dtype = DType::kFloat32,
                              .out_bytes = 4'000,
                              .peer = 1});
    const Trace read = written_and_read(trace, "a.json");
    ASSERT_EQ(read.collectives.size(), 2U);
    const Collective gather = read.collectives[Id<Collective>(0)];
    EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
    EXPECT_EQ(gather.dtype, DType::kBFloat16);
    EXPECT_EQ(gather.in_bytes, 4'000);
    EXPECT_EQ(gather.out_bytes, 8'000);
    EXPECT_TRUE(gather.kernel.valid());
    EXPECT_EQ(gather.end_ns - gather.start_ns, 3'000);
    const Collective recv = read.collectives[Id<Collective>(1)];
    EXPECT_EQ(recv.kind, CollectiveKind::kRecv);
    EXPECT_EQ(recv.peer, 1);
    EXPECT_EQ(recv.in_bytes, 0);
    EXPECT_EQ(recv.out_bytes, 4'000);
    ASSERT_EQ(read.communicators.size(), 1U);
    EXPECT_EQ(read.text(read.communicators[recv.communicator].description), "mesh_shard");
    EXPECT_EQ(read.text(read.communicators[recv.communicator].ranks), "[0, 2]");
}

TEST(ChromeWriter, KeepsEachBlockWithItsOpsAndCallStack) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 3'000});
    const auto text = [&](std::string_view s) { return trace.strings.intern(s); };
    const Id<Frame> main = trace.frames.append(
        {.function = text("main"), .file = text("/home/me/train \"a\".py"), .line = 3});
    const Id<Frame> forward = trace.frames.append(
        {.function = text("forward"), .file = text("model (2).py"), .line = 120});
    const Id<Frame> op =
        trace.frames.append({.function = text("at::detail::empty(int, long)"), .file = text("")});
    const Id<Stack> outer = trace.stacks.append({.frame = main});
    const Id<Stack> middle = trace.stacks.append({.parent = outer, .frame = forward});
    const Id<Stack> inner = trace.stacks.append({.parent = middle, .frame = op});
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Id<Stack> stack = i % 3 == 0 ? Id<Stack>() : i % 3 == 1 ? inner : outer;
        trace.allocations.set<&Allocation::stack>(Id<Allocation>(i), stack);
    }
    expect_same_blocks(trace, written_and_read(trace, "a.json"), /*with_categories=*/false);
}

/// 3,000 blocks with 40 frames of 1,000 characters: 120 MB, if each block had its text.
TEST(ChromeWriter, WritesTheFramesOfLongCallStacksOnce) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 3'000});
    std::vector<Id<Stack>> stacks;
    for (int i = 0; i < 40; ++i) {
        const std::string function = std::string(1'000, 'f') + std::to_string(i);
        const Id<Frame> frame = trace.frames.append({.function = trace.strings.intern(function),
                                                     .file = trace.strings.intern("model.py"),
                                                     .line = i});
        const Id<Stack> outer = stacks.empty() ? Id<Stack>() : stacks.back();
        stacks.push_back(trace.stacks.append({.parent = outer, .frame = frame}));
    }
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        trace.allocations.set<&Allocation::stack>(Id<Allocation>(i), stacks[39 - i % 2]);
    }
    const tests::TemporaryFolder folder;
    ASSERT_TRUE(write_chrome_trace(trace, folder / "x.json").has_value());
    EXPECT_LT(std::filesystem::file_size(folder / "x.json"), 10'000'000u);
    const auto read = open_trace(folder / "x.json");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    expect_same_blocks(trace, *read, /*with_categories=*/false);
}

/// A frame with the character that separates frames, 300 frames deep: the outermost are kept.
TEST(ChromeWriter, KeepsDeepStacksAndFramesWithSemicolons) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 300});
    Id<Stack> stack;
    for (int i = 0; i < 300; ++i) {
        const Id<Frame> frame =
            trace.frames.append({.function = trace.strings.intern("f; g" + std::to_string(i)),
                                 .file = trace.strings.intern("model.py")});
        stack = trace.stacks.append({.parent = stack, .frame = frame});
    }
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        trace.allocations.set<&Allocation::stack>(Id<Allocation>(i), stack);
    }
    const Trace read = written_and_read(trace, "a.json");
    for (const Id<Stack> found : read.allocations.column<&Allocation::stack>()) {
        ASSERT_TRUE(found.valid());
        ASSERT_EQ(stack_text(read, found).find("model.py:0 f; g299 <- model.py:0 f; g298"), 0u);
    }
}

/// Viewers drop ranges of one track that overlap without lying in each other.
TEST(ChromeWriter, PutsAnnotationsThatOverlapOnTracksOfTheirOwn) {
    Trace trace = tests::make_synthetic_trace({.num_allocations = 300});
    for (const auto& [name, start_ns, end_ns] :
         {std::tuple("outer", 0, 10'000), std::tuple("inner", 1'000, 5'000),
          std::tuple("across", 4'000, 12'000), std::tuple("after", 12'000, 13'000)}) {
        trace.annotations.append({trace.strings.intern(name), start_ns, end_ns});
    }
    const tests::TemporaryFolder folder;
    ASSERT_TRUE(write_chrome_trace(trace, folder / "a.json").has_value());
    std::map<std::string, int64_t> tracks;
    const auto document = nlohmann::json::parse(std::ifstream(folder / "a.json"));
    for (const auto& event : document["traceEvents"]) {
        if (event.value("cat", "") == "user_annotation") tracks[event["name"]] = event["tid"];
    }
    EXPECT_EQ(tracks["outer"], tracks["inner"]);
    EXPECT_NE(tracks["outer"], tracks["across"]);
    EXPECT_EQ(tracks["outer"], tracks["after"]);
}

TEST(ChromeWriter, KeepsTheModulesOfForward) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 3'000});
    const Trace read = written_and_read(trace, "a.json");
    std::map<std::string, int> written, found;
    const auto count = [](const Trace& from, std::map<std::string, int>& counts) {
        for (std::size_t i = 0; i < from.ops.size(); ++i) {
            const Op op = from.ops[Id<Op>(i)];
            if (op.module_path.valid() && !op.forward.valid()) {
                const ModulePath module = from.module_paths[op.module_path];
                ++counts[fmt::format("{} in layer {}", from.text(module.path), module.layer)];
            }
        }
    };
    count(trace, written);
    count(read, found);
    ASSERT_GT(written.size(), 10U);
    std::size_t same = 0;
    for (const auto& [path, ops] : written) same += found.contains(path) ? 1 : 0;
    EXPECT_EQ(same, written.size());
}

TEST(ChromeWriter, GivesRealProfilerTracesBack) {
    const auto folder = tests::samples_folder();
    if (!std::filesystem::exists(folder / "kineto_bert_small_h100.json.gz")) {
        GTEST_SKIP() << "no traces: set TEMPOSCOPE_SAMPLES";
    }
    for (const char* name : {"kineto_bert_small_h100.json.gz", "kineto_v100_memory.json.gz"}) {
        const auto trace = open_trace(folder / name);
        ASSERT_TRUE(trace.has_value());
        const Trace read = written_and_read(*trace, "a.pt.trace.json.gz");
        expect_same(*trace, read);
        expect_same_blocks(*trace, read, /*with_categories=*/true);
        ASSERT_EQ(read.kernels.size(), trace->kernels.size());
        for (std::size_t i = 0; i < read.kernels.size(); ++i) {
            const Kernel a = trace->kernels[Id<Kernel>(i)], b = read.kernels[Id<Kernel>(i)];
            EXPECT_EQ(a.end_ns - a.start_ns, b.end_ns - b.start_ns);
            EXPECT_EQ(a.op.valid(), b.op.valid());
        }
    }
}

TEST(ChromeWriter, EscapesNames) {
    EXPECT_EQ(json_text("a\"b\\c\n\x01\xff\xc3\xa9"), "\"a\\\"b\\\\c\\u000a\\u0001?\xc3\xa9\"");
    Trace trace = tests::make_synthetic_trace({.num_allocations = 3'000});
    trace.ops.set<&Op::name>(Id<Op>(0), trace.strings.intern("</script>\"\n\\"));
    const Trace read = written_and_read(trace, "a.json");
    EXPECT_EQ(read.ops.size(), trace.ops.size());
}

TEST(MemoryTimelineWriter, WritesTheRowsThatTorchWrites) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 2'000});
    const tests::TemporaryFolder folder;
    ASSERT_TRUE(write_memory_timeline(trace, folder / "a.raw.json").has_value());
    std::ifstream file(folder / "a.raw.json");
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "[");
    int64_t sum = 0, highest = 0, rows = 0;
    while (std::getline(file, line) && line != "]") {
        long long time = 0, action = 0, bytes = 0, category = 0;
        ASSERT_EQ(std::sscanf(line.c_str(), "[%lld, %lld, %lld, %lld]", &time, &action, &bytes,
                              &category),
                  4)
            << line;
        EXPECT_TRUE(bytes > 0 ? action == 2 : action == 4) << line;
        EXPECT_TRUE(category >= 0 && category <= 7 && category != 6) << line;
        highest = std::max(highest, sum += bytes);
        ++rows;
    }
    int64_t frees = 0;
    for (const int64_t free : trace.allocations.column<&Allocation::free_requested_event>()) {
        frees += free >= 0 ? 1 : 0;
    }
    EXPECT_EQ(rows, static_cast<int64_t>(trace.allocations.size()) + frees);
    EXPECT_EQ(highest, highest_sum(trace));
}

}  // namespace
}  // namespace profiler
