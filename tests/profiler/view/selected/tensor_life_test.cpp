#include "profiler/view/selected/inspector_view.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;
using tests::TraceBuilder;

TensorLife saved_until(const StepPlace& freed) {
    return {.size_bytes = 64,
            .is_saved = true,
            .made = {.phase = PhaseKind::kForward, .layer = 3},
            .freed = freed,
            .share_of_step = 0.5,
            .is_at_peak = true};
}

const StepPlace kForward{.phase = PhaseKind::kForward, .layer = 3};
const StepPlace kBackward{.phase = PhaseKind::kBackward, .layer = 3};

TEST(TensorLife, PlacesInAStepHaveWords) {
    EXPECT_EQ(text_of(kBackward), "backward of layer 3");
    EXPECT_EQ(text_of({.phase = PhaseKind::kForward}), "forward");
    EXPECT_EQ(text_of({.phase = PhaseKind::kOptimizer, .steps_later = 1}),
              "optimizer of the next step");
    EXPECT_EQ(text_of({}), "");
}

TEST(TensorLife, TheSameHasTheSameBytesAcrossTheSame) {
    const TensorLife a = saved_until(kBackward);
    TensorLife b = a;
    b.share_of_step = 0.6;  // times of two traces never agree
    EXPECT_EQ(compare_lives(&a, &b).fate, Fate::kSame);
    EXPECT_EQ(compare_lives(&a, &b).text, "B keeps the same, also until backward of layer 3.");
    b.is_at_peak = false;
    EXPECT_EQ(compare_lives(&a, &b).fate, Fate::kOther);
    EXPECT_EQ(compare_lives(&a, &b).text, "It is there at the peak of A, not at the peak of B.");
    b = a;
    b.is_saved = false;
    EXPECT_EQ(compare_lives(&a, &b).text, "A keeps it for backward, B does not.");
}

TEST(TensorLife, WhatIsFreedEarlierIsShorter) {
    const TensorLife a = saved_until(kBackward);
    TensorLife b = a;
    b.freed = kForward;
    b.is_saved = false;
    EXPECT_EQ(compare_lives(&a, &b).fate, Fate::kShorter);
    EXPECT_EQ(compare_lives(&a, &b).text,
              "B frees it in forward of layer 3; A keeps it for backward, until backward of layer "
              "3.");
    EXPECT_EQ(compare_lives(&b, &a).fate, Fate::kLonger);
    EXPECT_EQ(compare_lives(&b, &a).text,
              "A frees it in forward of layer 3; B keeps it for backward, until backward of layer "
              "3.");
    b.freed.reset();
    EXPECT_EQ(compare_lives(&a, &b).text,
              "A frees it in backward of layer 3; B holds it to the end.");
    b.size_bytes = 32;
    EXPECT_EQ(compare_lives(&a, &b).fate, Fate::kSmaller);
    EXPECT_EQ(compare_lives(&a, &b).text.find("B holds it in 32 B instead of 64 B. A frees"), 0U);
}

TEST(TensorLife, BackwardFreesTheLastLayerFirst) {
    const TensorLife third = saved_until(kBackward);
    TensorLife second = saved_until({.phase = PhaseKind::kBackward, .layer = 2});
    second.share_of_step = 0.1;  // a faster step
    EXPECT_EQ(compare_lives(&second, &third).fate, Fate::kShorter);
    const TensorLife forward = saved_until(kForward);
    const TensorLife later = saved_until({.phase = PhaseKind::kForward, .layer = 4});
    EXPECT_EQ(compare_lives(&later, &forward).fate, Fate::kShorter);
}

TEST(TensorLife, OutsideOfPhasesTheTimeDecides) {
    TensorLife a = saved_until({});
    TensorLife b = saved_until({.steps_later = 1});
    EXPECT_EQ(compare_lives(&a, &b).text, "A frees it earlier; B keeps it for backward.");
    b.freed.reset();
    EXPECT_EQ(compare_lives(&a, &b).text,
              "A frees it earlier; B keeps it for backward, to the end.");
    a.share_of_step = 0.9;  // after the optimizer
    const TensorLife in_backward = saved_until(kBackward);
    EXPECT_EQ(compare_lives(&a, &in_backward).fate, Fate::kShorter);
}

TEST(TensorLife, OneTraceMayNotHoldIt) {
    const TensorLife life = saved_until(kBackward);
    EXPECT_EQ(compare_lives(&life, nullptr).fate, Fate::kGone);
    EXPECT_EQ(compare_lives(&life, nullptr).text, "B does not keep it.");
    EXPECT_EQ(compare_lives(nullptr, &life).fate, Fate::kAdded);
    EXPECT_EQ(compare_lives(nullptr, &life).text, "A does not keep it.");
}

TEST(TensorLife, IsReadFromATrace) {
    TraceBuilder b;
    const auto weight = b.allocate({.bytes = 10, .category = Category::kParameter});
    const auto layer = b.module_path("encoder.layer.3", 3);
    b.begin_step(PhaseKind::kForward);
    const auto op = b.op("aten::gelu", layer);
    const auto output = b.allocate({.bytes = 20, .op = op});
    b.wait(TraceBuilder::kTickNs);
    b.begin_phase(PhaseKind::kBackward);
    b.free(output);
    const auto gradient = b.allocate({.bytes = 5});
    b.end_step();
    b.begin_step(PhaseKind::kOptimizer);
    b.free(gradient);
    const Trace trace = b.finish();
    const BlockHistory history(trace);

    const TensorLife of_output = life_of(trace, history, output, true);
    EXPECT_EQ(text_of(of_output.made), "forward of layer 3");
    EXPECT_EQ(text_of(of_output.freed.value()), "backward");
    EXPECT_EQ(of_output.lifetime_ns, 2 * TraceBuilder::kTickNs);
    EXPECT_EQ(length_text(of_output), "2.00 µs, 50.0 % of the step");
    EXPECT_TRUE(of_output.is_at_peak);
    EXPECT_TRUE(of_output.is_in_ledger_step);  // the second step has no forward

    const TensorLife of_gradient = life_of(trace, history, gradient, false);
    EXPECT_EQ(text_of(of_gradient.freed.value()), "optimizer of the next step");
    EXPECT_FALSE(of_gradient.is_at_peak);

    const TensorLife of_weight = life_of(trace, history, weight, false);
    EXPECT_EQ(text_of(of_weight.made), "");
    EXPECT_FALSE(of_weight.freed);
    EXPECT_EQ(length_text(of_weight), "to the end, the whole step");
    EXPECT_TRUE(of_weight.is_at_peak);
}

TEST(CompareLives, SayNothingOfSavesThatNobodyListed) {
    const TensorLife kept{.size_bytes = 8, .is_saved = true};
    TensorLife other{.size_bytes = 8};
    EXPECT_EQ(compare_lives(&kept, &other).text, "A keeps it for backward, B does not.");
    other.is_in_ledger_step = false;
    EXPECT_EQ(compare_lives(&kept, &other).fate, Fate::kSame);
    EXPECT_EQ(compare_lives(&kept, &other).text.find("keeps"), std::string::npos);
}

/// The ledger is that of the last step, and the highest peak may be in another one.
TEST(TensorLife, ThePeakIsThatOfItsStep) {
    TraceBuilder b;
    std::vector<Id<Allocation>> kept;
    for (const int64_t bytes : {100, 50}) {
        b.begin_step();
        kept.push_back(b.allocate({.bytes = bytes}));
        b.free(b.allocate({.bytes = 10}));
        b.free(kept.back());
        b.end_step();
    }
    const Trace trace = b.finish();
    const BlockHistory history(trace);
    for (const Id<Allocation> id : kept) {
        EXPECT_TRUE(life_of(trace, history, id, false).is_at_peak);
    }
}

}  // namespace
