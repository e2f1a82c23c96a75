#include "profiler/view/kernels/call_group.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace {

using namespace profiler;
using tests::TraceBuilder;

CallId op_id(Id<Op> op) { return {CallKind::kOp, op.value}; }

/// A step whose products take these times, each inside of a call aten::linear of its layer.
struct Step {
    explicit Step(const std::vector<int64_t>& products_ns) {
        builder.begin_step(PhaseKind::kForward);
        int64_t now_ns = 0;
        for (std::size_t i = 0; i < products_ns.size(); ++i) {
            const auto layer = static_cast<int64_t>(i);
            const std::string path = "encoder.layer." + std::to_string(layer);
            const auto module =
                builder.module_path(path + ".dense", layer, builder.module_path(path, layer));
            const Id<Op> linear = add("aten::linear", module, now_ns, products_ns[i] + 10);
            linears.push_back(linear);
            const Id<Op> product = add("aten::mm", module, now_ns + 5, products_ns[i]);
            trace().ops.set<&Op::parent>(product, linear);
            trace().ops.set<&Op::flop>(product, 1000);
            products.push_back(product);
            now_ns += products_ns[i] + 100;
        }
        builder.end_step();
    }

    Id<Op> add(std::string_view name, Id<ModulePath> module, int64_t start_ns, int64_t time_ns) {
        const Id<Op> op = builder.op(name, module);
        trace().ops.set<&Op::start_ns>(op, start_ns);
        trace().ops.set<&Op::end_ns>(op, start_ns + time_ns);
        return op;
    }
    void launch(Id<Op> op, std::string_view kernel, int64_t time_ns) {
        trace().kernels.append({.name = builder.text(kernel), .op = op, .end_ns = time_ns});
    }
    Trace& trace() { return builder.trace(); }

    TraceBuilder builder;
    std::vector<Id<Op>> linears, products;
};

CallGroup group_of(Step& step, Id<Op> picked) {
    const std::array<const Trace*, 1> traces{&step.trace()};
    return build_call_group(traces, 0, op_id(picked));
}

TEST(CallGroup, SumsUpTheCallsOfOneNameInOnePhase) {
    Step step({100, 400, 200});
    const CallGroup group = group_of(step, step.products[2]);
    EXPECT_EQ(group.key.name, "aten::mm");
    EXPECT_EQ(group.key.phase, PhaseKind::kForward);
    const CallTimes& times = group.sources.at(0);
    EXPECT_EQ(times.num_calls, 3);
    EXPECT_EQ(times.total_ns, 700);
    EXPECT_EQ(times.least_ns, 100);
    EXPECT_EQ(times.median_ns, 200);
    EXPECT_EQ(times.most_ns, 400);
    EXPECT_FALSE(times.are_of_device);
    EXPECT_EQ(group.picked_ns, 200);
    EXPECT_EQ(group.num_longer, 1);
    EXPECT_EQ(std::accumulate(times.counts.begin(), times.counts.end(), int64_t{0}), 3);
    EXPECT_EQ(times.counts.front(), 1);
    EXPECT_EQ(times.counts.back(), 1);
    EXPECT_EQ(times.counts.at(group.class_of(200)), 1);
}

TEST(CallGroup, KnowsTheNeighboursInTimeAndTheLongest) {
    Step step({100, 400, 200});
    const CallGroup first = group_of(step, step.products[0]);
    EXPECT_FALSE(first.previous.valid());
    EXPECT_EQ(first.next, op_id(step.products[1]));
    EXPECT_EQ(first.longest, op_id(step.products[1]));
    const CallGroup last = group_of(step, step.products[2]);
    EXPECT_EQ(last.previous, op_id(step.products[1]));
    EXPECT_FALSE(last.next.valid());
}

TEST(CallGroup, ACallTakesTheTimeOfWhatItAndTheCallsInItLaunch) {
    Step step({100, 400});
    for (const Id<Op> product : step.products) step.launch(product, "gemm", 7);
    step.launch(step.linears[1], "bias", 2);
    const CallGroup group = group_of(step, step.linears[0]);
    EXPECT_TRUE(group.sources.at(0).are_of_device);
    EXPECT_EQ(group.sources.at(0).least_ns, 7);
    EXPECT_EQ(group.sources.at(0).most_ns, 9);
}

TEST(CallGroup, AnOpThatAutocastCallsAgainCountsOnce) {
    Step step({100, 400});
    const Id<Op> again = step.add("aten::mm", {}, 7, 50);
    step.trace().ops.set<&Op::parent>(again, step.products[0]);
    step.launch(again, "gemm", 9);
    const CallGroup group = group_of(step, again);
    EXPECT_EQ(group.sources.at(0).num_calls, 2);
    EXPECT_EQ(group.picked, op_id(again));
    EXPECT_EQ(group.picked_ns, 9);  // of the call around it
    EXPECT_EQ(group.sources.at(0).total_ns, 9);
}

TEST(CallGroup, ComparesWithTheSameCallsOfTheOtherTrace) {
    Step a({100, 100}), b({50});
    const std::array<const Trace*, 2> traces{&a.trace(), &b.trace()};
    const CallGroup group = build_call_group(traces, 0, op_id(a.products[0]));
    EXPECT_EQ(group.sources.at(0).num_calls, 2);
    EXPECT_EQ(group.sources.at(1).num_calls, 1);
    EXPECT_EQ(group.sources.at(1).counts.front(), 1);  // one axis for both
    EXPECT_EQ(group.sources.at(0).counts.back(), 2);
}

TEST(CallGroup, CallsThatTakeNoTimeHaveAnAxisToo) {
    Step step({0, 0});
    const CallGroup group = group_of(step, step.products[0]);
    EXPECT_GT(group.high_ns, group.low_ns);
    EXPECT_GT(group.low_ns, 0);
}

TEST(CallGroup, GroupsKernelsByTheirShortName) {
    Step step({100, 100});
    step.launch(step.products[0], "void gemm<4>(float*)", 3);
    step.launch(step.products[1], "void gemm<8>(float*)", 5);
    step.launch(step.products[1], "void other<8>(float*)", 5);
    const std::array<const Trace*, 1> traces{&step.trace()};
    const CallGroup group = build_call_group(traces, 0, {CallKind::kKernel, 0});
    EXPECT_EQ(group.key.name, "gemm");
    EXPECT_EQ(group.sources.at(0).num_calls, 2);
    EXPECT_EQ(group.sources.at(0).total_ns, 8);
}

TEST(MarkedSpans, HoldTheCallsWhatTheyCallAndWhatTheyLaunch) {
    Step step({100, 400});
    step.launch(step.products[0], "gemm", 7);
    step.add("aten::gelu", {}, 900, 10);
    const SelectedCalls marks{"linear", {{{key_of(step.trace(), op_id(step.linears[0]))}, {}}}};
    const StepIndex index(step.trace());
    const MarksView view = build_marks_view({{&index}, marks});
    const MarkedSpans& marked = view.traces.at(0);
    EXPECT_EQ(marked.num_calls, 2);
    EXPECT_EQ(marked.time_ns, 7);
    for (const Id<Op> op : step.products) EXPECT_TRUE(marked.contains(op_id(op)));
    EXPECT_TRUE(marked.contains({CallKind::kKernel, 0}));
    EXPECT_FALSE(
        marked.contains({CallKind::kOp, static_cast<int32_t>(step.trace().ops.size()) - 1}));
}

TEST(MarkedSpans, OfARowOfTheRooflineAreItsCountedCalls) {
    Step step({100, 400});
    const auto marked_in = [&](ModuleKey module) {
        const CallKey key{CallKind::kOp, "aten::mm", PhaseKind::kForward, std::move(module)};
        const SelectedCalls marks{"one op", {{{key}, {}}}};
        const StepIndex index(step.trace());
        return build_marks_view({{&index}, marks}).traces.at(0).num_calls;
    };
    EXPECT_EQ(marked_in({"dense", true}), 2);
    EXPECT_EQ(marked_in({"dense", false}), 0);
    EXPECT_EQ(marked_in({"query", true}), 0);
}

}  // namespace
