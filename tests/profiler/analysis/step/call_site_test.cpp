#include "profiler/analysis/step/origin.h"

#include "profiler/analysis/step/breakdown.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <map>

namespace {

using namespace tests;

struct SiteFrame {
    std::string file;
    int64_t line;
    std::string_view function;
};

/// A call stack, from its outermost frame.
Id<Stack> add_stack(TraceBuilder& b, const std::vector<SiteFrame>& frames) {
    Id<Stack> stack;
    for (const SiteFrame& frame : frames) {
        const Id<Frame> id = b.trace().frames.append(
            {.function = b.text(frame.function), .file = b.text(frame.file), .line = frame.line});
        stack = b.trace().stacks.append({.parent = stack, .frame = id});
    }
    return stack;
}

std::string site(const std::vector<SiteFrame>& frames) {
    TraceBuilder b;
    const Id<Stack> stack = add_stack(b, frames);
    return CallSites(b.trace()).of(stack);
}

const std::string kPackages = "/home/me/.venv/lib/python3.12/site-packages/";
const SiteFrame kTrain{"/home/me/run/../project/train.py", 20, "main"};
const SiteFrame kModel{"/home/me/project/bert/model.py", 54, "forward"};
const SiteFrame kCpp{"??", 0, "at::_ops::empty_strided::call(c10::ArrayRef<long>)"};

TEST(CallSites, AreTheInnermostLineOfTheProgram) {
    EXPECT_EQ(site({kTrain, kModel, kCpp}), "bert/model.py:54 forward");
    EXPECT_EQ(site({kTrain}), "project/train.py:20 main");
    EXPECT_EQ(site({{"train.py", 3, "<module>"}, kCpp}), "train.py:3 <module>");
    EXPECT_EQ(site({{"C:\\me\\bert\\model.py", 3, "forward"}}), "bert/model.py:3 forward");
    EXPECT_EQ(site({{"<stdin>", 1, "<module>"}}), "<stdin>:1 <module>");
}

TEST(CallSites, PassOverTorchAndPythonItself) {
    for (const std::string& file :
         {kPackages + "torch/nn/modules/module.py", kPackages + "einops/einops.py",
          std::string("/usr/lib/python3/dist-packages/torch/functional.py"),
          std::string("/opt/pytorch/torch/nn/functional.py"),
          std::string("/usr/lib/python3.12/contextlib.py"),
          std::string("/tmp/torchinductor_me/ab/cab.py"), std::string("<eval_with_key>.3"),
          std::string("<frozen importlib._bootstrap>")}) {
        EXPECT_EQ(site({kModel, {file, 7, "f"}, kCpp}), "bert/model.py:54 forward") << file;
    }
}

TEST(CallSites, OfPackagesAreTheLineOfTheProgramThatCallsThem) {
    const SiteFrame loss{kPackages + "liger_kernel/ops/cross_entropy.py", 350, "forward"};
    const std::string windows = "C:\\Python312\\Lib\\";
    EXPECT_EQ(site({kTrain, loss, kCpp}), "project/train.py:20 main");
    EXPECT_EQ(site({loss, kCpp}), "ops/cross_entropy.py:350 forward") << "it has no other";
    EXPECT_EQ(site({{windows + "site-packages\\timm\\vit.py", 9, "f"}}), "timm/vit.py:9 f");
    EXPECT_EQ(site({{"C:\\me\\train.py", 3, "main"}, {windows + "contextlib.py", 9, "f"}}),
              "me/train.py:3 main");
}

/// A line that runs a model of a package says less than the lines of the model.
TEST(CallSites, OfAWholePackageAreItsOwnLines) {
    TraceBuilder b;
    const Id<Stack> train = add_stack(b, {kTrain});
    std::vector<Id<Stack>> stacks;
    for (int64_t line = 1; line <= static_cast<int64_t>(kMostPackageLines) + 1; ++line) {
        const Id<Frame> frame = b.trace().frames.append(
            {.function = b.text("forward"),
             .file = b.text(kPackages + "transformers/models/bert/modeling_bert.py"),
             .line = line});
        stacks.push_back(b.trace().stacks.append({.parent = train, .frame = frame}));
    }
    const CallSites sites(b.trace());
    EXPECT_EQ(sites.of(stacks.back()), "bert/modeling_bert.py:9 forward");
    EXPECT_EQ(sites.of(train), "project/train.py:20 main");
}

TEST(CallSites, AreTheNodeOfAutogradInItsThread) {
    const SiteFrame node{"??", 0, "torch::autograd::generated::MulBackward0::apply(std::vector)"};
    const SiteFrame engine{"engine.cpp", 0, "torch::autograd::Engine::thread_main(int)"};
    EXPECT_EQ(site({engine, node, kCpp}), "autograd MulBackward0");
    EXPECT_EQ(site({engine, kCpp}), "outside of Python");
    EXPECT_EQ(site({engine, node, kModel, kCpp}), "bert/model.py:54 forward") << "recomputation";
}

TEST(CallSites, NameWhatIsLeftOfAStack) {
    EXPECT_EQ(site({{kPackages + "torch/optim/adam.py", 9, "step"}, kCpp}), "optim/adam.py:9 step");
    EXPECT_EQ(site({kCpp}), "outside of Python");
    EXPECT_EQ(site({}), "no stack");
    EXPECT_EQ(site({{"", 0, ""}}), "outside of Python");
    EXPECT_EQ(site({{"site-packages", 0, ""}}), "outside of Python");
}

/// A foreign or damaged file may have a stack without a frame, or a parent that comes later.
TEST(CallSites, OfIncompleteStacksAreOutsideOfPython) {
    TraceBuilder b;
    const auto no_frame = b.trace().stacks.append({});
    const auto later_parent = b.trace().stacks.append({.parent = Id<Stack>(2)});
    const auto of_model = add_stack(b, {kModel});
    const CallSites sites(b.trace());
    EXPECT_EQ(sites.of(no_frame), "outside of Python");
    EXPECT_EQ(sites.of(later_parent), "outside of Python");
    EXPECT_EQ(sites.of(of_model), "bert/model.py:54 forward");
}

TEST(BreakDown, BySiteGathersTheAllocationsOfALine) {
    TraceBuilder b;
    const auto allocate = [&](int64_t bytes, Id<Stack> stack) {
        b.trace().allocations.set<&Allocation::stack>(b.allocate({.bytes = bytes}), stack);
    };
    allocate(8, {});
    allocate(1, add_stack(b, {kTrain, kModel, kCpp}));
    allocate(2, add_stack(b, {kModel}));
    allocate(4, add_stack(b, {kTrain}));
    const Trace trace = b.finish();
    std::map<std::string, int64_t> sizes;
    for (const auto& row : break_down(trace, find_peak(trace), GroupBy::kLine)) {
        sizes[row.name] = row.size_bytes;
    }
    EXPECT_EQ(sizes, (std::map<std::string, int64_t>{{"no stack, temporary", 8},
                                                     {"bert/model.py:54 forward", 3},
                                                     {"project/train.py:20 main", 4}}));
}

TEST(DefaultGroupBy, IsTheSiteWhereThereAreStacksButNoOps) {
    TraceBuilder b;
    EXPECT_EQ(default_group_by(b.trace()), GroupBy::kClass);
    add_stack(b, {kModel});
    EXPECT_EQ(default_group_by(b.trace()), GroupBy::kLine);
    b.begin_step();
    b.op("aten::addmm");
    EXPECT_EQ(default_group_by(b.trace()), GroupBy::kClass);
}

}  // namespace
