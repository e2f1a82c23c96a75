#include "profiler/planner/search/auto_plan.h"

#include "profiler/planner/plan_row.h"
#include "tests/profiler/planner/toy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace {

using namespace profiler;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

using tests::data;

const profiler::SoftwareEnvironment& environment() {
    return *tests::environment_named("torch-2.11");
}

/// Six layers, wide enough that kernels and not the host take the time.
models::Workload workload(const std::string& recipe = "original") {
    models::Workload w = tests::toy_workload();
    w.model.num_layers = 6;
    w.model.hidden_size = 512;
    w.model.intermediate_size = 2048;
    w.seq_len = 512;
    return models::with_recipe(w, recipe).value();
}

/// A GPU with so much for tensors.
Gpu gpu_with(int64_t bytes) {
    Gpu gpu = **find_gpu(data().gpus, "a100-80gb");
    gpu.id = "small";
    gpu.usable_memory_bytes.value =
        static_cast<double>(bytes) + environment().context_bytes("small").value;
    return gpu;
}

AutoRequest request_for(const Gpu& gpu, std::optional<int64_t> batch_size = {},
                        const std::vector<std::string>& candidates = {}) {
    AutoRequest request{.plan = {.workloads = {workload()},
                                 .gpus = {&gpu},
                                 .environment = &environment(),
                                 .batch_size = batch_size},
                        .candidates = {}};
    for (const std::string& recipe : candidates) {
        request.candidates.push_back(models::parse_recipe(recipe).value());
    }
    return request;
}

AutoRow search(const AutoRequest& request) {
    return make_auto_plan(request, data(), tests::toy_source()).rows.at(0);
}

/// What `plan` says of a recipe, at a batch or without one.
PlanRow planned(const AutoRequest& request, const std::string& recipe,
                std::optional<int64_t> batch_size = {}) {
    PlanRequest one = request.plan;
    one.workloads = {workload(recipe)};
    one.batch_size = batch_size;
    return make_plan(one, data(), tests::toy_source()).rows.at(0);
}

const FrontierPoint& chosen(const AutoRow& row) {
    const auto point = std::find_if(row.frontier.begin(), row.frontier.end(),
                                    [](const FrontierPoint& one) { return one.is_chosen; });
    EXPECT_NE(point, row.frontier.end());
    return *point;
}

constexpr int64_t kMiB = 1 << 20;

TEST(AutoPlan, ReportsThePeakThatTheSimulatorGivesTheRecipe) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRequest request = request_for(gpu, 8);
    const AutoRow row = search(request);
    ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
    const PlanRow same = planned(request, row.row.workload.recipe_name, 8);
    ASSERT_EQ(same.status, PlanStatus::kOk) << same.reason;
    const StepMemory& peaks = row.row.memory->contents.peaks;
    EXPECT_EQ(peaks.peak_allocated_bytes, same.memory->contents.peaks.peak_allocated_bytes);
    EXPECT_EQ(peaks.peak_reserved_bytes, same.memory->contents.peaks.peak_reserved_bytes);
    EXPECT_LE(peaks.peak_reserved_bytes, 480 * kMiB);
    EXPECT_EQ(chosen(row).peak_allocated_bytes, peaks.peak_allocated_bytes);
    EXPECT_EQ(chosen(row).step_time_ns, whole_ns(row.row.time->total_ns()));
}

TEST(AutoPlan, FrontierOfABatchRisesInPeakAndFallsInTime) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRow row = search(request_for(gpu, 8));
    ASSERT_GT(row.frontier.size(), 3U);
    for (std::size_t i = 1; i < row.frontier.size(); ++i) {
        EXPECT_GT(row.frontier[i].peak_allocated_bytes, row.frontier[i - 1].peak_allocated_bytes);
        EXPECT_LT(row.frontier[i].step_time_ns, row.frontier[i - 1].step_time_ns);
    }
}

TEST(AutoPlan, EstimatesOfTheFrontierAreNearWhatTheSimulatorSays) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRequest request = request_for(gpu, 8);
    for (const FrontierPoint& point : search(request).frontier) {
        const PlanRow row = planned(request, point.recipe, 8);
        if (row.status != PlanStatus::kOk) continue;  // above the GPU's memory
        const auto peak = row.memory->contents.peaks.peak_allocated_bytes;
        EXPECT_NEAR(static_cast<double>(point.peak_allocated_bytes) / static_cast<double>(peak), 1,
                    0.02)
            << point.recipe;
        EXPECT_NEAR(static_cast<double>(point.step_time_ns) / row.time->total_ns(), 1, 0.01);
    }
}

/// Every choice of three recipes for three layers, each planned by itself. The search proposes by
/// what is allocated; where segments lie can let a choice fit that it does not propose.
TEST(AutoPlan, ChoosesNearlyTheFastestOfAllChoicesThatFit) {
    const std::vector<std::string> names{"original", "tempo-gelu", "checkpoint"};
    // With passes of its own the in-place GELU is between the two others in memory and in time.
    const StepSource source = tests::toy_source({.in_place_passes = 3});
    std::set<std::string> chosen_recipes;
    for (int64_t size_mib = 160; size_mib < 400; size_mib += 15) {
        const Gpu gpu = gpu_with(size_mib * kMiB);
        AutoRequest request = request_for(gpu, 8, names);
        request.plan.workloads[0].model.num_layers = 3;
        double fastest_ns = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < 27; ++i) {
            const std::string text =
                "original+" + names[i % 3] + "@0+" + names[i / 3 % 3] + "@1+" + names[i / 9] + "@2";
            PlanRequest one = request.plan;
            one.workloads = {models::with_recipe(one.workloads[0], text).value()};
            const PlanRow row = make_plan(one, data(), source).rows.at(0);
            if (row.status == PlanStatus::kOk) {
                fastest_ns = std::min(fastest_ns, row.time->total_ns());
            }
        }
        const AutoRow row = make_auto_plan(request, data(), source).rows.at(0);
        ASSERT_EQ(row.row.status == PlanStatus::kOk, std::isfinite(fastest_ns)) << size_mib;
        if (row.row.status != PlanStatus::kOk) continue;
        chosen_recipes.insert(row.row.workload.recipe_name);
        EXPECT_NEAR(row.row.time->total_ns() / fastest_ns, 1, 0.05) << size_mib << " MiB";
    }
    EXPECT_GE(chosen_recipes.size(), 3U);  // the sizes lead to different choices
}

TEST(AutoPlan, WithoutABatchTakesTheOneOfTheHighestThroughput) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRequest request = request_for(gpu);
    const AutoRow row = search(request);
    ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
    for (const char* recipe : {"original", "tempo", "checkpoint", "tempo-gelu"}) {
        const PlanRow uniform = planned(request, recipe);
        EXPECT_GE(row.row.sequences_per_s, uniform.best_sequences_per_s * (1 - 1e-9)) << recipe;
    }
    EXPECT_EQ(chosen(row).batch_size, row.row.batch_size);
    for (std::size_t i = 1; i < row.frontier.size(); ++i) {
        EXPECT_GT(row.frontier[i].batch_size, row.frontier[i - 1].batch_size);
        EXPECT_LT(row.frontier[i].sequences_per_s, row.frontier[i - 1].sequences_per_s);
    }
}

TEST(AutoPlan, LeavesTheRecipeAloneWhereMemoryIsNoConcern) {
    const Gpu gpu = gpu_with(int64_t{1} << 36);
    const AutoRow row = search(request_for(gpu, 2, {"original", "checkpoint"}));
    EXPECT_EQ(row.row.workload.recipe_name, "original");
    EXPECT_THAT(row.sentence, HasSubstr("original is the fastest recipe that fits"));
    EXPECT_THAT(row.why, HasSubstr("No recipe is faster"));
}

/// Where batches are large, rounding makes the search's own estimate end a little beyond the GPU.
TEST(AutoPlan, FindsABatchOnEveryCardThatTheOnlyRecipeFits) {
    for (int64_t size_mib = 400; size_mib <= 25600; size_mib *= 2) {
        const Gpu gpu = gpu_with(size_mib * kMiB);
        const AutoRequest request = request_for(gpu, {}, {"original"});
        const AutoRow row = search(request);
        ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
        const PlanRow plain = planned(request, "original");
        EXPECT_GE(row.row.sequences_per_s, plain.best_sequences_per_s * 0.98) << size_mib;
        EXPECT_FALSE(row.frontier.empty()) << size_mib;
        for (const FrontierPoint& point : row.frontier) {
            EXPECT_LE(point.batch_size, *plain.max_batch_size) << size_mib;
        }
    }
}

/// As Tempo's release on a V100 in 16 bits: it reaches a larger batch, and is slower there.
TEST(AutoPlan, DoesNotChooseWhatReachesALargerBatchButDoesNotPay) {
    const Gpu gpu = gpu_with(700 * kMiB);
    const AutoRequest request = request_for(gpu, {}, {"original", "tempo-gelu"});
    const StepSource slow = tests::toy_source({.in_place_passes = 20});
    PlanRequest uniform = request.plan;
    uniform.workloads.push_back(workload("tempo-gelu"));
    const Plan plan = make_plan(uniform, data(), slow);
    ASSERT_GT(*plan.rows[1].max_batch_size, *plan.rows[0].max_batch_size);
    ASSERT_LT(plan.rows[1].best_sequences_per_s, plan.rows[0].best_sequences_per_s);
    const AutoRow row = make_auto_plan(request, data(), slow).rows.at(0);
    EXPECT_EQ(row.row.workload.recipe_name, "original");
    EXPECT_NEAR(row.row.sequences_per_s, plan.rows[0].best_sequences_per_s, 1e-6);
    // And it does where it pays.
    EXPECT_NE(search(request).row.workload.recipe_name, "original");
}

TEST(AutoPlan, SaysInWordsWhatTheRecipeBuys) {
    const Gpu gpu = gpu_with(420 * kMiB);
    const AutoRow row = search(request_for(gpu, 8));
    ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
    EXPECT_THAT(row.sentence, testing::MatchesRegex(
                                  "Fits batch 8, where original fits only up to [1-7]\\. A step "
                                  "takes [0-9.]+ % more time than original would take "
                                  "there\\. It uses .*checkpointing in .*layer.*\\."));
    EXPECT_THAT(row.why, HasSubstr("more than the GPU has."));
    EXPECT_THAT(row.why, Not(HasSubstr("="))) << "no text of a recipe";
}

TEST(AutoPlan, BeginsWithTheBatchAndTheRateWhereItChoosesALargerBatch) {
    int num_larger = 0;
    for (const int64_t mib : {300, 420, 480, 700}) {
        const Gpu gpu = gpu_with(mib * kMiB);
        const AutoRequest request = request_for(gpu);
        const AutoRow row = search(request);
        ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
        const int64_t own_max_batch = planned(request, "original", 1).max_batch_size.value_or(0);
        if (own_max_batch == 0 || *row.row.batch_size <= own_max_batch) continue;
        ++num_larger;
        const std::string start = "Fits batch " + std::to_string(*row.row.batch_size) +
                                  " instead of " + std::to_string(own_max_batch) +
                                  " with original. ";
        ASSERT_THAT(row.sentence, testing::StartsWith(start));
        EXPECT_THAT(row.sentence.substr(start.size()),
                    testing::MatchesRegex("[0-9.]+ sequences/s instead of [0-9.]+\\. It uses .*"));
    }
    EXPECT_GT(num_larger, 0);
}

TEST(AutoPlan, WhatDoesNotFitAtBatchOneSaysByHowMuchAndWhatWould) {
    const Gpu gpu = gpu_with(330 * kMiB);
    AutoRequest request = request_for(gpu, 1);
    request.plan.workloads[0].seq_len = 2048;
    const AutoRow row = search(request);
    ASSERT_EQ(row.row.status, PlanStatus::kOk) << row.row.reason;
    EXPECT_THAT(row.sentence, testing::StartsWith("Fits batch 1, where original needs "));
    EXPECT_THAT(row.sentence, HasSubstr("MiB more than the GPU has. A step takes "));
}

TEST(AutoPlan, SaysHowMuchIsMissingWhereNoRecipeFits) {
    const Gpu gpu = gpu_with(60 * kMiB);
    for (const std::optional<int64_t> batch_size : {std::optional<int64_t>(1), {}}) {
        const AutoRow row = search(request_for(gpu, batch_size));
        EXPECT_EQ(row.row.status, PlanStatus::kDoesNotFit);
        EXPECT_THAT(row.row.reason, HasSubstr("Batch 1 needs "));
        EXPECT_THAT(row.row.reason, HasSubstr("more than small has"));
        EXPECT_THAT(row.row.reason, HasSubstr("the recipe that needs the least memory"));
    }
}

TEST(AutoPlan, TakesTheBatchAtWhichTheChosenRecipeIsFastest) {
    for (const int64_t mib : {300, 480, 700}) {
        const Gpu gpu = gpu_with(mib * kMiB);
        const PlanRow row = search(request_for(gpu)).row;
        ASSERT_EQ(row.status, PlanStatus::kOk) << row.reason;
        EXPECT_GE(row.sequences_per_s, 0.999 * row.best_sequences_per_s) << mib;
    }
}

TEST(AutoPlan, OfOneRecipeSaysThatItWasAlone) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRow row = search(request_for(gpu, 4, {"original"}));
    EXPECT_EQ(row.sentence, "original fits at batch 4. No other recipe was tried.");
    EXPECT_THAT(row.why, HasSubstr("only one recipe"));
}

TEST(AutoPlan, RefusesCardsWithoutTimes) {
    const AutoRow row = search(request_for(**find_gpu(data().gpus, "mi300x"), 1));
    EXPECT_EQ(row.row.status, PlanStatus::kNotSupported);
    EXPECT_THAT(row.row.reason, HasSubstr("compares times"));
}

TEST(AutoPlan, SaysWhenACardRunsNoneOfTheRecipes) {
    const Gpu gpu = gpu_with(480 * kMiB);
    const AutoRequest request = request_for(gpu, 1, {"flash"});  // not in fp32
    EXPECT_THAT(search(request).row.reason, HasSubstr("can run none of the given recipes"));
}

}  // namespace
