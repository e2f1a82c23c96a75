#include "profiler/capture/python/failure_rows.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace {

using namespace profiler;

class FailureRows : public testing::Test {
protected:
    void refuse() {
        b_.trace().failures.append({.event = b_.next_event(),
                                    .requested_bytes = 4096,
                                    .outcome = FailureOutcome::kAbsorbed});
    }
    void end(FailureOutcome outcome, const std::string& error) {
        end_failure({.outcome = outcome, .error = error, .message = "of " + error},
                    {.event = b_.next_event()}, b_.trace());
    }
    Failure failure(std::size_t row) { return b_.trace().failures[Id<Failure>(row)]; }
    std::size_t num_failures() { return b_.trace().failures.size(); }

    tests::TraceBuilder b_;
};

TEST_F(FailureRows, OnlyTheNewestOneIsCompleted) {
    refuse();
    refuse();
    end(FailureOutcome::kCaught, "OutOfMemoryError");
    end(FailureOutcome::kCaught, "KeyError");
    ASSERT_EQ(num_failures(), 2U);
    EXPECT_EQ(failure(0).outcome, FailureOutcome::kAbsorbed);
    EXPECT_FALSE(failure(0).error.valid());
    EXPECT_EQ(failure(1).outcome, FailureOutcome::kCaught);
    EXPECT_EQ(b_.trace().text(failure(1).error), "OutOfMemoryError");
    EXPECT_EQ(b_.trace().text(failure(1).message), "of OutOfMemoryError");
}

TEST_F(FailureRows, AnErrorThatNoRequestExplainsHasNoBytes) {
    end(FailureOutcome::kEnded, "KeyboardInterrupt");
    ASSERT_EQ(num_failures(), 1U);
    EXPECT_EQ(failure(0).requested_bytes, -1);
    EXPECT_EQ(failure(0).limit_bytes, -1);
    EXPECT_EQ(fatal_failure(b_.trace()), Id<Failure>(0));
}

TEST_F(FailureRows, AStepThatCameToItsEndWasNotEndedByOne) {
    b_.begin_step();
    refuse();
    b_.allocate({.bytes = 10});
    b_.end_step();
    end(FailureOutcome::kEnded, "RuntimeError");
    ASSERT_EQ(num_failures(), 2U);
    EXPECT_EQ(failure(0).outcome, FailureOutcome::kAbsorbed);
    EXPECT_EQ(failure(1).requested_bytes, -1);
}

TEST_F(FailureRows, ABrokenStepWasEndedByOne) {
    b_.begin_step();
    refuse();
    b_.allocate({.bytes = 10});
    b_.end_step();
    b_.trace().steps.set<&Step::kind>(Id<Step>(0), StepKind::kBroken);
    end(FailureOutcome::kEnded, "OutOfMemoryError");
    ASSERT_EQ(num_failures(), 1U);
    EXPECT_EQ(failure(0).outcome, FailureOutcome::kEnded);
    EXPECT_EQ(failure(0).requested_bytes, 4096);
}

TEST_F(FailureRows, ACaughtOneIsKnownAfterItsStepToo) {
    b_.begin_step();
    refuse();
    b_.allocate({.bytes = 10});
    b_.end_step();
    end(FailureOutcome::kCaught, "OutOfMemoryError");
    ASSERT_EQ(num_failures(), 1U);
    EXPECT_EQ(failure(0).outcome, FailureOutcome::kCaught);
}

}  // namespace
