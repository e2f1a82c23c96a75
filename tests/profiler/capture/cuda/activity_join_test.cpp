#include "profiler/capture/cuda/activity_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace profiler {
namespace {

constexpr int64_t kClockOffset = -1'000'000;  // time 0 of the trace is 1,000,000 on CUPTI's clock
constexpr uint32_t kMain = 100;               // as gettid
constexpr uint32_t kBackward = 101;

/// A trace with two threads: linear [100, 200] around addmm [120, 180] on the main one, and a
/// backward op [300, 400] on the other.
struct Fixture {
    Trace trace;
    Id<Op> linear, addmm, backward;

    Fixture() {
        const Id<Thread> main = trace.threads.append({.system_id = kMain});
        const Id<Thread> engine = trace.threads.append({.system_id = kBackward});
        linear = trace.ops.append({.thread = main, .start_ns = 100, .end_ns = 200});
        addmm =
            trace.ops.append({.thread = main, .parent = linear, .start_ns = 120, .end_ns = 180});
        backward = trace.ops.append({.thread = engine, .start_ns = 300, .end_ns = 400});
    }

    JoinOptions options() const {
        return {.clock_offset_ns = kClockOffset,
                .stream_handle = [](uint32_t, uint32_t stream) { return stream == 7 ? 0 : stream; },
                .api_name =
                    [](ApiDomain domain, uint32_t function) {
                        return std::string(domain == ApiDomain::kRuntime ? "cuda" : "cu") +
                               std::to_string(function);
                    }};
    }
    JoinCounts join(ActivityRecords records) {
        StreamRows streams(trace, trace.devices.append({}));
        ActivityJoin activity(trace, streams, options());
        activity.add(std::move(records));
        return activity.counts();
    }
};

uint64_t cupti(int64_t trace_ns) { return static_cast<uint64_t>(trace_ns - kClockOffset); }

KernelRecord kernel(int64_t start_ns, uint32_t correlation) {
    return {.name = "_ZN5tempo4geluEPf",
            .start_ns = cupti(start_ns),
            .end_ns = cupti(start_ns + 10),
            .context = 1,
            .stream = 7,
            .correlation = correlation};
}

ApiRecord launch(int64_t start_ns, uint32_t correlation, uint32_t thread) {
    return {.function = 211,
            .thread = thread,
            .correlation = correlation,
            .start_ns = cupti(start_ns),
            .end_ns = cupti(start_ns + 5)};
}

TEST(SyntheticActivityJoin, AKernelBelongsToTheOpWhoseIdWasPushed) {
    Fixture f;
    const JoinCounts counts = f.join({.kernels = {kernel(500, 9)},
                                      .apis = {launch(130, 9, kMain)},
                                      .op_correlations = {{9, external_id_of(f.linear)}}});
    ASSERT_EQ(f.trace.kernels.size(), 1U);
    const Kernel row = f.trace.kernels[Id<Kernel>(0)];
    EXPECT_EQ(row.op, f.linear);  // not addmm, in which the call was made
    EXPECT_EQ(row.start_ns, 500);
    EXPECT_EQ(row.end_ns, 510);
    EXPECT_EQ(f.trace.text(row.name), "tempo::gelu(float*)");
    EXPECT_EQ(f.trace.streams.get<&Stream::handle>(row.stream), 0);
    EXPECT_EQ(f.trace.apis[Id<Api>(0)].op, f.linear);
    EXPECT_EQ(counts.without_op, 0);
}

TEST(SyntheticActivityJoin, WithoutAnIdTheInnermostOpOfTheCallsThreadIsIt) {
    Fixture f;
    const JoinCounts counts =
        f.join({.kernels = {kernel(500, 1), kernel(520, 2), kernel(540, 3), kernel(560, 4),
                            kernel(580, 5)},
                .apis = {launch(130, 1, kMain), launch(190, 2, kMain), launch(350, 3, kBackward),
                         launch(350, 4, kMain), launch(150, 5, kBackward)}});
    const auto ops = f.trace.kernels.column<&Kernel::op>();
    ASSERT_EQ(ops.size(), 5U);
    EXPECT_EQ(ops[0], f.addmm);
    EXPECT_EQ(ops[1], f.linear);  // after addmm ended
    EXPECT_EQ(ops[2], f.backward);
    EXPECT_FALSE(ops[3].valid());  // no op of the main thread ran then
    EXPECT_FALSE(ops[4].valid());  // none of the other thread either
    EXPECT_EQ(counts.without_op, 2);
}

TEST(SyntheticActivityJoin, RowsComeInTheOrderOfTimeWhateverTheOrderOfRecords) {
    Fixture f;
    ActivityRecords records;
    for (uint32_t i = 0; i < 1000; ++i) {
        records.kernels.push_back(kernel(1000 + 7 * i, i));
        records.op_correlations.push_back({i, external_id_of(Id<Op>(i % 3))});
    }
    std::mt19937 random(1);
    std::shuffle(records.kernels.begin(), records.kernels.end(), random);
    std::shuffle(records.op_correlations.begin(), records.op_correlations.end(), random);
    f.join(std::move(records));
    const auto starts = f.trace.kernels.column<&Kernel::start_ns>();
    EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
    for (std::size_t i = 0; i < f.trace.kernels.size(); ++i) {
        const Kernel row = f.trace.kernels[Id<Kernel>(i)];
        EXPECT_EQ(row.op.index(), static_cast<std::size_t>(row.correlation % 3));
    }
}

TEST(SyntheticActivityJoin, AKernelMayComeInALaterBufferThanItsCall) {
    Fixture f;
    StreamRows streams(f.trace, {});
    ActivityJoin join(f.trace, streams, f.options());
    join.add({.op_correlations = {{9, external_id_of(f.addmm)}}});
    const Id<Op> late = f.trace.ops.append({.start_ns = 600, .end_ns = 700});
    join.add({.kernels = {kernel(650, 8), kernel(500, 9)},
              .op_correlations = {{8, external_id_of(late)}}});
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(0)].op, f.addmm);
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(1)].op, late);
}

KernelRecord nccl_kernel(int64_t start_ns, uint32_t correlation) {
    KernelRecord record = kernel(start_ns, correlation);
    record.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    return record;
}

TEST(SyntheticActivityJoin, ACollectiveHasTheKernelThatAnOpInItLaunched) {
    Fixture f;
    const Id<Collective> row = f.trace.collectives.append({.op = f.linear, .start_ns = 100});
    f.join({.kernels = {kernel(490, 8), nccl_kernel(500, 9)},
            .op_correlations = {{8, external_id_of(f.addmm)}, {9, external_id_of(f.addmm)}}});
    const Collective collective = f.trace.collectives[row];
    EXPECT_EQ(collective.kernel, Id<Kernel>(1));  // the first is a copy into a buffer, say
    EXPECT_EQ(collective.start_ns, 500);
    EXPECT_EQ(collective.end_ns, 510);
}

TEST(SyntheticActivityJoin, AKernelOfNcclThatNoCollectiveLaunchedStaysAlone) {
    Fixture f;
    const Id<Collective> row = f.trace.collectives.append({.op = f.linear, .start_ns = 100});
    f.join(
        {.kernels = {nccl_kernel(500, 9)}, .op_correlations = {{9, external_id_of(f.backward)}}});
    EXPECT_FALSE(f.trace.collectives.get<&Collective::kernel>(row).valid());
    EXPECT_EQ(f.trace.collectives.get<&Collective::start_ns>(row), 100);
}

TEST(SyntheticActivityJoin, ACollectiveGetsItsKernelWhenTheCallComesLater) {
    Fixture f;
    const Id<Collective> row = f.trace.collectives.append({.op = f.linear, .start_ns = 100});
    StreamRows streams(f.trace, {});
    ActivityJoin join(f.trace, streams, f.options());
    join.add({.kernels = {nccl_kernel(500, 9)}});
    join.add({.op_correlations = {{9, external_id_of(f.linear)}}});
    EXPECT_EQ(f.trace.collectives.get<&Collective::kernel>(row), Id<Kernel>(0));
    EXPECT_EQ(f.trace.collectives.get<&Collective::end_ns>(row), 510);
}

TEST(SyntheticActivityJoin, IdsThatNoOpHasAreNoOp) {
    Fixture f;
    const JoinCounts counts =
        f.join({.kernels = {kernel(500, 1), kernel(520, 2)}, .op_correlations = {{1, 0}, {2, 99}}});
    EXPECT_EQ(counts.without_op, 2);
}

TEST(SyntheticActivityJoin, ATimeThatCuptiCouldNotTakeIsMinusOne) {
    Fixture f;
    KernelRecord timeless = kernel(500, 1);
    timeless.start_ns = timeless.end_ns = 0;
    const JoinCounts counts = f.join({.kernels = {timeless}});
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(0)].start_ns, -1);
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(0)].end_ns, -1);
    EXPECT_EQ(counts.without_time, 1);
}

TEST(SyntheticActivityJoin, ADriverCallInsideARuntimeCallIsNoRowOfItsOwn) {
    Fixture f;
    ApiRecord inner = launch(131, 9, kMain);
    inner.domain = ApiDomain::kDriver;
    ApiRecord alone = launch(140, 10, kMain);
    alone.domain = ApiDomain::kDriver;
    f.join({.apis = {inner, alone, launch(130, 9, kMain)}});
    ASSERT_EQ(f.trace.apis.size(), 2U);
    EXPECT_EQ(f.trace.text(f.trace.apis[Id<Api>(0)].name), "cuda211");
    EXPECT_EQ(f.trace.text(f.trace.apis[Id<Api>(1)].name), "cu211");
    EXPECT_EQ(f.trace.apis[Id<Api>(1)].thread, Id<Thread>(0));
}

TEST(SyntheticActivityJoin, CopiesAndMemsetsHaveTheirKindBytesAndOp) {
    Fixture f;
    CopyRecord copy{.kind = CopyKind::kHostToDevice,
                    .start_ns = cupti(500),
                    .end_ns = cupti(510),
                    .stream = 13,
                    .correlation = 4,
                    .size_bytes = 4096};
    CopyRecord memset = copy;
    memset.kind = CopyKind::kMemset;
    memset.start_ns = cupti(400);
    f.join({.copies = {copy, memset}, .op_correlations = {{4, external_id_of(f.addmm)}}});
    ASSERT_EQ(f.trace.memcpys.size(), 2U);
    EXPECT_EQ(f.trace.text(f.trace.memcpys[Id<Memcpy>(0)].kind), "memset");
    const Memcpy row = f.trace.memcpys[Id<Memcpy>(1)];
    EXPECT_EQ(f.trace.text(row.kind), "host_to_device");
    EXPECT_EQ(row.size_bytes, 4096);
    EXPECT_EQ(row.op, f.addmm);
    EXPECT_EQ(f.trace.streams.get<&Stream::handle>(row.stream), 13);
}

TEST(SyntheticActivityJoin, OverheadIsAnAnnotation) {
    Fixture f;
    f.join({.overheads = {
                {.name = "CUPTI buffer flush", .start_ns = cupti(50), .end_ns = cupti(80)}}});
    const Annotation row = f.trace.annotations[Id<Annotation>(0)];
    EXPECT_EQ(f.trace.text(row.text), "CUPTI buffer flush");
    EXPECT_EQ(row.start_ns, 50);
    EXPECT_EQ(row.end_ns, 80);
}

TEST(SyntheticActivityJoin, MemoryOfTheDriverIsAMarkWithTheLibraryThatTookIt) {
    Fixture f;
    f.join({.memory = {{.is_release = true,
                        .is_device_memory = true,
                        .address = 0x7000,
                        .size_bytes = 2 << 20,
                        .time_ns = cupti(90)},
                       {.is_device_memory = true,
                        .address = 0x7000,
                        .size_bytes = 2 << 20,
                        .time_ns = cupti(60),
                        .library = "/opt/torch/lib/libcublasLt.so.13"},
                       {.size_bytes = 512, .time_ns = cupti(95), .library = "libcudart.so.13"}}});
    std::vector<std::string> marks;
    for (std::size_t i = 0; i < f.trace.annotations.size(); ++i) {
        const Annotation row = f.trace.annotations[Id<Annotation>(i)];
        EXPECT_EQ(row.start_ns, row.end_ns);
        marks.push_back(fmt::format("{} {}", row.start_ns, f.trace.text(row.text)));
    }
    EXPECT_EQ(marks, (std::vector<std::string>{
                         "60 driver: 2.00 MiB of device memory taken by libcublasLt.so.13",
                         "90 driver: 2.00 MiB of device memory given back",
                         "95 driver: 512 B of other memory taken by libcudart.so.13"}));
}

TEST(SyntheticActivityJoin, JoinsAMillionRecords) {
    Fixture f;
    constexpr uint32_t kCount = 250'000;
    ActivityRecords records;
    for (uint32_t i = 0; i < kCount; ++i) {
        records.kernels.push_back(kernel(1000 + 2 * i, i));
        records.apis.push_back(launch(130, i, kMain));
        ApiRecord inner = launch(131, i, kMain);
        inner.domain = ApiDomain::kDriver;
        records.apis.push_back(inner);
        if (i % 2 == 0) records.op_correlations.push_back({i, external_id_of(f.linear)});
    }
    const JoinCounts counts = f.join(std::move(records));
    EXPECT_EQ(f.trace.kernels.size(), kCount);
    EXPECT_EQ(f.trace.apis.size(), kCount);
    EXPECT_EQ(counts.without_op, 0);
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(2)].op, f.linear);
    EXPECT_EQ(f.trace.kernels[Id<Kernel>(3)].op, f.addmm);
}

}  // namespace
}  // namespace profiler
