#include "profiler/planner/step/op_work.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

/// Which ops of a program's step take time.
namespace {

using namespace profiler;

class OpWorkOfProgram : public testing::Test {
protected:
    OpWorkOfProgram() { builder_.begin_step(PhaseKind::kForward); }

    Id<Op> add(std::string_view name, Id<Op> parent = {}) {
        const Id<Op> op = builder_.op(name);
        Table<Op>& ops = builder_.trace().ops;
        ops.set<&Op::parent>(op, parent);
        ops.set<&Op::op_class>(op, OpClass::kElementWise);
        ops.set<&Op::read_words>(op, 200);
        ops.set<&Op::written_words>(op, 100);
        return op;
    }
    void launch(Id<Op> op) {
        builder_.trace().kernels.append({.name = builder_.text("kernel"),
                                         .op = op,
                                         .grid_x = 1,
                                         .grid_y = 1,
                                         .grid_z = 1,
                                         .block_x = 1,
                                         .block_y = 1,
                                         .block_z = 1});
    }
    std::vector<Id<Op>> counted() {
        const Trace trace = builder_.finish();
        const OpWorkDefaults program{
            .type = MatmulType::kFp32, .word_bytes = 4, .is_program = true};
        std::vector<Id<Op>> ops;
        for (const OpWork& work : ops_of_step(trace, Id<Step>(0), program).ops) {
            ops.push_back(work.op);
        }
        return ops;
    }

    tests::TraceBuilder builder_;
};

TEST_F(OpWorkOfProgram, AnOpThatGivesTheGpuNoWorkTakesNone) {
    const Id<Op> computed = add("aten::mul");
    launch(computed);
    add("aten::mul");  // a selective checkpoint has its result
    EXPECT_EQ(counted(), std::vector{computed});
}

TEST_F(OpWorkOfProgram, WhereNoWorkIsRecordedAllOpsTakeSome) {
    add("aten::mul");
    add("aten::add");
    EXPECT_EQ(counted().size(), 2U);
}

TEST_F(OpWorkOfProgram, OfASpreadTensorTheOwnPartCounts) {
    const Id<Op> of_all = add("aten::mul");
    const Id<Op> own = add("aten::mul", of_all);
    launch(own);
    EXPECT_EQ(counted(), std::vector{own});
}

TEST_F(OpWorkOfProgram, ACopyToTheHostTakesTheLinkAndNotTheMemoryOfTheGpu) {
    const Id<Op> copied = add("aten::copy_");
    builder_.trace().memcpys.append(
        {.kind = builder_.text("device_to_host"), .op = copied, .size_bytes = 1 << 20});
    const Id<Op> on_device = add("aten::copy_");
    builder_.trace().memcpys.append(
        {.kind = builder_.text("device_to_device"), .op = on_device, .size_bytes = 1 << 20});
    const Trace trace = builder_.finish();
    const auto ops = ops_of_step(trace, Id<Step>(0),
                                 {.type = MatmulType::kFp32, .word_bytes = 4, .is_program = true})
                         .ops;
    ASSERT_EQ(ops.size(), 2U);
    EXPECT_EQ(ops[0].work.kernel, KernelKind::kHostCopy);
    EXPECT_EQ(ops[0].work.moved_bytes, 1 << 20);
    EXPECT_NE(ops[1].work.kernel, KernelKind::kHostCopy);
}

}  // namespace
