#include "profiler/analysis/step/growth.h"

#include "profiler/analysis/step/recorded_step.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace {

using namespace tests;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMiB = int64_t{1} << 20;

/// A training that keeps what a step adds to a list.
class Growth : public testing::Test {
protected:
    Id<Stack> stack_at(int64_t line) {
        const Id<Frame> frame =
            b_.trace().frames.append({.function = b_.text("<module>"),
                                      .file = b_.text("/home/me/cases/train.py"),
                                      .line = line,
                                      .code = b_.text("history.append(logits)")});
        return b_.trace().stacks.append({.frame = frame});
    }

    Id<Allocation> allocate(int64_t bytes, Id<Stack> stack) {
        const Id<Allocation> id = b_.allocate({.bytes = bytes});
        b_.trace().allocations.set<&Allocation::stack>(id, stack);
        return id;
    }

    /// A step with a temporary, and a gradient that the next step frees.
    void begin_step() {
        b_.begin_step();
        b_.free(allocate(64 * kMiB, other_));
        if (gradient_) b_.free(*gradient_);
        gradient_ = allocate(32 * kMiB, other_);
    }

    Id<Allocation> keep(int64_t bytes) {
        begin_step();
        const Id<Allocation> id = allocate(bytes, leak_);
        b_.end_step();
        return id;
    }

    std::vector<GrowingLine> lines() { return growing_lines(b_.trace(), find_peak(b_.trace())); }

    TraceBuilder b_;
    const Id<Stack> leak_ = stack_at(14);
    const Id<Stack> other_ = stack_at(20);
    std::optional<Id<Allocation>> gradient_;
};

TEST_F(Growth, NamesTheLineThatKeepsMoreAfterEachStep) {
    for (const int64_t size : {3, 4, 2, 5}) keep(size * kMiB);
    const auto found = lines();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].line, "cases/train.py:14 <module>");
    EXPECT_EQ(found[0].code, "history.append(logits)");
    EXPECT_THAT(found[0].bytes_by_step, ElementsAre(3 * kMiB, 4 * kMiB, 2 * kMiB, 5 * kMiB));
    EXPECT_EQ(found[0].bytes_per_step, 14 * kMiB / 4);
    EXPECT_EQ(found[0].held_by, "");
    EXPECT_FALSE(found[0].steps_until_full) << "no size is known";
}

TEST_F(Growth, IsNothingInATrainingThatKeepsNoMore) {
    for (int step = 0; step < 6; ++step) {
        begin_step();
        b_.end_step();
    }
    EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(Growth, NeedsThreeStepsRunning) {
    keep(kMiB);
    keep(kMiB);
    EXPECT_THAT(lines(), IsEmpty());
    keep(kMiB);
    EXPECT_EQ(lines().size(), 1U);
    begin_step();
    b_.end_step();
    EXPECT_THAT(lines(), IsEmpty()) << "the line stopped";
}

TEST_F(Growth, IsNotThatOfTheFirstStep) {
    for (int step = 0; step < 3; ++step) keep(kMiB);
    b_.trace().steps.set<&Step::kind>(Id<Step>(0), StepKind::kFirst);
    EXPECT_THAT(lines(), IsEmpty());
}

/// A list with room for two: each step lets go of the oldest.
TEST_F(Growth, IsNotAListThatIsFull) {
    std::vector<Id<Allocation>> kept;
    for (int step = 0; step < 6; ++step) {
        if (kept.size() >= 2) b_.free(kept[kept.size() - 2]);
        kept.push_back(keep(kMiB));
    }
    EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(Growth, IsNotAFewNumbersAStep) {
    for (int step = 0; step < 4; ++step) keep(512);
    EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(Growth, SaysWhoHoldsItAndWhenTheDeviceIsFull) {
    for (int step = 0; step < 4; ++step) keep(10 * kMiB);
    const Id<Allocation> newest(b_.trace().allocations.size() - 1);
    b_.trace().keepers.append({.allocation = newest, .text = b_.text("list `history[3]`")});
    const int64_t peak = find_peak(b_.trace()).allocated_bytes;
    b_.trace().runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), peak + 25 * kMiB);
    const auto found = lines();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].held_by, "list `history[3]`");
    EXPECT_EQ(found[0].steps_until_full, 2);
}

/// What the last whole step made and the broken one freed is not kept.
TEST_F(Growth, EndsAtTheFailure) {
    for (int step = 0; step < 3; ++step) keep(10 * kMiB);
    const Id<Allocation> transient = keep(10 * kMiB);
    b_.begin_step();
    b_.free(transient);
    b_.end_step();
    b_.trace().steps.set<&Step::kind>(Id<Step>(4), StepKind::kBroken);
    b_.trace().failures.append({.event = b_.next_event(), .requested_bytes = 1});
    EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(Growth, WithoutCallStacksNamesTheOp) {
    const auto module = b_.module_path("head");
    for (int step = 0; step < 3; ++step) {
        b_.begin_step();
        b_.allocate({.bytes = kMiB, .op = b_.op("aten::mm", module)});
        b_.end_step();
    }
    const auto found = lines();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].line, "aten::mm in head");
}

}  // namespace
