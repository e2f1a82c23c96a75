#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/plan_row.h"
#include "profiler/planner/search/layer_table.h"
#include "profiler/planner/step/capacity_search.h"
#include "tests/profiler/planner/toy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

/// What ends a plan's batches, and what a row says of it.
namespace {

using namespace profiler;
using namespace tests;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(PlanLimits, SaysWhereAModelEndsTheBatchesAndNotMemory) {
    PlanRequest request = request_for({"original"}, {"t4"});
    EXPECT_EQ(plan(request).rows.front().max_batch_end, MaxBatchEnd::kMemory);
    EXPECT_THAT(plan(request).rows.front().other_limit, IsEmpty());
    Gpu gpu = *gpu_named("b200");
    gpu.usable_memory_bytes.value = 1e15;
    request.gpus = {&gpu};
    const PlanRow row = plan(request).rows.front();
    EXPECT_EQ(row.max_batch_end, MaxBatchEnd::kElements);
    EXPECT_THAT(row.other_limit, testing::AllOf(HasSubstr("it is not memory that limits the batch"),
                                                HasSubstr("more than 2^31")));
    EXPECT_THAT(row.notes, Contains(row.other_limit));
}

TEST(PlanLimits, LooksAtEveryBatchAroundTheBestAndAtTheOneAskedFor) {
    EXPECT_THAT(batches_between({72}, {1, 64, 72, 80}),
                testing::ElementsAre(65, 66, 67, 68, 69, 70, 71, 73, 74, 75, 76, 77, 78, 79));
    EXPECT_THAT(batches_between({3, 80}, {1, 2, 3, 40, 80}).front(), 4);
    EXPECT_THAT(batches_between({80}, {1, 2, 3, 78, 80}), testing::ElementsAre(79));
    PlanRequest request = request_for({"original"}, {"a100-80gb"});
    for (int64_t batch_size = 100; batch_size < 110; ++batch_size) {
        request.batch_size = batch_size;
        const PlanRow row = plan(request).rows.front();
        EXPECT_GE(row.best_sequences_per_s, row.sequences_per_s) << batch_size;
        EXPECT_GT(row.best_model_tflops, 0);
    }
}

TEST(PlanLimits, ABatchThatAlmostFitsLacksWhatTheAllocatorCannotGiveBack) {
    const auto source = tests::toy_source();
    auto interpolation = BatchInterpolation::trace({tests::toy_workload()}, source);
    ASSERT_TRUE(interpolation);
    const auto unlimited = interpolation->unlimited_memory(64, {}).value();
    const auto limited = [&](int64_t bytes) {
        return interpolation->limited_memory(64, {}, bytes);
    };
    const auto least = least_capacity_bytes(unlimited, 1 << 20, limited).value();
    EXPECT_GE(least, unlimited.peak_allocated_bytes);
    EXPECT_LE(least, unlimited.peak_reserved_bytes);
    EXPECT_FALSE(limited(least)->out_of_memory);
    EXPECT_TRUE(limited(least - (2 << 20))->out_of_memory);
}

TEST(PlanLimits, NamesTheStageOfZeroInWhichAStepFits) {
    // Parameters, gradients and moments are most of this step: 256 MiB each.
    const Gpu gpu = small_gpu(int64_t{900} << 20);
    PlanRequest request = request_on({"original"}, gpu);
    request.workloads[0].model.hidden_size = 2048;
    request.workloads[0].model.intermediate_size = 8192;
    EXPECT_THAT(plan(request).rows.front().reason, Not(HasSubstr("ZeRO")));
    request.parallel = {.num_gpus = 64};
    EXPECT_THAT(plan(request).rows.front().reason, HasSubstr(" It would fit with ZeRO stage 2."));
}

TEST(PlanLimits, AdviceTracesNoStepThatThePlanHasTraced) {
    const Gpu gpu = small_gpu(int64_t{213} << 20);  // beside NCCL, too little for any recipe
    PlanRequest request = request_on({"original", "tempo"}, gpu);
    request.parallel = {.num_gpus = 2};
    std::multiset<std::pair<std::string, int64_t>> traced;
    const Plan result =
        make_plan(request, data(), noting_source([&](const StepToTrace& step) {
                      traced.emplace(step.workload.recipe_name, step.workload.batch_size);
                  }));
    EXPECT_EQ(result.rows[0].status, PlanStatus::kDoesNotFit);
    EXPECT_THAT(result.rows[0].reason, HasSubstr("Nor would checkpoint"));
    for (const auto& step : traced) {
        EXPECT_EQ(traced.count(step), 1U) << step.first << ", batch " << step.second;
    }
}

TEST(PlanLimits, AttentionsWithoutComparableTimesSaySo) {
    const auto why = [](models::Attention attention, std::string_view gpu) {
        return why_not_comparable(attention, *gpu_named(gpu), data().calibration);
    };
    using models::Attention;
    EXPECT_THAT(why(Attention::kCudnn, "a10"), HasSubstr("is not calibrated"));
    EXPECT_THAT(why(Attention::kEfficient, "h100-sxm"), HasSubstr("do not compare their times"));
    for (const char* gpu : {"v100-16gb", "t4", "a10", "a100-80gb", "rtx3090"}) {
        EXPECT_THAT(why(Attention::kEfficient, gpu), IsEmpty()) << gpu;
        EXPECT_THAT(why(Attention::kFlash, gpu), IsEmpty()) << gpu;
    }
    PlanRequest request = request_for({"attention=cudnn"}, {"a10"});
    request.workloads[0].precision = models::Precision::kFp16;
    EXPECT_THAT(plan(request).rows.front().notes, Contains(HasSubstr("cuDNN's attention")));
    // Nor does a search choose them unasked.
    models::Workload own = with_recipe("original");
    own.precision = models::Precision::kFp16;
    for (const auto& recipe : recipes_of_a_layer(own, *gpu_named("h100-sxm"), data().calibration)) {
        EXPECT_NE(recipe.attention, Attention::kCudnn);
        EXPECT_NE(recipe.attention, Attention::kEfficient);
    }
}

TEST(PlanLimits, WhereTensorsAloneWouldFitTheTextNamesFragmentation) {
    constexpr int64_t kGiB = int64_t{1} << 30;
    const StepMemory step{.peak_allocated_bytes = 22 * kGiB, .peak_reserved_bytes = 24 * kGiB};
    EXPECT_EQ(text_of_need(23 * kGiB, step, 21 * kGiB), "23.0 GiB for tensors");
    EXPECT_EQ(text_of_need(23 * kGiB, step, 22 * kGiB),
              "23.0 GiB for tensors and fragmentation (22.0 GiB for tensors alone)");
}

}  // namespace
