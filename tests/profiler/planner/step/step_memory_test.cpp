#include "profiler/planner/step/step_memory.h"
#include "models/config/compute_capability.h"

#include "tests/profiler/planner/toy_step.h"

#include <gtest/gtest.h>

#include <numeric>

namespace {

using namespace profiler;

constexpr int64_t kMatrixBytes = 64 * 256 * 4;  // each of 4 parameters, gradients; of 8 moments

StepWork toy(int64_t batch_size = 2, int num_steps = 1) {
    return step_work_of(
               tests::make_toy_step(tests::toy_workload(batch_size), {.num_steps = num_steps}))
        .value();
}

int64_t peak(const MemoryOptions& options, const StepWork& step = toy()) {
    return simulate_step(step, options, std::nullopt).peak_allocated_bytes;
}

int64_t of(const PeakContents& contents, Category category) {
    return contents.by_category[static_cast<std::size_t>(category)];
}

TEST(PeakContents, AddUpToThePeak) {
    const StepWork step = toy(64);
    const MemoryOptions options{.persistent_bytes = {1000}};
    const StepMemory memory = simulate_step(step, options, std::nullopt);
    const PeakContents contents = peak_contents(step, options, std::nullopt);
    EXPECT_EQ(
        std::accumulate(contents.by_category.begin(), contents.by_category.end(), int64_t{0}) +
            contents.persistent_bytes + contents.rounding_bytes,
        memory.peak_allocated_bytes);
    EXPECT_EQ(of(contents, Category::kParameter), 4 * kMatrixBytes);
    EXPECT_EQ(of(contents, Category::kOptimizerState), 8 * kMatrixBytes);
    EXPECT_EQ(of(contents, Category::kWorkspace), 8519680);
    EXPECT_EQ(contents.persistent_bytes, 1000);
    EXPECT_EQ(contents.peak_phase, PhaseKind::kBackward);
    EXPECT_GT(of(contents, Category::kActivation), 0);
}

TEST(StepMemory, TakesTheWorkspaceOfTheCard) {
    EXPECT_EQ(models::cublas_workspace_bytes({8, 0}), 8519680);
    EXPECT_EQ(models::cublas_workspace_bytes({9, 0}), 33554432);
    EXPECT_EQ(models::cublas_workspace_bytes({10, 0}), 8519680);
    EXPECT_EQ(peak({.cublas_workspace_bytes = 33554432}) - peak({}), 33554432 - 8519680);
}

TEST(StepMemory, ZeroSpreadsWhatItsStageSays) {
    const auto with = [](int64_t gpus, int stage) {
        return MemoryOptions{.parallel = {.num_gpus = gpus, .zero_stage = stage}};
    };
    const StepWork step = toy(64);
    const auto category_bytes = [&](int stage, Category category) {
        return of(peak_contents(step, with(4, stage), std::nullopt), category);
    };
    EXPECT_EQ(category_bytes(0, Category::kOptimizerState), 8 * kMatrixBytes);
    EXPECT_EQ(category_bytes(1, Category::kOptimizerState), 2 * kMatrixBytes);
    EXPECT_EQ(category_bytes(2, Category::kParameter), 4 * kMatrixBytes);
    EXPECT_EQ(category_bytes(3, Category::kParameter), kMatrixBytes);
    EXPECT_EQ(peak(with(1, 3)), peak({}));
    EXPECT_LT(peak(with(4, 3)), peak(with(4, 1)));
}

TEST(StepMemory, ZeroedGradientsLiveThroughTheStep) {
    const StepWork step = toy(64, 2);
    const PeakContents freed = peak_contents(step, {}, std::nullopt);
    const PeakContents zeroed =
        peak_contents(step, {.gradients = Gradients::kZeroed}, std::nullopt);
    // The peak is where backward begins: its first gradient is there.
    EXPECT_LE(of(freed, Category::kGradient), kMatrixBytes);
    EXPECT_GE(of(zeroed, Category::kGradient), 4 * kMatrixBytes);
    EXPECT_LE(of(zeroed, Category::kGradient), 5 * kMatrixBytes);
}

TEST(StepMemory, IsThatOfTheLastStepAndNotOfTheWarmUp) {
    const auto with_warm_up = [](int64_t bytes) {
        return step_work_of(tests::make_toy_step(tests::toy_workload(64), {.warm_up_bytes = bytes}))
            .value();
    };
    constexpr int64_t kLarge = 100 << 20;
    const StepWork warm = with_warm_up(kLarge);
    EXPECT_GT(warm.first_request, 0U);
    for (const Gradients gradients : {Gradients::kNone, Gradients::kZeroed}) {
        const MemoryOptions options{.gradients = gradients};
        EXPECT_EQ(peak(options, warm), peak(options, toy(64)));
    }
    EXPECT_GT(simulate_step(warm, {}, std::nullopt).peak_reserved_bytes, kLarge);  // kept cached
    EXPECT_TRUE(simulate_step(warm, {}, kLarge).out_of_memory);  // it has to fit all the same
    EXPECT_FALSE(simulate_step(with_warm_up(0), {}, kLarge).out_of_memory);
}

TEST(StepMemory, SaysWhereMemoryRunsOut) {
    const StepMemory memory = simulate_step(toy(64), {}, 20 << 20);
    EXPECT_TRUE(memory.out_of_memory);
    EXPECT_FALSE(simulate_step(toy(64), {}, int64_t{1} << 30).out_of_memory);
}

TEST(DataParallelTerms, AreNamed) {
    const Parameters p{.size_bytes = 1000, .largest_tensor_bytes = 500, .largest_layer_bytes = 600};
    const auto names = [&](int64_t gpus, int stage, bool buckets) {
        std::string text;
        for (const MemoryTerm& term :
             data_parallel_terms({.num_gpus = gpus, .zero_stage = stage}, p, buckets, 7)) {
            text += term.name + "=" + std::to_string(term.size_bytes) + " ";
        }
        return text;
    };
    EXPECT_EQ(names(1, 0, true), "");
    EXPECT_EQ(names(4, 0, true), "nccl_bytes=7 ddp_buckets_bytes=1000 ");
    EXPECT_EQ(names(4, 1, false), "nccl_bytes=7 ");
    EXPECT_EQ(names(4, 2, true), "nccl_bytes=7 reduce_bucket_bytes=26214400 ");
    EXPECT_EQ(names(4, 3, true),
              "nccl_bytes=7 reduce_bucket_bytes=26214400 gathered_parameters_bytes=1200 ");
}

TEST(CommunicatedBytes, AreThoseOfARing) {
    EXPECT_EQ(communicated_bytes({.num_gpus = 4}, 1000), 1500);
    EXPECT_EQ(communicated_bytes({.num_gpus = 4, .zero_stage = 2}, 1000), 1500);
    EXPECT_EQ(communicated_bytes({.num_gpus = 4, .zero_stage = 3}, 1000), 2250);
}

}  // namespace
