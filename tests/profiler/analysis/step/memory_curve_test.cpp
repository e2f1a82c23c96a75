#include "profiler/analysis/step/memory_curve.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace tests;

constexpr int64_t kTick = TraceBuilder::kTickNs;

int64_t highest(const std::vector<CurveBin>& bins) {
    int64_t most = 0;
    for (const auto& bin : bins) most = std::max(most, bin.allocated_bytes);
    return most;
}

int64_t sum(const CategoryBytes& by_category) {
    int64_t total = 0;
    for (const int64_t bytes : by_category) total += bytes;
    return total;
}

/// A long trace with short spikes on top of a slow wave.
Trace make_wave(int allocations) {
    std::mt19937 random(3);
    TraceBuilder b;
    std::vector<Id<Allocation>> live;
    for (int i = 0; i < allocations; ++i) {
        const Category category = static_cast<Category>(random() % kCategoryNames.size());
        live.push_back(
            b.allocate({.bytes = static_cast<int64_t>(random() % 4096), .category = category}));
        if (live.size() > 100 || (random() % 3 == 0)) {
            const std::size_t which = random() % live.size();
            b.free(live[which]);
            live[which] = live.back();
            live.pop_back();
        }
        if (random() % 1000 == 0) b.wait(50 * kTick);
    }
    return b.finish();
}

TEST(MemoryCurve, KeepsEveryPeakAtAnyWidth) {
    const Trace trace = make_wave(20'000);
    const MemoryCurve curve(trace);
    const int64_t peak = find_peak(trace).allocated_bytes;
    for (const int count : {1, 7, 300, 1920, 100'000}) {
        EXPECT_EQ(highest(curve.sample(curve.start_ns(), curve.end_ns(), count)), peak) << count;
    }
}

TEST(MemoryCurve, GroupsOfABinAddUpToItsTotal) {
    const Trace trace = make_wave(5'000);
    const MemoryCurve curve(trace);
    for (const auto& bin : curve.sample(curve.start_ns(), curve.end_ns(), 777)) {
        EXPECT_EQ(sum(bin.by_category), bin.allocated_bytes);
        EXPECT_EQ(bin.reserved_bytes, bin.allocated_bytes);
    }
}

TEST(MemoryCurve, EachBinHoldsTheInstantOfItsHighestTotal) {
    const Trace trace = make_wave(5'000);
    const MemoryCurve curve(trace);
    for (const auto& bin : curve.sample(curve.start_ns(), curve.end_ns(), 97)) {
        EXPECT_EQ(curve.at(bin.time_ns).allocated_bytes, bin.allocated_bytes);
    }
}

TEST(MemoryCurve, AgreesWithLiveAllocationsAtAnyInstant) {
    const Trace trace = make_wave(3'000);
    const MemoryCurve curve(trace);
    const auto start_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto events = trace.allocations.column<&Allocation::alloc_event>();
    for (std::size_t i = 0; i < start_ns.size(); i += 37) {
        int64_t expected = 0;
        for (const auto id : live_at(trace, events[i], profiled_device(trace))) {
            expected += trace.allocations.get<&Allocation::requested_bytes>(id);
        }
        EXPECT_EQ(curve.at(start_ns[i]).allocated_bytes, expected);
    }
}

TEST(MemoryCurve, ShowsSingleEventsInADeepZoom) {
    TraceBuilder b;
    const auto base = b.allocate({.bytes = 100});
    b.wait(1'000'000'000);  // a second of nothing: a finest bin is then 15 us wide
    const auto spike = b.allocate({.bytes = 50, .category = Category::kWorkspace});
    b.free(spike);
    b.wait(1'000'000'000);
    b.free(base);
    const Trace trace = b.finish();
    const MemoryCurve curve(trace);
    const int64_t spike_ns = trace.allocations.get<&Allocation::alloc_ns>(spike);

    const auto bins = curve.sample(spike_ns - 2 * kTick, spike_ns + 4 * kTick, 6);
    std::vector<int64_t> totals;
    for (const auto& bin : bins) totals.push_back(bin.allocated_bytes);
    // The spike lives for one tick; the bin after it still starts with it alive only if it did.
    EXPECT_EQ(totals, (std::vector<int64_t>{100, 100, 150, 150, 100, 100}));
}

TEST(MemoryCurve, HoldsNothingOutsideTheTrace) {
    TraceBuilder b;
    b.wait(10 * kTick);
    b.allocate({.bytes = 8});
    b.allocate({.bytes = 8});
    const Trace trace = b.finish();
    const MemoryCurve curve(trace);
    EXPECT_EQ(curve.start_ns(), 10 * kTick);
    EXPECT_EQ(curve.end_ns(), 11 * kTick + 1);
    EXPECT_EQ(curve.at(0).allocated_bytes, 0);
    EXPECT_EQ(curve.at(100 * kTick).allocated_bytes, 0);
    EXPECT_EQ(highest(curve.sample(100 * kTick, 200 * kTick, 10)), 0);
    EXPECT_EQ(highest(curve.sample(0, 5 * kTick, 10)), 0);
    EXPECT_EQ(highest(curve.sample(0, 100 * kTick, 10)), 16);
}

TEST(MemoryCurve, FollowsEventOrderWhenTimesTie) {
    Trace trace;  // all at time 5: +10 -10 +7
    trace.allocations.append({.requested_bytes = 10,
                              .alloc_event = 0,
                              .free_requested_event = 1,
                              .alloc_ns = 5,
                              .free_requested_ns = 5});
    trace.allocations.append({.requested_bytes = 7, .alloc_event = 2, .alloc_ns = 5});
    const MemoryCurve curve(trace);
    EXPECT_EQ(curve.at(5).allocated_bytes, 7);
    EXPECT_EQ(highest(curve.sample(5, 6, 1)), 10);
}

TEST(MemoryCurve, DrawsReservedBytesFromSegments) {
    TraceBuilder b;
    b.trace().allocator_events.append(
        {.action = AllocatorAction::kSegmentAlloc, .event = -1, .size_bytes = 2048});
    b.allocate({.bytes = 100});
    b.allocate({.bytes = 100});
    const MemoryCurve curve(b.finish());
    EXPECT_EQ(curve.at(curve.end_ns()).allocated_bytes, 200);
    EXPECT_EQ(curve.at(curve.end_ns()).reserved_bytes, 2048);
}

TEST(MemoryCurve, OfAnEmptyTraceIsFlat) {
    const MemoryCurve curve{Trace{}};
    EXPECT_EQ(highest(curve.sample(0, 1000, 10)), 0);
    EXPECT_TRUE(curve.sample(0, 0, 10).empty());
    EXPECT_TRUE(curve.sample(0, 10, 0).empty());
}

}  // namespace
