#include "profiler/capture/torch_adapter/cupti.h"

#include "tests/profiler/capture/cuda/activity_buffers.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

using tests::ActivityBuffer;

ActivityRecords parse(std::span<uint8_t> bytes) {
    ActivityRecords records;
    parse_activity_buffer(bytes, tests::next_activity_record(), records);
    return records;
}

TEST(SyntheticActivityParser, ReadsAKernelWithAllThatTheTraceKeeps) {
    ActivityBuffer buffer;
    buffer.add(tests::kernel(100, 250, 9));
    const ActivityRecords records = parse(buffer.bytes());
    ASSERT_EQ(records.kernels.size(), 1U);
    const KernelRecord& kernel = records.kernels[0];
    EXPECT_EQ(kernel.name, "_Z4gelumPf");
    EXPECT_EQ(kernel.start_ns, 100U);
    EXPECT_EQ(kernel.end_ns, 250U);
    EXPECT_EQ(kernel.correlation, 9U);
    EXPECT_EQ(kernel.context, 1U);
    EXPECT_EQ(kernel.stream, 7U);
    EXPECT_EQ(kernel.grid.x, 96);
    EXPECT_EQ(kernel.block.x, 256);
    EXPECT_EQ(kernel.registers_per_thread, 40);
    EXPECT_EQ(kernel.shared_memory_bytes, 1024 + 49152);
    EXPECT_EQ(records.broken_buffers, 0);
}

TEST(SyntheticActivityParser, ReadsEachKindThatACaptureEnables) {
    CUpti_ActivityMemset4 memset{};
    memset.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    memset.bytes = 64;
    CUpti_ActivityMemcpyPtoP4 peer{};
    peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    peer.bytes = 128;
    CUpti_ActivityOverhead3 overhead{};
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead.start = 5;
    overhead.end = 8;
    ActivityBuffer buffer;
    buffer.add(tests::op_correlation(3, 12))
        .add(tests::api(CUPTI_ACTIVITY_KIND_RUNTIME, 10, 20, 3, 4711))
        .add(tests::api(CUPTI_ACTIVITY_KIND_DRIVER, 11, 19, 3, 4711))
        .add(tests::memcpy_record(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 30, 4096))
        .add(memset)
        .add(peer)
        .add(tests::memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 0x7000, 2 << 20, 33))
        .add(tests::memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, 0x7000, 2 << 20, 44))
        .add(overhead);
    const ActivityRecords records = parse(buffer.bytes());
    ASSERT_EQ(records.op_correlations.size(), 1U);
    EXPECT_EQ(records.op_correlations[0].external_id, 12U);
    ASSERT_EQ(records.apis.size(), 2U);
    EXPECT_EQ(records.apis[0].domain, ApiDomain::kRuntime);
    EXPECT_EQ(records.apis[0].thread, 4711U);
    EXPECT_EQ(records.apis[1].domain, ApiDomain::kDriver);
    ASSERT_EQ(records.copies.size(), 3U);
    EXPECT_EQ(records.copies[0].kind, CopyKind::kHostToDevice);
    EXPECT_EQ(records.copies[0].size_bytes, 4096);
    EXPECT_EQ(records.copies[1].kind, CopyKind::kMemset);
    EXPECT_EQ(records.copies[2].kind, CopyKind::kPeerToPeer);
    ASSERT_EQ(records.memory.size(), 2U);
    EXPECT_FALSE(records.memory[0].is_release);
    EXPECT_TRUE(records.memory[0].is_device_memory);
    EXPECT_EQ(records.memory[0].library, "libcublasLt.so.13");
    EXPECT_TRUE(records.memory[1].is_release);
    ASSERT_EQ(records.overheads.size(), 1U);
    EXPECT_EQ(records.overheads[0].name, "CUPTI buffer flush");
    EXPECT_EQ(records.unknown_records, 0);
    EXPECT_EQ(records.broken_buffers, 0);
}

TEST(SyntheticActivityParser, KeepsWhatStandsBeforeACut) {
    ActivityBuffer buffer;
    buffer.add(tests::kernel(1, 2, 1)).add(tests::kernel(3, 4, 2)).add(tests::kernel(5, 6, 3));
    const std::span<uint8_t> whole = buffer.bytes();
    for (std::size_t bytes = 0; bytes <= whole.size(); bytes += 8) {
        const ActivityRecords records = parse(whole.first(bytes));
        EXPECT_EQ(records.kernels.size(), bytes / sizeof(CUpti_ActivityKernel10)) << bytes;
        const bool is_cut = bytes % sizeof(CUpti_ActivityKernel10) != 0;
        EXPECT_EQ(records.broken_buffers, is_cut ? 1 : 0) << bytes;
    }
}

TEST(SyntheticActivityParser, StopsAtAKindThatCuptiDoesNotKnow) {
    CUpti_ActivityKernel10 stranger = tests::kernel(3, 4, 2);
    stranger.kind = static_cast<CUpti_ActivityKind>(9999);
    ActivityBuffer buffer;
    buffer.add(tests::kernel(1, 2, 1)).add(stranger).add(tests::kernel(5, 6, 3));
    const ActivityRecords records = parse(buffer.bytes());
    EXPECT_EQ(records.kernels.size(), 1U);
    EXPECT_EQ(records.broken_buffers, 1);
}

TEST(SyntheticActivityParser, CountsAndPassesOverKindsThatWereNotAskedFor) {
    CUpti_ActivityMarker2 marker{};
    marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
    CUpti_ActivityGraphTrace2 graph{};
    graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    ActivityBuffer buffer;
    buffer.add(marker).add(tests::kernel(1, 2, 1)).add(graph);
    const ActivityRecords records = parse(buffer.bytes());
    EXPECT_EQ(records.kernels.size(), 1U);
    EXPECT_EQ(records.unknown_records, 2);
    EXPECT_EQ(records.broken_buffers, 0);
}

TEST(SyntheticActivityParser, ReadsTheOrderOfStreams) {
    CUpti_ActivityCudaEvent2 event{};
    event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    event.correlationId = 5;
    event.streamId = 7;
    event.cudaEventSyncId = 90;
    CUpti_ActivitySynchronization2 wait{};
    wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    wait.correlationId = 6;
    wait.streamId = 8;
    wait.cudaEventSyncId = 90;
    CUpti_ActivitySynchronization2 of_host = wait;
    of_host.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    ActivityBuffer buffer;
    buffer.add(event).add(wait).add(of_host);
    const ActivityRecords records = parse(buffer.bytes());
    ASSERT_EQ(records.events.size(), 1U);
    EXPECT_EQ(records.events[0].stream, 7U);
    EXPECT_EQ(records.events[0].correlation, 5U);
    EXPECT_EQ(records.events[0].recording, 90U);
    ASSERT_EQ(records.stream_waits.size(), 1U);
    EXPECT_EQ(records.stream_waits[0].stream, 8U);
    EXPECT_EQ(records.stream_waits[0].correlation, 6U);
    EXPECT_EQ(records.stream_waits[0].recording, 90U);
    EXPECT_EQ(records.unknown_records, 0);
}

TEST(SyntheticActivityParser, LeavesAnotherClientsExternalIdsAlone) {
    CUpti_ActivityExternalCorrelation other = tests::op_correlation(3, 12);
    other.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    ActivityBuffer buffer;
    buffer.add(other).add(tests::op_correlation(4, 13));
    const ActivityRecords records = parse(buffer.bytes());
    ASSERT_EQ(records.op_correlations.size(), 1U);
    EXPECT_EQ(records.op_correlations[0].external_id, 13U);
}

TEST(SyntheticActivityParser, AKernelWithoutANameIsNoCrash) {
    ActivityBuffer buffer;
    buffer.add(tests::kernel(1, 2, 1, nullptr));
    EXPECT_EQ(parse(buffer.bytes()).kernels.at(0).name, "");
}

}  // namespace
}  // namespace profiler
