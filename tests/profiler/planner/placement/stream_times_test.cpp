#include "profiler/planner/placement/stream_times.h"

#include "profiler/planner/data/planner_data.h"

#include <gtest/gtest.h>

#include <string_view>

/// Streams of a rank that computes, and of one that talks to the other of two.
namespace profiler {
namespace {

class Streams : public testing::Test {
protected:
    Streams() {
        calibration_.links = {{.name = "link", .gpus = {}, .bus_bytes_per_s = {1e9, ""}}};
        calibration_.networks = {{.name = "network", .gpus = {}, .bytes_per_s = {1e9, ""}}};
        calibration_.protocols = {{.name = "P",
                                   .base_ns = 0,
                                   .step_ns = 0,
                                   .network_step_ns = 0,
                                   .bandwidth_share = 1,
                                   .source = ""}};
        calibration_.gpus_per_node = {8, ""};
        computing_ = trace_.streams.append({.handle = 0});
        talking_ = trace_.streams.append({.handle = 1});
        group_ = group("[0, 1]");
        trace_.runs.append({.world_size = 2});
    }

    Id<Communicator> group(std::string_view ranks) {
        return trace_.communicators.append({.num_ranks = 2, .ranks = trace_.strings.intern(ranks)});
    }
    Id<Kernel> compute() { return trace_.kernels.append({.stream = computing_}); }
    Id<Kernel> copy() { return trace_.kernels.append({.stream = talking_}); }
    /// An all-reduce of two ranks moves as many bytes as it has, here one in a ns.
    Id<Kernel> all_reduce(int64_t bytes, Id<Communicator> group) {
        const Id<Kernel> kernel = trace_.kernels.append({.stream = talking_});
        trace_.collectives.append({.kernel = kernel,
                                   .communicator = group,
                                   .kind = CollectiveKind::kAllReduce,
                                   .in_bytes = bytes,
                                   .out_bytes = bytes});
        return kernel;
    }
    void wait(Id<Kernel> kernel, Id<Kernel> awaited) {
        trace_.stream_waits.append({.kernel = kernel, .awaited_kernel = awaited});
    }
    static KernelModel a100() {
        const PlannerData& data = built_in_planner_data();
        return KernelModel(**find_gpu(data.gpus, "a100-80gb"), data.environments.front(),
                           data.calibration);
    }
    StreamTimes times() {
        return {trace_, kernels_, CommunicationModel(calibration_, "a100-80gb")};
    }
    Id<Memcpy> host_copy(Id<Stream> stream, std::string_view kind, int64_t size_bytes) {
        return trace_.memcpys.append(
            {.kind = trace_.strings.intern(kind), .stream = stream, .size_bytes = size_bytes});
    }
    int64_t start(Id<Memcpy> copy) const { return trace_.memcpys.get<&Memcpy::start_ns>(copy); }
    int64_t end(Id<Memcpy> copy) const { return trace_.memcpys.get<&Memcpy::end_ns>(copy); }
    int64_t start(Id<Kernel> kernel) const { return trace_.kernels.get<&Kernel::start_ns>(kernel); }
    int64_t end(Id<Kernel> kernel) const { return trace_.kernels.get<&Kernel::end_ns>(kernel); }

    Calibration calibration_;
    const KernelModel kernels_ = a100();
    Trace trace_;
    Id<Stream> computing_, talking_;
    Id<Communicator> group_;
};

/// As DDP does: a bucket is reduced while backward goes on, and the update waits for it.
TEST_F(Streams, WhatComputesHidesATransfer) {
    const Id<Kernel> early = compute(), bucket = all_reduce(100, group_), late = compute();
    const Id<Kernel> update = compute();
    wait(bucket, early);
    wait(update, bucket);
    for (const double late_ns : {30.0, 70.0, 100.0, 150.0}) {
        StreamTimes times = this->times();
        times.place({.kernel = early}, 50);
        times.place({.kernel = bucket}, 0);
        times.place({.kernel = late}, late_ns);
        times.place({.kernel = update}, 10);
        EXPECT_EQ(start(bucket), 51);
        EXPECT_EQ(end(bucket), 151);
        EXPECT_EQ(start(late), 51);
        const auto exposed_ns = static_cast<int64_t>(std::max(0.0, 100 - late_ns));
        EXPECT_EQ(start(update) - end(late), exposed_ns);
    }
}

TEST_F(Streams, WithoutAModelTransfersTakeNoTime) {
    const Id<Kernel> first = compute(), bucket = all_reduce(100, group_), second = compute();
    compute();
    wait(second, bucket);
    StreamTimes times(trace_, kernels_, std::nullopt);
    times.place({.kernel = first}, 50);
    times.place({.kernel = bucket}, 0);
    times.place({.kernel = second}, 50);
    EXPECT_EQ(end(bucket), start(bucket));
    EXPECT_EQ(start(second), 51);
}

TEST_F(Streams, ATransferBeginsWhenTheHostLaunchesIt) {
    const Id<Kernel> bucket = all_reduce(100, group_);
    compute();
    StreamTimes times = this->times();
    times.launch_takes(20);
    times.place({.kernel = bucket}, 0);
    EXPECT_EQ(start(bucket), 21);
    times.end_step();
    EXPECT_EQ(times.now_ns(), 121);  // nothing else waits for it
}

TEST_F(Streams, TransfersOverOneWireTakeTurns) {
    const Id<Stream> third = trace_.streams.append({.handle = 2});
    const Id<Kernel> first = all_reduce(100, group_), second = all_reduce(40, group_);
    const Id<Kernel> between_nodes = all_reduce(40, group("[0, 8]")),
                     small = all_reduce(10, group_);
    for (const Id<Kernel> kernel : {second, between_nodes, small}) {
        trace_.kernels.set<&Kernel::stream>(kernel, third);
    }
    const Id<Kernel> late = compute();
    compute();
    wait(first, late);
    StreamTimes times = this->times();
    times.place({.kernel = late}, 50);
    times.place({.kernel = first}, 0);
    times.place({.kernel = second}, 0);
    times.place({.kernel = between_nodes}, 0);
    times.place({.kernel = small}, 0);
    EXPECT_EQ(start(first), 51);
    EXPECT_EQ(start(second), 1) << "the wire is free until the first one begins";
    EXPECT_EQ(start(between_nodes), 41) << "of its stream; the network is another wire";
    EXPECT_EQ(start(small), 151) << "what is left before the first one is too short";
}

/// FSDP2 copies shards in a stream of its own, ahead of the layer that computes.
TEST_F(Streams, OtherStreamsRunAhead) {
    const Id<Kernel> layer = compute(), copied = copy(), gather = all_reduce(100, group_);
    const Id<Kernel> next = compute();
    compute();
    wait(next, gather);
    StreamTimes times = this->times();
    times.place({.kernel = layer}, 80);
    times.place({.kernel = copied}, 10);
    times.place({.kernel = gather}, 0);
    times.place({.kernel = next}, 80);
    EXPECT_EQ(start(copied), 1);
    EXPECT_EQ(start(gather), 11);
    EXPECT_EQ(start(next), 111);
}

/// DDP copies a bucket back when it has been reduced.
TEST_F(Streams, ACopyWaitsAsAKernelDoes) {
    const Id<Kernel> bucket = all_reduce(100, group_);
    const Id<Memcpy> copied = trace_.memcpys.append({.stream = computing_});
    trace_.stream_waits.append({.memcpy = copied, .awaited_kernel = bucket});
    const Id<Kernel> after = compute();
    StreamTimes times = this->times();
    times.place({.kernel = bucket}, 0);
    times.place({.memcpy = copied}, 20);
    times.place({.kernel = after}, 5);
    EXPECT_EQ(start(after), 121);
}

/// 25 MB over PCIe 4.0 at 25 GB/s take a ms, and a gap.
TEST_F(Streams, ACopyToTheHostIsFreeBesideTheComputationUntilItIsAwaited) {
    const Id<Kernel> first = compute(), second = compute();
    const Id<Memcpy> copied = host_copy(talking_, "device_to_host", 25'000'000);
    trace_.stream_waits.append({.memcpy = copied, .awaited_kernel = first});
    const Id<Kernel> update = compute();
    trace_.stream_waits.append({.kernel = update, .awaited_memcpy = copied});
    StreamTimes times = this->times();
    times.place({.kernel = first}, 100);
    times.place({.memcpy = copied}, 0);
    times.place({.kernel = second}, 400'000);
    times.place({.kernel = update}, 10);
    EXPECT_EQ(start(copied), 101);
    EXPECT_EQ(end(copied), 101 + 1'000'000 + 2'600);
    EXPECT_EQ(start(second), 101);
    EXPECT_EQ(start(update), end(copied));
}

TEST_F(Streams, ACopyInTheStreamThatComputesHoldsItUp) {
    compute();
    const Id<Memcpy> copied = host_copy(computing_, "host_to_device", 25'000'000);
    const Id<Kernel> next = compute();
    StreamTimes times = this->times();
    times.place({.memcpy = copied}, 0);
    times.place({.kernel = next}, 10);
    EXPECT_EQ(start(next), 1 + 1'000'000 + 2'600);
}

TEST_F(Streams, CopiesInOneDirectionTakeTurnsAndBothDirectionsRunAtOnce) {
    const Id<Stream> third = trace_.streams.append({.handle = 2});
    compute();
    const Id<Memcpy> out = host_copy(talking_, "device_to_host", 25'000'000);
    const Id<Memcpy> more = host_copy(third, "device_to_host", 25'000'000);
    const Id<Stream> fourth = trace_.streams.append({.handle = 3});
    const Id<Memcpy> in = host_copy(fourth, "host_to_device", 25'000'000);
    StreamTimes times = this->times();
    for (const Id<Memcpy> copy : {out, more, in}) times.place({.memcpy = copy}, 0);
    EXPECT_EQ(start(more), end(out));
    EXPECT_EQ(start(in), 1);
}

TEST_F(Streams, AGroupOfMessagesRunsBothWaysAtOnce) {
    const Id<Kernel> kernel = trace_.kernels.append({.stream = talking_});
    const auto add = [&](CollectiveKind kind, Id<Kernel> of, int64_t bytes) {
        trace_.collectives.append(
            {.kernel = of, .communicator = group_, .kind = kind, .in_bytes = bytes, .peer = 1});
    };
    add(CollectiveKind::kSend, kernel, 100);
    add(CollectiveKind::kRecv, {}, 60);
    add(CollectiveKind::kRecv, {}, 50);
    compute();
    times().place({.kernel = kernel}, 0);
    EXPECT_EQ(end(kernel) - start(kernel), 110);
}

}  // namespace
}  // namespace profiler
