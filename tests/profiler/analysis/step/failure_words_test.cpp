#include "profiler/analysis/step/failure_words.h"

#include "profiler/trace/trace_notes.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace tests;

constexpr int64_t kGiB = int64_t{1} << 30;

/// A step in which a layer asks for more than there is.
class FailureWords : public testing::Test {
protected:
    FailureWords() {
        b_.begin_step();
        failure_ = {.error = b_.text("OutOfMemoryError"),
                    .device = Id<Device>(0),
                    .time_ns = 1,
                    .requested_bytes = 6 * kGiB,
                    .free_bytes = 3 * kGiB,
                    .limit_bytes = 40 * kGiB,
                    .step = Id<Step>(0),
                    .op = b_.op("aten::mm"),
                    .module_path = b_.module_path("head")};
    }

    /// Innermost line last.
    void set_stack(std::initializer_list<std::string_view> files) {
        int64_t line = 10;
        for (const std::string_view file : files) {
            const Id<Frame> frame =
                b_.trace().frames.append({.file = b_.text(file), .line = ++line});
            failure_.stack = b_.trace().stacks.append({.parent = failure_.stack, .frame = frame});
        }
    }

    std::string sentence() {
        return failure_sentence(b_.trace(), b_.trace().failures.append(failure_));
    }

    TraceBuilder b_;
    Failure failure_;
};

TEST_F(FailureWords, NameTheInnermostLineOfTheProgram) {
    set_stack({"/home/me/train.py", "/home/me/model.py",
               "/home/me/lib/python3.12/site-packages/torch/nn/functional.py"});
    EXPECT_EQ(sentence(),
              "Out of memory at model.py:12 in step 1: 6.00 GiB asked, 3.00 GiB free of "
              "40.0 GiB.");
}

TEST_F(FailureWords, NameTheModuleOrTheOpWithoutALine) {
    EXPECT_TRUE(sentence().starts_with("Out of memory at head in step 1:")) << sentence();
    failure_.module_path = {};
    EXPECT_TRUE(sentence().starts_with("Out of memory at aten::mm in step 1:")) << sentence();
    failure_.op = {};
    EXPECT_TRUE(sentence().starts_with("Out of memory in step 1:")) << sentence();
}

TEST_F(FailureWords, SayOnlyWhatIsKnown) {
    failure_.limit_bytes = -1;
    EXPECT_TRUE(sentence().ends_with(": 6.00 GiB asked, 3.00 GiB free.")) << sentence();
    failure_.free_bytes = failure_.requested_bytes = -1;
    EXPECT_EQ(sentence(), "Out of memory at head in step 1.");
}

TEST_F(FailureWords, CountNoStepsThatNobodyMarked) {
    add_diagnostic(b_.trace(), {.code = std::string(kInferredStep), .explanation = "One step."});
    EXPECT_TRUE(sentence().starts_with("Out of memory at head: 6.00 GiB asked")) << sentence();
}

TEST_F(FailureWords, OfAnotherErrorNameItsClass) {
    failure_ = {.error = b_.text("ValueError"), .time_ns = 1, .step = Id<Step>(0)};
    EXPECT_EQ(sentence(), "The program ended with ValueError in step 1.");
    failure_.error = {};
    failure_.step = {};
    EXPECT_EQ(sentence(), "The program ended with an error after step 1.");
    failure_.time_ns = -1;
    EXPECT_EQ(sentence(), "The program ended with an error before the first step.");
}

TEST_F(FailureWords, SayWhatBecameOfIt) {
    failure_.outcome = FailureOutcome::kCaught;
    EXPECT_TRUE(sentence().ends_with("of 40.0 GiB. The program caught it.")) << sentence();
    failure_.outcome = FailureOutcome::kAbsorbed;
    EXPECT_TRUE(sentence().ends_with("torch went on with less memory.")) << sentence();
}

TEST_F(FailureWords, LeaveOutWhatTorchAbsorbed) {
    EXPECT_TRUE(lacked_memory(failure_));
    failure_.outcome = FailureOutcome::kCaught;
    EXPECT_TRUE(lacked_memory(failure_));
    failure_.outcome = FailureOutcome::kAbsorbed;
    EXPECT_FALSE(lacked_memory(failure_));
    EXPECT_FALSE(lacked_memory({.outcome = FailureOutcome::kEnded})) << "another error";
}

TEST_F(FailureWords, NameAnotherDevice) {
    b_.trace().devices.append({.name = b_.text("cuda:0")});
    failure_.device = b_.trace().devices.append({.name = b_.text("cuda:1")});
    EXPECT_TRUE(sentence().starts_with("Out of memory on cuda:1 at head")) << sentence();
}

TEST_F(FailureWords, ArePrintable) {
    set_stack({"/home/\x1b[31mme.py"});
    EXPECT_TRUE(sentence().starts_with("Out of memory at \\x1b[31mme.py:11")) << sentence();
}

}  // namespace
