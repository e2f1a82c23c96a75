#include "profiler/analysis/ops/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::IsEmpty;

Id<Op> add_op(Trace& trace, int64_t start_ns, int64_t end_ns, Id<Thread> thread = {}) {
    return trace.ops.append({.thread = thread, .start_ns = start_ns, .end_ns = end_ns});
}

Id<Kernel> add_kernel(Trace& trace, int64_t start_ns, int64_t end_ns, Id<Op> op = {},
                      Id<Stream> stream = {}) {
    return trace.kernels.append(
        {.stream = stream, .op = op, .start_ns = start_ns, .end_ns = end_ns});
}

std::vector<int32_t> rows_of(const CallRow& row) {
    std::vector<int32_t> rows;
    for (const CallId id : row.ids) rows.push_back(id.row);
    return rows;
}

TEST(Calls, CallsLieInTheRowOfTheirDepth) {
    Trace trace;
    add_op(trace, 0, 100);   // 0: outer
    add_op(trace, 0, 40);    // 1: in 0, begins with it
    add_op(trace, 10, 30);   // 2: in 1
    add_op(trace, 40, 100);  // 3: in 0, begins where 1 ends
    add_op(trace, 100, 120);
    const Calls calls(trace);
    ASSERT_EQ(calls.lanes().size(), 1U);
    const auto& rows = calls.lanes()[0].rows;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_THAT(rows_of(rows[0]), ElementsAre(0, 4));
    EXPECT_THAT(rows_of(rows[1]), ElementsAre(1, 3));
    EXPECT_THAT(rows_of(rows[2]), ElementsAre(2));
}

TEST(Calls, EachThreadAndStreamHasItsLane) {
    Trace trace;
    const auto main = trace.threads.append({.name = trace.strings.intern("main"), .system_id = 7});
    const auto device = trace.devices.append({.name = trace.strings.intern("cuda:0")});
    const auto stream = trace.streams.append({.device = device, .handle = 13});
    const auto op = add_op(trace, 0, 10, main);
    add_kernel(trace, 20, 30, op, stream);
    trace.memcpys.append({.kind = trace.strings.intern("host_to_device"),
                          .stream = stream,
                          .start_ns = 25,
                          .end_ns = 35});
    const Calls calls(trace);
    ASSERT_EQ(calls.lanes().size(), 2U);
    EXPECT_EQ(calls.lanes()[0].name, "stream 13");
    EXPECT_TRUE(calls.lanes()[0].is_stream);
    EXPECT_EQ(calls.lanes()[0].rows.size(), 2U) << "a copy beside a kernel has a row of its own";
    EXPECT_EQ(calls.lanes()[1].name, "main thread");
    EXPECT_FALSE(calls.lanes()[1].is_stream);
}

TEST(Calls, FindsKernelsAndAllocationsOfAnOp) {
    Trace trace;
    const auto first = add_op(trace, 0, 10);
    const auto second = add_op(trace, 10, 20);
    const auto a = add_kernel(trace, 0, 5, second);
    add_kernel(trace, 5, 6);
    const auto b = add_kernel(trace, 6, 9, second);
    const auto allocation = trace.allocations.append({.requested_bytes = 4, .op = first});
    const Calls calls(trace);
    EXPECT_THAT(calls.kernels_of(second), ElementsAre(a, b));
    EXPECT_THAT(calls.kernels_of(first), IsEmpty());
    EXPECT_THAT(calls.allocations_of(first), ElementsAre(allocation));
    EXPECT_THAT(calls.allocations_of({}), IsEmpty());
}

TEST(Calls, CountsKernelsThatRanWhileATensorLived) {
    Trace trace;
    for (int64_t i = 0; i < 10; ++i) add_kernel(trace, i * 10, i * 10 + 8);
    trace.memcpys.append({.start_ns = 0, .end_ns = 50});
    const Calls calls(trace);
    EXPECT_EQ(calls.count_kernels(0, 100), 10) << "a copy is no kernel";
    EXPECT_EQ(calls.count_kernels(15, 31), 3) << "one is running at 15, one begins at 30";
    EXPECT_EQ(calls.count_kernels(18, 20), 0) << "between two kernels";
    EXPECT_EQ(calls.count_kernels(200, 300), 0);
}

TEST(Calls, LeavesOutCallsThatNeverReturned) {
    Trace trace;
    add_op(trace, 10, -1);
    add_op(trace, 10, 20);
    const Calls calls(trace);
    ASSERT_EQ(calls.lanes().size(), 1U);
    EXPECT_THAT(rows_of(calls.lanes()[0].rows[0]), ElementsAre(1));
}

TEST(Calls, SaysHowManySpansHadNoRoom) {
    Trace trace;
    constexpr int64_t kOverlapping = static_cast<int64_t>(CallLane::kMostRows) + 5;
    for (int64_t i = 0; i < kOverlapping; ++i) add_kernel(trace, i, 1000 + i);
    const Calls calls(trace);
    EXPECT_EQ(calls.lanes()[0].rows.size(), CallLane::kMostRows);
    EXPECT_EQ(calls.lanes()[0].left_out, 5);
}

TEST(Calls, RandomSpansNeverOverlapInARowAndAllAreThere) {
    std::mt19937 random(17);
    Trace trace;
    for (int i = 0; i < 3000; ++i) {
        const auto start = static_cast<int64_t>(random() % 100'000);
        add_kernel(trace, start, start + static_cast<int64_t>(random() % 200));
    }
    const Calls calls(trace);
    std::set<int32_t> seen;
    for (const CallRow& row : calls.lanes()[0].rows) {
        int64_t busy_ns = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i > 0) {
                EXPECT_GE(row.start_ns[i], row.end_ns[i - 1]);
            }
            EXPECT_EQ(row.busy_ns[i], busy_ns);
            busy_ns += row.end_ns[i] - row.start_ns[i];
            EXPECT_TRUE(seen.insert(row.ids[i].row).second);
        }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()) + calls.lanes()[0].left_out, 3000);
    EXPECT_EQ(calls.lanes()[0].left_out, 0);
}

TEST(OpOf, IsTheCallItselfOrTheOneThatLaunched) {
    Trace trace;
    const auto op = add_op(trace, 0, 10);
    const auto kernel = add_kernel(trace, 20, 30, op);
    EXPECT_EQ(op_of(trace, {CallKind::kOp, op.value}), op);
    EXPECT_EQ(op_of(trace, {CallKind::kKernel, kernel.value}), op);
    EXPECT_FALSE(op_of(trace, {}).valid());
}

TEST(Calls, LeavesOutTheEnginesCallAndPassesClassesUp) {
    Trace trace;
    const auto op = [&](std::string_view name, int64_t start_ns, int64_t end_ns, Id<Op> parent,
                        OpClass op_class = OpClass::kOther) {
        return trace.ops.append({.name = trace.strings.intern(name),
                                 .parent = parent,
                                 .start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .op_class = op_class});
    };
    const auto engine = op("autograd::engine::evaluate_function: AddmmBackward0", 0, 100, {});
    const auto node = op("AddmmBackward0", 1, 99, engine);
    op("aten::sum", 2, 10, node, OpClass::kElementWise);
    op("aten::mm", 10, 90, node, OpClass::kContraction);
    const auto other =
        op("autograd::engine::evaluate_function: torch::AccumulateGrad", 100, 120, {});
    op("aten::add_", 101, 110, other, OpClass::kElementWise);
    const Calls calls(trace);
    const auto id = [](Id<Op> one) { return CallId{CallKind::kOp, one.value}; };
    ASSERT_EQ(calls.lanes().size(), 1U);
    const auto& rows = calls.lanes()[0].rows;
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].ids, (std::vector<CallId>{id(node), id(other)}));
    EXPECT_EQ(calls.class_of(trace, id(node)), CallClass::kContraction);
    EXPECT_EQ(calls.class_of(trace, id(engine)), CallClass::kContraction);
    EXPECT_EQ(calls.class_of(trace, id(other)), CallClass::kElementWise);
}

}  // namespace
