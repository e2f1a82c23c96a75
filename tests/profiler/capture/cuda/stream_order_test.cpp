#include "profiler/capture/cuda/stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

/// Letters are streams. Calls get their correlation ids in the order of the test's lines.
namespace profiler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

enum StreamNumber : uint32_t { A = 7, B = 8, C = 9 };

class StreamWaits : public testing::Test {
protected:
    int64_t launch(StreamNumber stream) {
        const Id<Kernel> kernel = trace_.kernels.append({});
        launches_.push_back({++last_call_, stream, kernel, {}});
        return kernel.value;
    }
    Id<Memcpy> copy(StreamNumber stream) {
        const Id<Memcpy> memcpy = trace_.memcpys.append({});
        launches_.push_back({++last_call_, stream, {}, memcpy});
        return memcpy;
    }
    uint64_t record(StreamNumber stream) {
        events_.push_back({stream, ++last_call_, ++last_recording_});
        return last_recording_;
    }
    void wait(StreamNumber stream, uint64_t recording) {
        waits_.push_back({stream, ++last_call_, recording});
    }
    /// Hands over what has been called so far.
    void add() {
        order_.add(std::exchange(launches_, {}), std::exchange(events_, {}),
                   std::exchange(waits_, {}));
    }
    /// (kernel, awaited kernel) of all rows.
    std::vector<std::pair<int64_t, int64_t>> rows() {
        add();
        std::vector<std::pair<int64_t, int64_t>> rows;
        for (std::size_t i = 0; i < trace_.stream_waits.size(); ++i) {
            const StreamWait row = trace_.stream_waits[Id<StreamWait>(i)];
            rows.emplace_back(row.kernel.value, row.awaited_kernel.value);
        }
        return rows;
    }

    Trace trace_;
    StreamOrder order_{trace_};
    std::vector<StreamOrder::Launch> launches_;
    std::vector<EventRecord> events_;
    std::vector<StreamWaitRecord> waits_;
    uint32_t last_call_ = 0;
    uint64_t last_recording_ = 0;
};

TEST_F(StreamWaits, TheFirstKernelAfterAWaitHasThem) {
    const auto first = launch(A);
    const auto recording = record(A);
    launch(A);  // after the event: not awaited
    launch(B);
    wait(B, recording);
    const auto second = launch(B);
    launch(B);
    EXPECT_THAT(rows(), ElementsAre(Pair(second, first)));
}

TEST_F(StreamWaits, AnEventStandsForWhatItsStreamWaitsForToo) {
    const auto on_a = launch(A);
    wait(B, record(A));
    const auto recording = record(B);  // no kernel of B lies between
    wait(C, recording);
    const auto on_c = launch(C);
    EXPECT_THAT(rows(), ElementsAre(Pair(on_c, on_a)));
}

TEST_F(StreamWaits, WhatIsKnownHasNoRow) {
    launch(A);
    const auto early = record(A);
    const auto on_a = launch(A);
    wait(B, record(A));
    const auto on_b = launch(B);
    wait(B, early);
    launch(B);
    wait(A, record(A));  // of itself
    launch(A);
    EXPECT_THAT(rows(), ElementsAre(Pair(on_b, on_a)));
}

TEST_F(StreamWaits, AKernelMayWaitForSeveral) {
    const auto on_a = launch(A), on_b = launch(B);
    wait(C, record(A));
    wait(C, record(B));
    const auto on_c = launch(C);
    EXPECT_THAT(rows(), UnorderedElementsAre(Pair(on_c, on_a), Pair(on_c, on_b)));
}

/// As DDP copies a bucket that has been reduced.
TEST_F(StreamWaits, CopiesWaitAndAreAwaited) {
    const auto on_a = launch(A);
    wait(B, record(A));
    const auto copied = copy(B);
    wait(C, record(B));
    const auto on_c = launch(C);
    add();
    ASSERT_EQ(trace_.stream_waits.size(), 2U);
    const StreamWait first = trace_.stream_waits[Id<StreamWait>(0)];
    EXPECT_FALSE(first.kernel.valid());
    EXPECT_EQ(first.memcpy, copied);
    EXPECT_EQ(first.awaited_kernel.value, on_a);
    const StreamWait second = trace_.stream_waits[Id<StreamWait>(1)];
    EXPECT_EQ(second.kernel.value, on_c);
    EXPECT_FALSE(second.awaited_kernel.valid());
    EXPECT_EQ(second.awaited_memcpy, copied);
}

TEST_F(StreamWaits, CallsOfALaterReadingGoOn) {
    const auto on_a = launch(A);
    const auto recording = record(A);
    add();
    wait(B, recording);
    add();
    const auto on_b = launch(B);
    EXPECT_THAT(rows(), ElementsAre(Pair(on_b, on_a)));
}

TEST_F(StreamWaits, AnEventFromBeforeTheRecordingSaysNothing) {
    launch(A);
    wait(B, 77);
    launch(B);
    EXPECT_THAT(rows(), IsEmpty());
}

}  // namespace
}  // namespace profiler
