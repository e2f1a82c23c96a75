#include "profiler/allocator/request_stream.h"

#include "profiler/formats/snapshot/recorded_trace.h"
#include "tests/profiler/allocator/recorder.h"

#include <gtest/gtest.h>

#include <set>

namespace profiler {
namespace {

TEST(RequestStream, OfATraceFollowsTheAllocatorsOrder) {
    Trace trace;
    const auto cpu = trace.devices.append({.name = trace.strings.intern("cpu")});
    const auto gpu = trace.devices.append({.name = trace.strings.intern("cuda:0")});
    const auto side = trace.streams.append({.device = gpu, .handle = 7});
    trace.allocations.append({.device = gpu,
                              .requested_bytes = 200,
                              .alloc_event = 4,
                              .free_requested_event = 5,
                              .free_completed_event = 9});
    trace.allocations.append({.device = gpu,
                              .stream = side,
                              .requested_bytes = 100,
                              .alloc_event = 1,
                              .free_requested_event = 6,
                              .free_completed_event = 7});
    trace.allocations.append({.device = gpu, .requested_bytes = 0, .alloc_event = 2});
    trace.allocations.append({.device = cpu, .requested_bytes = 300, .alloc_event = 3});

    std::vector<Id<Allocation>> rows{Id<Allocation>(3)};  // of another trace
    const RequestStream stream = request_stream_of(trace, gpu, &rows).value();
    ASSERT_EQ(stream.requests.size(), 5u);
    EXPECT_EQ(stream.num_allocations, 2u) << "none without bytes, none of another device";
    EXPECT_EQ(rows, (std::vector{Id<Allocation>(std::size_t{1}), Id<Allocation>(std::size_t{0})}));
    EXPECT_EQ(stream.requests[0].size_bytes, 100);
    EXPECT_EQ(stream.requests[0].stream, 7);
    EXPECT_EQ(stream.requests[1].size_bytes, 200);
    EXPECT_EQ(stream.requests[2].kind, AllocatorRequestKind::kFreeRequested)
        << "completed only later";
    EXPECT_EQ(stream.requests[3].kind, AllocatorRequestKind::kFree);
    EXPECT_EQ(stream.requests[3].allocation, 0u);
    EXPECT_EQ(stream.requests[4].kind, AllocatorRequestKind::kFreeCompleted);
}

TEST(RequestStream, RefusesATraceThatFreesBeforeItAllocates) {
    Trace trace;
    trace.allocations.append({.requested_bytes = 100, .alloc_event = 0});
    trace.allocations.append({.requested_bytes = 200,
                              .alloc_event = 5,
                              .free_requested_event = 1,
                              .free_completed_event = 2});
    const auto stream = request_stream_of(trace, {});
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().message,
              "Allocation 1 is freed at event 1, which is impossible then: the trace is damaged, "
              "capture it again.");
}

TEST(StreamToFailure, EndsWithTheRequestThatWasRefused) {
    const Trace trace = trace_of({tests::out_of_memory_recording()}).value();
    std::vector<Id<Allocation>> rows;
    const RequestStream stream = stream_to_failure(trace, profiled_device(trace), &rows).value();
    EXPECT_TRUE(stream.ends_refused);
    EXPECT_EQ(stream.recorded_limit_bytes, 96 * kMiB);
    EXPECT_EQ(stream.requests.back().size_bytes, 18 * kMiB);
    EXPECT_EQ(stream.num_allocations, 5u);
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_TRUE(rows[3].valid());
    EXPECT_FALSE(rows[4].valid()) << "it has no row of `allocation`";
    EXPECT_TRUE(stream.start.segments.empty()) << "the recording begins with the first allocation";
}

TEST(StreamToFailure, LeavesOutWhatComesAfterIt) {
    Trace trace;
    const auto device = trace.devices.append({.name = trace.strings.intern("cuda:0")});
    trace.allocations.append({.device = device,
                              .requested_bytes = 100,
                              .alloc_event = 1,
                              .free_requested_event = 5,
                              .free_completed_event = 6});
    trace.failures.append(
        {.device = device, .event = 2, .requested_bytes = 300, .outcome = FailureOutcome::kCaught});
    EXPECT_EQ(stream_to_failure(trace, device)->requests.size(), 2u) << "the program went on";
    trace.failures.append({.device = device, .event = 4, .requested_bytes = 200});
    const RequestStream stream = stream_to_failure(trace, device).value();
    ASSERT_EQ(stream.requests.size(), 2u) << "the block was freed when the program ended";
    EXPECT_EQ(stream.requests[1].size_bytes, 200);
    EXPECT_FALSE(stream.recorded_limit_bytes) << "not known";
    trace.failures.append({.device = device, .event = 3});
    EXPECT_FALSE(stream_to_failure(trace, device)->ends_refused) << "no request explains this one";
}

TEST(StreamToFailure, BeginsWithWhatTheAllocatorHeld) {
    tests::Recorder recorder({});
    const auto a = recorder.allocate(3 * kMiB);
    recorder.allocate(1000);
    const std::size_t cut = recorder.num_events();
    recorder.free(a);
    recorder.allocate(5 * kMiB);
    const Trace trace = trace_of({recorder.recording(cut)}).value();
    const RequestStream stream = stream_to_failure(trace, profiled_device(trace)).value();
    EXPECT_FALSE(stream.ends_refused);
    std::multiset<int64_t> first{stream.requests[0].size_bytes, stream.requests[1].size_bytes};
    EXPECT_EQ(first, (std::multiset<int64_t>{1000, 3 * kMiB}));
    ASSERT_EQ(stream.requests.size(), 4u);
    EXPECT_EQ(stream.requests[2].kind, AllocatorRequestKind::kFree);
    EXPECT_EQ(stream.requests[3].size_bytes, 5 * kMiB);
    EXPECT_EQ(stream.start.segments.size(), 2u);
    EXPECT_EQ(stream.start.allocations.size(), 2u);
}

}  // namespace
}  // namespace profiler
