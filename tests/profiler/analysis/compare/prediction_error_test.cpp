#include "profiler/analysis/compare/prediction_error.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace tests;
using testing::HasSubstr;

struct StepSpec {
    Source source = Source::kPredicted;
    int64_t workspace_bytes = 8 << 20;
    int64_t temporary_bytes = 0;
    int64_t gradient_bytes = 1 << 20;
    int64_t rounding_bytes = 0;  // of each block
    int64_t segment_bytes = 0;   // 0: no segments
    int64_t seq_len = 32;
    PhaseKind phase = PhaseKind::kForward;
};

Trace make_step(const StepSpec& spec) {
    models::Workload workload;
    workload.seq_len = spec.seq_len;
    TraceBuilder b(workload);
    b.trace().runs.set<&Run::source>(Id<Run>(std::size_t{0}), spec.source);
    if (spec.segment_bytes > 0) {
        b.trace().allocator_events.append({.action = AllocatorAction::kSegmentAlloc,
                                           .event = -1,
                                           .size_bytes = spec.segment_bytes});
    }
    b.allocate({.bytes = 4 << 20, .category = Category::kParameter, .name = "weight"});
    b.allocate({.bytes = spec.workspace_bytes, .category = Category::kWorkspace, .name = "cublas"});
    b.begin_step(spec.phase);
    const auto module_path = b.module_path("encoder.layer.0", 0);
    b.allocate({.bytes = 2 << 20,
                .category = Category::kActivation,
                .op = b.op("aten::gelu", module_path)});
    if (spec.temporary_bytes > 0) {
        b.allocate({.bytes = spec.temporary_bytes, .op = b.op("aten::sum", module_path)});
    }
    b.allocate(
        {.bytes = spec.gradient_bytes, .category = Category::kGradient, .name = "weight.grad"});
    Trace trace = b.finish();
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Id<Allocation> row(i);
        trace.allocations.set<&Allocation::block_bytes>(
            row, trace.allocations.get<&Allocation::requested_bytes>(row) + spec.rounding_bytes);
    }
    return trace;
}

void expect_to_sum_up(const PredictionError& result) {
    int64_t difference = 0;
    for (const Gap& gap : result.gaps) difference += gap.difference_bytes();
    EXPECT_EQ(difference, result.predicted_bytes - result.measured_bytes);
}

TEST(ExplainPredictionError, EqualStepsHaveNoGap) {
    const auto result =
        explain_prediction_error(make_step({}), make_step({.source = Source::kMeasuredCuda}));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->matched_count, 4);
    EXPECT_EQ(result->matched_bytes, 15 << 20);
    EXPECT_TRUE(result->tensors.empty());
    EXPECT_EQ(result->sentence, "predicted 15.0 MiB, measured 15.0 MiB: equal.");
}

TEST(ExplainPredictionError, NamesTheCauseOfEachPartOfTheGap) {
    const auto result =
        explain_prediction_error(make_step({.rounding_bytes = 512, .segment_bytes = 20 << 20}),
                                 make_step({.source = Source::kMeasuredCuda,
                                            .workspace_bytes = 9 << 20,
                                            .temporary_bytes = 3 << 20,
                                            .gradient_bytes = 5 << 20,
                                            .segment_bytes = 32 << 20}));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->of_reserved);
    EXPECT_EQ(result->predicted_bytes, 20 << 20);
    EXPECT_EQ(result->measured_bytes, 32 << 20);
    EXPECT_EQ(result->gap(GapCause::kRounding).difference_bytes(), 4 * 512);
    EXPECT_EQ(result->gap(GapCause::kWorkspace).difference_bytes(), -(1 << 20));
    EXPECT_EQ(result->gap(GapCause::kTemporary).difference_bytes(), -(3 << 20));
    EXPECT_EQ(result->gap(GapCause::kGradient).difference_bytes(), -(4 << 20));
    EXPECT_EQ(result->gap(GapCause::kUnknown).difference_bytes(), 0);
    EXPECT_EQ(result->gap(GapCause::kFragmentation).predicted_bytes, (5 << 20) - 4 * 512);
    expect_to_sum_up(*result);
    EXPECT_EQ(result->matched_count, 2);
    ASSERT_EQ(result->tensors.size(), 5U);
    EXPECT_EQ(result->tensors[0].name, "cublas");
    EXPECT_FALSE(result->tensors[0].is_predicted);
    EXPECT_EQ(result->tensors[3].name, "aten::sum in encoder.layer.0");
    EXPECT_THAT(result->sentence, HasSubstr("37.5 % too little; rounding +2.00 KiB, workspace "
                                            "-1.00 MiB, fragmentation"));
}

TEST(ExplainPredictionError, SaysWhenThePeaksLieInDifferentPhases) {
    const auto result = explain_prediction_error(make_step({.gradient_bytes = 2 << 20}),
                                                 make_step({.source = Source::kMeasuredCuda,
                                                            .gradient_bytes = 1 << 20,
                                                            .phase = PhaseKind::kOptimizer}));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_THAT(result->sentence,
                HasSubstr("gradient +1.00 MiB (the predicted peak lies in forward, the measured "
                          "peak in optimizer)."));
}

TEST(ExplainPredictionError, WithoutSegmentsHoldsAllocatedMemoryAgainstEachOther) {
    const auto result =
        explain_prediction_error(make_step({.rounding_bytes = 512, .segment_bytes = 20 << 20}),
                                 make_step({.source = Source::kMeasuredCpu}));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(result->of_reserved);
    EXPECT_EQ(result->predicted_bytes, result->measured_bytes);
    expect_to_sum_up(*result);
}

TEST(ExplainPredictionError, RefusesStepsThatAreNotTheSame) {
    const auto result = explain_prediction_error(make_step({}), make_step({.seq_len = 64}));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("sequence length"));
    EXPECT_FALSE(explain_prediction_error(Trace{}, Trace{}));
}

}  // namespace
