/// Steps and phases of programs that do not train in the plain order, as short traces of the
/// profiler.
#include "profiler/formats/parts/steps_and_phases.h"

#include "profiler/formats/trace_formats.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace profiler {
namespace {

using testing::ElementsAre;

/// The events of a trace, of one thread unless said. Times are microseconds.
class Events {
public:
    Events& span(std::string_view category, std::string_view name, int start, int end,
                 int thread = 1, std::string_view arguments = "") {
        return add(fmt::format(R"("ph":"X","cat":"{}","name":"{}","dur":{},"args":{{{}}})",
                               category, name, end - start, arguments),
                   start, thread);
    }
    Events& op(std::string_view name, int start, int end, int thread = 1,
               std::string_view arguments = "") {
        return span("cpu_op", name, start, end, thread, arguments);
    }
    Events& backward(int start, int end, int thread = 1) {
        return op("autograd::engine::evaluate_function: MulBackward0", start, end, thread);
    }
    Events& range(std::string_view name, int start, int end) {
        return span("user_annotation", name, start, end);
    }
    /// A block; negative bytes free it.
    Events& memory(int time, int address, int bytes) {
        return add(
            fmt::format(R"("ph":"i","s":"t","name":"[memory]","args":{{"Addr":{},"Bytes":{},)"
                        R"("Device Type":1,"Device Id":0}})",
                        address, bytes),
            time, 1);
    }
    Events& arrow(int id, int from, int from_thread, int to, int to_thread) {
        add(fmt::format(R"("ph":"s","cat":"fwdbwd","name":"fwdbwd","id":{})", id), from,
            from_thread);
        return add(fmt::format(R"("ph":"f","bp":"e","cat":"fwdbwd","name":"fwdbwd","id":{})", id),
                   to, to_thread);
    }

    Trace read() const {
        const tests::TemporaryFolder folder;
        std::ofstream(folder / "a.json") << "{\"traceEvents\": [" << text_ << "]}";
        auto trace = open_trace(folder / "a.json");
        EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
        return trace ? std::move(*trace) : Trace();
    }

private:
    Events& add(const std::string& fields, int time, int thread) {
        text_ += fmt::format(R"({}{{"pid":1,"tid":{},"ts":{},{}}})", text_.empty() ? "" : ",\n",
                             thread, time, fields);
        return *this;
    }
    std::string text_;
};

/// "forward 10-30" for each phase, in microseconds.
std::vector<std::string> phases_of(const Trace& trace) {
    std::vector<std::string> phases;
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        EXPECT_LE(phase.first_event, phase.last_event);
        phases.push_back(fmt::format("{} {}-{}", name_of(phase.kind), phase.start_ns / 1000,
                                     phase.end_ns / 1000));
    }
    return phases;
}

Category category_at(const Trace& trace, int64_t address) {
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation block = trace.allocations[Id<Allocation>(i)];
        if (block.address == address) return trace.storages[block.storage].category;
    }
    return Category::kUnknown;
}

/// Programs may update a parameter in a hook of its gradient, to keep one gradient at a time.
TEST(StepsAndPhases, SplitsABackwardAroundTheUpdatesInIt) {
    Events events;
    events.range("ProfilerStep#1", 0, 100).op("aten::mm", 10, 20).memory(15, 4096, 512);
    events.backward(30, 60).range("Optimizer.step#SGD.step", 40, 50).backward(61, 80);
    const Trace trace = events.memory(70, 4096, -512).read();
    EXPECT_THAT(phases_of(trace),
                ElementsAre("forward 0-30", "backward 30-40", "optimizer 40-50", "backward 50-80"));
    EXPECT_EQ(category_at(trace, 4096), Category::kActivation);
}

/// LBFGS calls forward and backward from its step.
TEST(StepsAndPhases, FindsForwardAndBackwardInAStepOfTheOptimizer) {
    Events events;
    events.range("ProfilerStep#1", 0, 100).range("Optimizer.step#LBFGS.step", 5, 95);
    events.op("aten::mm", 10, 20).backward(30, 50);
    for (int i = 0; i < 5; ++i) events.op("aten::mm", 52 + 2 * i, 53 + 2 * i);
    events.backward(65, 80).op("aten::add_", 85, 90);
    EXPECT_THAT(phases_of(events.read()),
                ElementsAre("forward 0-30", "backward 30-50", "forward 50-65", "backward 65-80",
                            "optimizer 80-95"));
}

TEST(StepsAndPhases, DoesNotCountTheEndOfGradientsAsForward) {
    Events events;
    events.range("ProfilerStep#1", 0, 100).range("Optimizer.zero_grad#SGD.zero_grad", 2, 8);
    events.op("aten::zero_", 3, 7).op("aten::mm", 10, 20).backward(30, 50);
    EXPECT_THAT(phases_of(events.read()), ElementsAre("forward 8-30", "backward 30-50"));
}

/// A thread that loads data runs ops at any time.
TEST(StepsAndPhases, IsNotMisledByOpsOfOtherThreads) {
    Events events;
    events.range("ProfilerStep#1", 0, 200).backward(50, 60).backward(100, 110);
    for (int i = 0; i < 8; ++i) events.op("aten::mm", 5 * i, 5 * i + 3);
    for (int i = 0; i < 5; ++i) events.op("aten::stack", 70 + 4 * i, 72 + 4 * i, 2);
    EXPECT_THAT(phases_of(events.read()), ElementsAre("forward 0-50", "backward 50-110"));
}

/// Autograd counts the ops of each thread, so a number may stand for several. Arrows are certain.
TEST(StepsAndPhases, TrustsArrowsMoreThanNumbers) {
    Events events;
    events.op("aten::relu", 10, 20, 1, R"("Sequence number":7,"Fwd thread id":0)");
    events.op("aten::tanh", 12, 22, 2, R"("Sequence number":7,"Fwd thread id":0)");
    const auto link = R"("Sequence number":7,"Fwd thread id":2)";
    events.op("ReluBackward0", 40, 50, 3, link).arrow(1, 10, 1, 40, 3);
    events.op("TanhBackward0", 60, 70, 3, link);
    const Trace trace = events.read();
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        const std::string_view name = trace.text(op.name);
        if (name == "ReluBackward0") {
            ASSERT_TRUE(op.forward.valid());
            EXPECT_EQ(trace.text(trace.ops.get<&Op::name>(op.forward)), "aten::relu");
        } else if (name == "TanhBackward0") {
            EXPECT_FALSE(op.forward.valid());
        }
    }
}

/// A loss inside of forward parts it in two; what its first part kept is an activation still.
TEST(StepsAndPhases, KnowsTheActivationsOfAForwardWithALossInIt) {
    Events events;
    events.range("ProfilerStep#1", 0, 200).range("## forward ##", 0, 100);
    events.range("## loss ##", 80, 95).range("## backward ##", 100, 150);
    events.op("aten::mm", 10, 20).memory(15, 4096, 512).memory(120, 4096, -512);
    const Trace trace = events.read();
    EXPECT_THAT(phases_of(trace),
                ElementsAre("forward 0-80", "loss 80-95", "forward 95-100", "backward 100-150"));
    EXPECT_EQ(category_at(trace, 4096), Category::kActivation);
}

/// Of two ranges that begin together, the longer one holds the other.
TEST(StepsAndPhases, FindsAPhaseThatBeginsWithTheOneAroundIt) {
    Events events;
    events.range("ProfilerStep#1", 0, 100).range("## forward ##", 10, 20);
    events.range("## optimizer ##", 10, 90).op("aten::mm", 12, 15);
    EXPECT_THAT(phases_of(events.read()), ElementsAre("forward 10-20", "optimizer 20-90"));
}

/// A recording of the allocator alone, on one device.
class Blocks {
public:
    Id<Allocation> allocate(std::string_view innermost_function) {
        const Id<Frame> frame =
            trace_.frames.append({.function = trace_.strings.intern(innermost_function),
                                  .file = trace_.strings.intern("??")});
        return trace_.allocations.append(
            {.device = Id<Device>(0),
             .requested_bytes = 8,
             .alloc_event = event_++,
             .storage = trace_.storages.append({.size_bytes = 8, .category = Category::kUnknown}),
             .stack = trace_.stacks.append({.frame = frame})});
    }
    void free(Id<Allocation> block) {
        trace_.allocations.set<&Allocation::free_requested_event>(block, event_++);
    }
    Category category(Id<Allocation> block) const { return category_of_block(trace_, block); }
    void infer() { infer_gradients(trace_); }

private:
    Trace trace_;
    int64_t event_ = 0;
};

constexpr std::string_view kNode = "torch::autograd::generated::MmBackward0::apply(at::Tensor)";

TEST(InferGradients, TakesWhatOutlivesBackward) {
    Blocks blocks;
    const auto activation = blocks.allocate("forward");
    const auto gradient = blocks.allocate(kNode);
    const auto scratch = blocks.allocate(kNode);
    const auto workspace = blocks.allocate("at::cuda::getCUDABlasLtWorkspace()");
    blocks.free(scratch);
    blocks.free(activation);
    const auto state = blocks.allocate("step");
    const auto running = blocks.allocate(kNode);
    blocks.infer();
    EXPECT_EQ(blocks.category(gradient), Category::kGradient);
    EXPECT_EQ(blocks.category(workspace), Category::kWorkspace);
    for (const auto other : {activation, scratch, state, running}) {
        EXPECT_EQ(blocks.category(other), Category::kUnknown);
    }
}

/// Names of modules may be anything: no reader may hang on them, or keep each part of each.
TEST(StepsAndPhases, ReadsModulesWithAnyNumberOfDots) {
    std::string deep = "nn.Module: a";
    for (int i = 0; i < 2'000; ++i) deep += ".a";
    for (const std::string& name : {std::string("nn.Module: .a"), std::string("nn.Module: a."),
                                    std::string("nn.Module: ."), deep}) {
        Events events;
        events.span("python_function", name, 0, 100).op("aten::mm", 10, 20);
        const Trace trace = events.read();
        EXPECT_FALSE(trace.module_paths.empty());
        EXPECT_LT(trace.module_paths.size(), 100u) << name.substr(0, 20);
    }
}

/// A block whose free is missing ends where the next one takes its address.
TEST(StepsAndPhases, EndsABlockThatAnotherOneReplaces) {
    Events events;
    events.op("aten::mm", 10, 90).memory(20, 4096, 512).memory(30, 4096, 1024);
    const Trace trace = events.read();
    ASSERT_EQ(trace.allocations.size(), 2u);
    EXPECT_EQ(trace.allocations.get<&Allocation::free_requested_ns>(Id<Allocation>(0)),
              trace.allocations.get<&Allocation::alloc_ns>(Id<Allocation>(1)));
}

}  // namespace
}  // namespace profiler
