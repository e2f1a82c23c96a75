/// Traces of the PyTorch profiler: each dialect by hand, damaged files, and real files where there
/// are samples.
#include "profiler/formats/kineto/kineto_trace.h"

#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/formats/kineto/kineto_events.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/trace_notes.h"
#include "tests/profiler/formats/samples.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <map>

namespace profiler {
namespace {

using testing::HasSubstr;
using tests::TemporaryFolder;

std::string packed(const std::string& text) {
    const TemporaryFolder folder;
    const auto file = folder / "a.gz";
    gzFile out = gzopen(file.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    return bytes.str();
}

models::Result<Trace> read(const std::string& bytes) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a.json", std::ios::binary) << bytes;
    return open_trace(folder / "a.json");
}

Trace trace_of_events(const std::string& events) {
    auto trace = read("{\"schemaVersion\": 1, \"traceEvents\": [" + events + "]}");
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
    return trace ? std::move(*trace) : Trace();
}

std::string problem(const std::string& bytes) {
    const auto trace = read(bytes);
    return trace ? "no problem" : trace.error().message;
}

int64_t count_of(const Trace& trace, std::string_view code) {
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        const Diagnostic note = trace.diagnostics[Id<Diagnostic>(i)];
        if (trace.text(note.code) == code) return note.count;
    }
    return 0;
}

std::string_view name_of_op(const Trace& trace, Id<Op> op) {
    return op.valid() ? trace.text(trace.ops.get<&Op::name>(op)) : "none";
}

/// A training step as the profiler of 2024 writes it: an op of forward, its backward, SGD.
const std::string kStep = R"(
{"ph":"M","name":"thread_name","pid":9,"tid":9,"ts":1,"args":{"name":"python"}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":100.5,"dur":900},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":9,"tid":9,"ts":110,"dur":50,
 "args":{"External id":1,"Sequence number":7,"Fwd thread id":0}},
{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":9,"tid":9,"ts":120,"dur":30,
 "args":{"External id":2,"Sequence number":7,"Fwd thread id":0}},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":9,"ts":125,
 "args":{"Total Reserved":4096,"Total Allocated":1536,"Bytes":512,"Addr":64,"Device Id":0,
 "Device Type":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":130,"dur":2.25,
 "args":{"External id":2,"cbid":211,"correlation":31}},
{"ph":"s","id":31,"pid":9,"tid":9,"ts":130,"cat":"ac2g","name":"ac2g"},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":140.125,"dur":5,
 "args":{"External id":2,"device":0,"stream":7,"correlation":31,"grid":[2,3,4],"block":[32,1,1],
 "registers per thread":40,"shared memory":16}},
{"ph":"f","id":31,"pid":0,"tid":7,"ts":140.125,"cat":"ac2g","name":"ac2g","bp":"e"},
{"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: AddmmBackward0","pid":9,
 "tid":12,"ts":200,"dur":50,"args":{"Sequence number":7,"Fwd thread id":1}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":12,"ts":210,"dur":30},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":12,"ts":212,
 "args":{"Total Reserved":4096,"Total Allocated":2560,"Bytes":1024,"Addr":128,"Device Id":0,
 "Device Type":1}},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":12,"ts":249,
 "args":{"Total Reserved":4096,"Total Allocated":2048,"Bytes":-512,"Addr":64,"Device Id":0,
 "Device Type":1}},
{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":9,"tid":9,"ts":300,
 "dur":50},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":9,"ts":310,
 "args":{"Total Reserved":4096,"Total Allocated":2304,"Bytes":256,"Addr":192,"Device Id":0,
 "Device Type":1}})";

TEST(ProfilerTrace, ConnectsOpsKernelsMemoryAndBackward) {
    const Trace trace = trace_of_events(kStep);
    ASSERT_EQ(trace.ops.size(), 4u);
    ASSERT_EQ(trace.kernels.size(), 1u);
    const Kernel kernel = trace.kernels[Id<Kernel>(0)];
    EXPECT_EQ(name_of_op(trace, kernel.op), "aten::addmm");
    EXPECT_EQ(kernel.start_ns, 39'625) << "time 0 is the start of the first event";
    EXPECT_EQ(kernel.end_ns - kernel.start_ns, 5'000);
    EXPECT_EQ(kernel.grid_y, 3);
    EXPECT_EQ(trace.streams.get<&Stream::handle>(kernel.stream), 7);
    const Op mm = trace.ops[Id<Op>(3)];
    EXPECT_EQ(trace.text(mm.name), "aten::mm");
    EXPECT_EQ(name_of_op(trace, mm.forward), "aten::addmm") << "the last op with the number 7";
    EXPECT_EQ(name_of_op(trace, trace.allocations.get<&Allocation::op>(Id<Allocation>(1))),
              "aten::addmm");
    EXPECT_EQ(trace.text(trace.threads.get<&Thread::name>(Id<Thread>(0))), "main thread");
}

TEST(ProfilerTrace, FindsStepsPhasesAndCategories) {
    const Trace trace = trace_of_events(kStep);
    ASSERT_EQ(trace.steps.size(), 1u);
    ASSERT_EQ(trace.phases.size(), 3u);
    EXPECT_EQ(trace.phases.get<&Phase::kind>(Id<Phase>(1)), PhaseKind::kBackward);
    std::map<int64_t, Category> category;  // by address
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation block = trace.allocations[Id<Allocation>(i)];
        category[block.address] = trace.storages.get<&Storage::category>(block.storage);
    }
    EXPECT_EQ(category[-1], Category::kUnknown) << "1024 bytes from before the recording";
    EXPECT_EQ(category[64], Category::kActivation);
    EXPECT_EQ(category[128], Category::kGradient);
    EXPECT_EQ(category[192], Category::kOptimizerState);
    EXPECT_EQ(count_of(trace, kInferredCategories), 3);
    EXPECT_EQ(trace.run().source, Source::kImported);
}

TEST(ProfilerTrace, TotalsStartAtWhatWasThereBefore) {
    const Trace trace = trace_of_events(kStep);
    const MemoryCurve curve(trace);
    EXPECT_EQ(curve.at(25'000).allocated_bytes, 1536);
    EXPECT_EQ(curve.at(curve.end_ns()).allocated_bytes, 2304);
    EXPECT_EQ(curve.at(curve.end_ns()).reserved_bytes, 4096);
    EXPECT_EQ(count_of(trace, "unmatched_totals"), 0);
}

/// Torch 1.8: other categories, streams as text, no addresses, no totals, ranges as operators.
TEST(ProfilerTrace, ReadsTheDialectOf2021) {
    const Trace trace = trace_of_events(R"json(
{"ph":"X","cat":"Operator","name":"ProfilerStep#2","pid":5,"tid":"6","ts":1000,"dur":100,
 "args":{"Device":5,"External id":1,"Call stack":"","Input dims":[]}},
{"ph":"X","cat":"Operator","name":"aten::mul","pid":5,"tid":"6","ts":1010,"dur":50,
 "args":{"External id":2,"Call stack":"b.py(7): inner;a.py(3): outer"}},
{"ph":"i","name":"[memory]","s":"t","pid":5,"tid":6,"ts":1020,
 "args":{"Device Type":0,"Device Id":-1,"Bytes":64}},
{"ph":"i","name":"[memory]","s":"t","pid":5,"tid":6,"ts":1030,
 "args":{"Device Type":0,"Device Id":-1,"Bytes":-64}},
{"ph":"i","name":"[memory]","s":"t","pid":5,"tid":6,"ts":1035,
 "args":{"Device Type":0,"Device Id":-1,"Bytes":-32}},
{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":5,"tid":"6","ts":1040,"dur":2,
 "args":{"cbid":211,"correlation":8,"external id":2}},
{"ph":"s","id":8,"pid":5,"tid":6,"ts":1040,"cat":"async","name":"launch"},
{"ph":"X","cat":"Kernel","name":"mul_kernel","pid":1,"tid":"stream 7","ts":1050,"dur":3,
 "args":{"queued":0,"device":1,"context":1,"stream":7,"correlation":8,"external id":2}},
{"ph":"X","cat":"Memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":1,"tid":"stream 7",
 "ts":1060,"dur":1,
 "args":{"device":1,"stream":7,"correlation":9,"external id":2,"bytes":40}})json");
    EXPECT_EQ(trace.steps.size(), 1u);
    ASSERT_EQ(trace.ops.size(), 1u);
    ASSERT_EQ(trace.kernels.size(), 1u);
    EXPECT_EQ(name_of_op(trace, trace.kernels.get<&Kernel::op>(Id<Kernel>(0))), "aten::mul");
    ASSERT_EQ(trace.memcpys.size(), 1u);
    EXPECT_EQ(trace.text(trace.memcpys.get<&Memcpy::kind>(Id<Memcpy>(0))), "host_to_device");
    ASSERT_EQ(trace.allocations.size(), 2u);
    const Allocation block = trace.allocations[Id<Allocation>(1)];
    EXPECT_EQ(block.free_requested_ns - block.alloc_ns, 10'000) << "matched by its size";
    EXPECT_EQ(count_of(trace, "matched_by_size"), 2);
    const Stack stack = trace.stacks[block.stack];
    EXPECT_EQ(trace.text(trace.frames.get<&Frame::function>(stack.frame)), "inner");
    EXPECT_EQ(trace.frames.get<&Frame::line>(stack.frame), 7);
    EXPECT_EQ(trace.stacks.get<&Stack::parent>(stack.parent), Id<Stack>());
}

/// Torch 1.11: arrows of the category async_cpu_to_gpu, which alone connect launch and kernel here,
/// and ranges in two parts, which are counted.
TEST(ProfilerTrace, ReadsTheDialectOf2022) {
    const Trace trace = trace_of_events(R"(
{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":5,"tid":6,"ts":1010,"dur":50,
 "args":{"External id":2}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":6,"ts":1040,"dur":2,
 "args":{"cbid":211}},
{"ph":"s","id":8,"pid":5,"tid":6,"ts":1040,"cat":"async_cpu_to_gpu","name":"async_cpu_to_gpu"},
{"ph":"X","cat":"kernel","name":"mul_kernel","pid":1,"tid":7,"ts":1050,"dur":3,
 "args":{"device":1,"stream":7,"correlation":8}},
{"ph":"f","id":8,"pid":1,"tid":7,"ts":1050,"cat":"async_cpu_to_gpu","name":"async_cpu_to_gpu"},
{"ph":"B","cat":"user","name":"mine","pid":5,"tid":6,"ts":1000},
{"ph":"E","cat":"user","name":"mine","pid":5,"tid":6,"ts":1100})");
    ASSERT_EQ(trace.kernels.size(), 1u);
    EXPECT_EQ(name_of_op(trace, trace.kernels.get<&Kernel::op>(Id<Kernel>(0))), "aten::mul");
    EXPECT_EQ(count_of(trace, "skipped_events"), 1);
}

/// ROCm writes no grids and no External id for kernels.
TEST(ProfilerTrace, ReadsTheDialectOfAmd) {
    const Trace trace = trace_of_events(R"(
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":5,"tid":5,"ts":"10.5","dur":"50"},
{"ph":"X","cat":"cuda_runtime","name":"hipExtModuleLaunchKernel","pid":5,"tid":5,"ts":20,"dur":2,
 "args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"Cijk_Ailk","pid":2,"tid":3,"ts":30,"dur":9,
 "args":{"device":2,"stream":3,"correlation":4,"kind":"Dispatch Kernel"}})");
    ASSERT_EQ(trace.kernels.size(), 1u);
    EXPECT_EQ(name_of_op(trace, trace.kernels.get<&Kernel::op>(Id<Kernel>(0))), "aten::mm");
    EXPECT_EQ(trace.text(trace.devices.get<&Device::name>(Id<Device>(0))), "cuda:2");
    EXPECT_EQ(count_of(trace, "no_memory_events"), 1);
}

/// As torch writes a distributed step: its record lies in the op and launches NCCL's kernel.
TEST(ProfilerTrace, ReadsCollectives) {
    const Trace trace = trace_of_events(R"(
{"ph":"X","cat":"cpu_op","name":"c10d::_allgather_base_","pid":9,"tid":9,"ts":100,"dur":90,
 "args":{"External id":1}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":110,"dur":70,
 "args":{"External id":2,"Collective name":"_allgather_base","In msg nelems":10,"Out msg nelems":40,
 "dtype":"BFloat16","Group size":4,"Process Group Name":"3",
 "Process Group Description":"mesh_shard","Process Group Ranks":"[0, 2, 4, 6]"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","pid":9,"tid":9,"ts":120,"dur":2,
 "args":{"External id":2,"correlation":31}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,
 "tid":20,"ts":150,"dur":400,"args":{"device":0,"stream":20,"correlation":31}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":200,"dur":5,
 "args":{"External id":3,"Collective name":"wait","In msg nelems":0,"Out msg nelems":0,
 "dtype":"Byte","Group size":4,"Process Group Name":"3"}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":210,"dur":5,
 "args":{"External id":4,"Collective name":"send","In msg nelems":8,"Out msg nelems":8,
 "dtype":"Float","Group size":4,"Process Group Name":"3","Dst Rank":2}})");
    ASSERT_EQ(trace.collectives.size(), 2U);
    const Collective gather = trace.collectives[Id<Collective>(0)];
    EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
    EXPECT_EQ(gather.dtype, DType::kBFloat16);
    EXPECT_EQ(gather.in_bytes, 20);
    EXPECT_EQ(gather.out_bytes, 80);
    EXPECT_EQ(name_of_op(trace, gather.op), "record_param_comms");
    ASSERT_TRUE(gather.kernel.valid());
    EXPECT_EQ(gather.end_ns - gather.start_ns, 400'000);
    const Collective send = trace.collectives[Id<Collective>(1)];
    EXPECT_EQ(send.kind, CollectiveKind::kSend);
    EXPECT_EQ(send.peer, 2);
    EXPECT_EQ(send.in_bytes, 32);
    EXPECT_EQ(send.out_bytes, 0);
    ASSERT_EQ(trace.communicators.size(), 1U);
    const Communicator group = trace.communicators[send.communicator];
    EXPECT_EQ(trace.text(group.name), "3");
    EXPECT_EQ(trace.text(group.description), "mesh_shard");
    EXPECT_EQ(trace.text(group.ranks), "[0, 2, 4, 6]");
    EXPECT_EQ(group.num_ranks, 4);
}

TEST(ProfilerTrace, ReadsModulesAndStacksOfPython) {
    const Trace trace = trace_of_events(R"(
{"ph":"X","cat":"python_function","name":"train.py(4): main","pid":0,"tid":0,"ts":1,"dur":900},
{"ph":"X","cat":"python_function","name":"nn.Module: Bert_0","pid":0,"tid":0,"ts":5,"dur":800},
{"ph":"X","cat":"python_function","name":"nn.Module: BertLayer_3","pid":0,"tid":0,
 "ts":10,"dur":300},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_21","pid":0,"tid":0,"ts":20,"dur":10},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_22","pid":0,"tid":0,"ts":40,"dur":10},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":7,"tid":7,"ts":21,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":7,"tid":7,"ts":41,"dur":5},
{"ph":"i","s":"t","name":"[memory]","pid":7,"tid":7,"ts":42,
 "args":{"Total Allocated":512,"Bytes":512,"Addr":64,"Device Id":0,"Device Type":1}})");
    ASSERT_EQ(trace.ops.size(), 2u);
    const auto module = trace.ops.get<&Op::module_path>(Id<Op>(1));
    ASSERT_TRUE(module.valid());
    EXPECT_EQ(trace.text(trace.module_paths.get<&ModulePath::path>(module)),
              "Bert.BertLayer.3.Linear_1");
    EXPECT_EQ(trace.module_paths.get<&ModulePath::layer>(module), 3);
    Id<Stack> stack = trace.allocations.get<&Allocation::stack>(Id<Allocation>(0));
    std::vector<std::string> functions;
    for (; stack.valid(); stack = trace.stacks.get<&Stack::parent>(stack)) {
        const auto frame = trace.stacks.get<&Stack::frame>(stack);
        functions.emplace_back(trace.text(trace.frames.get<&Frame::function>(frame)));
    }
    EXPECT_THAT(functions, testing::ElementsAre("nn.Module: Linear_22", "nn.Module: BertLayer_3",
                                                "nn.Module: Bert_0", "main"));
}

TEST(ProfilerTrace, ReadsMetadataOfTheRun) {
    const auto trace = read(
        R"({"deviceProperties": [{"id": 0, "name": "Tesla V100", "totalGlobalMem": 34089730048}],
        "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, "traceEvents": [)" +
        kStep + R"(], "baseTimeNanoseconds": "1719853884000000000"})");
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->run().rank, 1);
    EXPECT_EQ(trace->run().world_size, 2);
    EXPECT_EQ(trace->text(trace->run().device_name), "Tesla V100");
    EXPECT_EQ(trace->run().start_unix_ns, 1'719'853'884'000'000'000 + 100'500);
    EXPECT_EQ(trace->devices.get<&Device::total_bytes>(Id<Device>(0)), 34'089'730'048);
}

TEST(ProfilerTrace, ReadsGzipAndABareListWithoutItsEnd) {
    const auto gzip = read(packed("{\"traceEvents\": [" + kStep + "]}"));
    ASSERT_TRUE(gzip) << gzip.error().message;
    EXPECT_EQ(gzip->ops.size(), 4u);
    const auto bare = read("[" + kStep + ",");
    ASSERT_TRUE(bare) << bare.error().message;
    EXPECT_EQ(bare->ops.size(), 4u);
    EXPECT_EQ(count_of(*bare, "ended_early"), 1);
}

/// Events that are cut by the end of a window of 4 MiB are read whole, wherever the cut lies.
TEST(ProfilerTrace, ReadsEventsAcrossTheWindows) {
    std::string events;
    constexpr int kEvents = 90'000;
    for (int i = 0; i < kEvents; ++i) {
        events += fmt::format(
            R"({{"ph": "X", "cat": "cpu_op", "name": "op \" }} ] {}", "pid": 1, "tid": 1,
"ts": {}, "dur": 1, "args": {{"a": [1, {{"b": "]"}}]}}}},)",
            std::string(static_cast<std::size_t>(i % 97), 'x'), i * 2);
        events += i % 3 == 0 ? "\n  " : "";
    }
    ASSERT_GT(events.size(), std::size_t{12} << 20) << "several windows";
    const Trace trace = trace_of_events(events);
    EXPECT_EQ(trace.ops.size(), static_cast<std::size_t>(kEvents));
    EXPECT_EQ(trace.ops.get<&Op::start_ns>(Id<Op>(kEvents - 1)), int64_t{kEvents - 1} * 2000);
}

/// The second event ends where the first window does, a byte before, or a byte behind.
TEST(ProfilerTrace, ReadsAnEventAtTheEdgeOfAWindow) {
    const std::string event =
        R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1})";
    constexpr std::size_t kWindow = std::size_t{4} << 20;
    for (const std::size_t end : {kWindow - 1, kWindow, kWindow + 1}) {
        const std::string begin = "[" + event + ",";
        const std::string gap(end - begin.size() - event.size(), ' ');
        const auto trace = read(begin + gap + event + "," + event + "]");
        ASSERT_TRUE(trace) << trace.error().message;
        EXPECT_EQ(trace->ops.size(), 3u);
    }
}

/// The path of a module holds those around it, so memory would grow with the square of the depth.
TEST(ProfilerTrace, LimitsTheDepthOfModules) {
    constexpr int kDepth = 2'000;
    std::string events;
    for (int i = 0; i < kDepth; ++i) {
        events += fmt::format(R"({{"ph":"X","cat":"python_function","name":"nn.Module: M_{}",)"
                              R"("pid":1,"tid":1,"ts":{},"dur":{}}},)",
                              i, i, 2 * (kDepth - i) + 10);
    }
    events += fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{},"dur":1}})", kDepth);
    const Trace trace = trace_of_events(events);
    EXPECT_EQ(trace.ops.size(), 1u);
    EXPECT_LE(trace.module_paths.size(), 256u);
}

TEST(ProfilerTrace, MendsControlCharactersAndBadUtf8) {
    const Trace trace = trace_of_events(
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\tb\xff"
        "c\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}");
    ASSERT_EQ(trace.ops.size(), 1u);
    EXPECT_EQ(name_of_op(trace, Id<Op>(0)), "a b?c");
}

TEST(ProfilerTrace, ReadsTimesToTheNanosecond) {
    const Trace trace = trace_of_events(R"(
{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1669783687464181,"dur":0},
{"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":1669783687464181.001,"dur":1.5})");
    ASSERT_EQ(trace.ops.size(), 2u);
    EXPECT_EQ(trace.ops.get<&Op::start_ns>(Id<Op>(1)), 1);
    EXPECT_EQ(trace.ops.get<&Op::end_ns>(Id<Op>(1)), 1501);
}

TEST(ProfilerTrace, SaysWhatIsWrongAndWhere) {
    const std::string whole = "{\"traceEvents\": [" + kStep + "]}";
    EXPECT_THAT(problem(whole.substr(0, whole.size() / 2)),
                testing::AllOf(HasSubstr("a.json cannot be read as a trace"), HasSubstr("byte "),
                               HasSubstr("truncated; copy it again")));
    EXPECT_THAT(problem("{\"a\": 1}"), HasSubstr("no list 'traceEvents'"));
    EXPECT_THAT(problem("[{\"ph\": }]"), HasSubstr("it is not JSON"));
    EXPECT_THAT(problem("[{\\\"ph\": 1}]"), HasSubstr("it is not JSON")) << "a text is not closed";
    EXPECT_THAT(problem("[{\"a\":1} 5]"), HasSubstr("an event is expected here"));
    EXPECT_THAT(problem("[{\"ph\": \"X\", \"ts\": 1}]"), HasSubstr("holds no ops, kernels"));
    const std::string gzip = packed(whole);
    EXPECT_THAT(problem(gzip.substr(0, gzip.size() - 20)), HasSubstr("truncated gzip file"));
    EXPECT_THAT(problem(R"([{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1},
        {"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":9e12}])"),
                HasSubstr("a time in it is wrong"));
}

/// 20 MB of names in 100 kB: a packed file may unpack to more than any memory.
TEST(ProfilerTrace, StopsWhenItsEventsTakeMoreThanTheirRoom) {
    std::string events;
    for (int i = 0; i < 40'000; ++i) {
        events += fmt::format(
            R"({}{{"ph":"X","cat":"cpu_op","name":"{}{}","pid":1,"tid":1,"ts":{},"dur":1}})",
            i == 0 ? "" : ",", i, std::string(400, 'x'), i);
    }
    const TemporaryFolder folder;
    std::ofstream(folder / "a.json.gz", std::ios::binary)
        << packed("{\"traceEvents\": [" + events + "]}");
    StringTable strings;
    const auto stopped = kineto::read_events(folder / "a.json.gz", {}, strings, 1 << 20);
    ASSERT_FALSE(stopped.has_value());
    EXPECT_THAT(stopped.error().message, testing::AllOf(HasSubstr("events of more than 1.00 MiB"),
                                                        HasSubstr("record fewer steps")));
    EXPECT_TRUE(kineto::read_events(folder / "a.json.gz", {}, strings, 1 << 30).has_value());
}

TEST(ProfilerTrace, TruncatedFilesAreRefusedAtEveryLength) {
    const std::string whole = "{\"traceEvents\": [" + kStep + "]}";
    for (std::size_t size = 20; size < whole.size(); size += 7) {
        const std::string said = problem(whole.substr(0, size));
        EXPECT_THAT(said, HasSubstr("byte ")) << size;
        EXPECT_TRUE(said.ends_with('.')) << said;
    }
}

class SampleProfilerTraces : public testing::Test {
protected:
    static Trace read_sample(const char* name) {
        const auto file = tests::samples_folder() / name;
        if (!std::filesystem::exists(file)) return Trace();
        auto trace = open_trace(file);
        EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
        return trace ? std::move(*trace) : Trace();
    }
    static constexpr const char* kSkip =
        "no traces: set TEMPOSCOPE_SAMPLES to the folder of real captures";
};

/// The counts are those of the file's events by their category.
TEST_F(SampleProfilerTraces, OfTwoV100) {
    const Trace trace = read_sample("kineto_v100_memory.json.gz");
    if (trace.runs.empty()) GTEST_SKIP() << kSkip;
    EXPECT_EQ(trace.ops.size(), 56'680u);
    EXPECT_EQ(trace.kernels.size(), 19'370u);
    EXPECT_EQ(trace.memcpys.size(), 2'040u + 880u);
    EXPECT_EQ(trace.apis.size(), 42'373u);
    EXPECT_EQ(trace.steps.size(), 5u);
    EXPECT_EQ(trace.phases.size(), 15u);
    EXPECT_EQ(trace.run().rank, 1);
    EXPECT_EQ(count_of(trace, "unmatched_totals"), 0)
        << "the running sum is the total at each of the 28,010 events";
    std::size_t without_op = 0;
    for (const Id<Op> op : trace.kernels.column<&Kernel::op>()) without_op += op.valid() ? 0 : 1;
    EXPECT_EQ(without_op, 0u);
}

TEST_F(SampleProfilerTraces, OfBertOnAnH100) {
    const Trace trace = read_sample("kineto_bert_small_h100.json.gz");
    if (trace.runs.empty()) GTEST_SKIP() << kSkip;
    EXPECT_EQ(trace.ops.size(), 479u);
    EXPECT_EQ(trace.kernels.size(), 60u);
    EXPECT_EQ(trace.steps.size(), 1u);
    EXPECT_EQ(count_of(trace, "unmatched_totals"), 0);
    int64_t layers = 0;
    for (const int64_t layer : trace.module_paths.column<&ModulePath::layer>()) {
        layers = std::max(layers, layer + 1);
    }
    EXPECT_EQ(layers, 4) << "BERT-small has four";
    const MemoryCurve curve(trace);
    EXPECT_EQ(curve.at(curve.end_ns()).allocated_bytes, 91'360'768)
        << "the total of the last event: all 118 blocks are freed again";
}

TEST_F(SampleProfilerTraces, OfACpu) {
    const Trace trace = read_sample("kineto_cpu_only.json.gz");
    if (trace.runs.empty()) GTEST_SKIP() << kSkip;
    EXPECT_EQ(trace.ops.size(), 4u);
    EXPECT_EQ(trace.run().world_size, 300);
}

}  // namespace
}  // namespace profiler
