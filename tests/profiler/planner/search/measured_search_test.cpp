#include "profiler/planner/search/measured_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

/// The searches run on a toy device: its memory and times are simple sums, so that the best recipe
/// is known.
namespace {

using namespace profiler;
using models::LayerRecipes;
using testing::ElementsAre;
using testing::HasSubstr;

const ConversionSpace kSpace{.from = {},
                             .to = {.gelu = models::Gelu::kInPlace,
                                    .layer_norm = models::LayerNorm::kFromOutput,
                                    .attention = models::Attention::kRecomputeDropout},
                             .num_layers = 4};

/// Bytes and time of one sequence in a layer with all techniques off; what each saves and costs.
struct ToyDevice {
    double memory = 1000;
    double layer_bytes = 25;
    double layer_ns = 1e6;
    double step_ns = 4e6;  // once a step: the larger the batch, the less it matters
    double gelu_bytes = 5, norm_bytes = 3, dropout_bytes = 6;
    double gelu_ns = 0, norm_ns = 0, dropout_ns = 0;

    double bytes(const models::Recipe& recipe) const {
        return layer_bytes - (recipe.gelu == models::Gelu::kInPlace ? gelu_bytes : 0) -
               (recipe.layer_norm == models::LayerNorm::kFromOutput ? norm_bytes : 0) -
               (recipe.attention == models::Attention::kRecomputeDropout ? dropout_bytes : 0);
    }
    double time(const models::Recipe& recipe) const {
        return layer_ns + (recipe.gelu == models::Gelu::kInPlace ? gelu_ns : 0) +
               (recipe.layer_norm == models::LayerNorm::kFromOutput ? norm_ns : 0) +
               (recipe.attention == models::Attention::kRecomputeDropout ? dropout_ns : 0);
    }
    models::Result<std::optional<PlanPoint>> step(const LayerRecipes& recipes,
                                                  int64_t batch_size) const {
        double total_bytes = 0, total_ns = 0;
        for (int64_t layer = 0; layer < kSpace.num_layers; ++layer) {
            const models::Recipe recipe = recipe_of_layer(recipes, layer);
            total_bytes += bytes(recipe);
            total_ns += time(recipe);
        }
        const auto sequences = static_cast<double>(batch_size);
        const double time_ns = step_ns + total_ns * sequences;
        if (total_bytes * sequences > memory) return std::nullopt;
        return PlanPoint{.batch_size = batch_size,
                         .step_time_ns = static_cast<int64_t>(time_ns),
                         .sequences_per_s = sequences * 1e9 / time_ns};
    }
    MeasureRecipe measure_recipe() const {
        return [this](const LayerRecipes& recipes, int64_t likely) {
            return measure_batches([&](int64_t batch_size) { return step(recipes, batch_size); },
                                   likely, 4096);
        };
    }
};

MeasureBatch fits_up_to(int64_t largest, std::vector<int64_t>& tried) {
    return [largest, &tried](int64_t batch_size) -> std::optional<PlanPoint> {
        tried.push_back(batch_size);
        if (batch_size > largest) return std::nullopt;
        const double time_ns = 100.0 * static_cast<double>(batch_size) + 50;
        return PlanPoint{.batch_size = batch_size,
                         .step_time_ns = static_cast<int64_t>(time_ns),
                         .sequences_per_s = static_cast<double>(batch_size) * 1e9 / time_ns};
    };
}

TEST(MeasureBatches, DoublesAndBisectsWithoutALikelyBatch) {
    std::vector<int64_t> tried;
    const auto measured = measure_batches(fits_up_to(11, tried), 0, 4096).value();
    EXPECT_EQ(measured.max_batch_size, 11);
    EXPECT_THAT(tried, ElementsAre(1, 2, 4, 8, 16, 12, 10, 11));
    EXPECT_EQ(measured.best()->batch_size, 11);
    EXPECT_TRUE(
        std::is_sorted(measured.curve.begin(), measured.curve.end(),
                       [](const auto& a, const auto& b) { return a.batch_size < b.batch_size; }));
}

TEST(MeasureBatches, FindsTheLargestBatchFromEveryLikelyOne) {
    for (int64_t largest = 0; largest <= 20; ++largest) {
        for (int64_t likely = 0; likely <= 40; ++likely) {
            std::vector<int64_t> tried;
            const auto measured = measure_batches(fits_up_to(largest, tried), likely, 20).value();
            EXPECT_EQ(measured.max_batch_size, largest) << likely;
            std::sort(tried.begin(), tried.end());
            EXPECT_EQ(std::unique(tried.begin(), tried.end()), tried.end()) << "each once";
        }
    }
}

TEST(MeasureBatches, NeedsFewStepsNearTheLikelyBatch) {
    std::vector<int64_t> tried;
    ASSERT_TRUE(measure_batches(fits_up_to(33, tried), 32, 4096));
    EXPECT_THAT(tried, ElementsAre(32, 33, 35, 34));
}

TEST(MeasureBatches, PassesAnErrorOn) {
    const MeasureBatch broken = [](int64_t) {
        return models::Result<std::optional<PlanPoint>>(models::fail("No."));
    };
    const auto measured = measure_batches(broken, 0, 4096);
    ASSERT_FALSE(measured);
    EXPECT_EQ(measured.error().message, "No.");
}

TEST(Techniques, AreTheSwitchesInWhichTheRecipesDiffer) {
    EXPECT_THAT(*techniques_of(kSpace), ElementsAre("gelu=in_place", "layer_norm=from_output",
                                                    "attention=recompute_dropout"));
    ConversionSpace same = kSpace;
    same.to = same.from;
    EXPECT_THAT(techniques_of(same).error().message, HasSubstr("the same"));
    ConversionSpace step = kSpace;
    step.to.optimizer = models::Optimizer::kSgd;
    EXPECT_THAT(techniques_of(step).error().message, HasSubstr("optimizer"));
}

TEST(Techniques, GoToTheFirstLayersOfEach) {
    const auto recipe = recipe_of(kSpace, *techniques_of(kSpace), {1, 4, 0});
    EXPECT_EQ(recipe_of_layer(recipe, 0).gelu, models::Gelu::kInPlace);
    EXPECT_EQ(recipe_of_layer(recipe, 1).gelu, models::Gelu::kOriginal);
    EXPECT_EQ(recipe_of_layer(recipe, 3).layer_norm, models::LayerNorm::kFromOutput);
    EXPECT_EQ(recipe_of_layer(recipe, 0).attention, models::Attention::kEager);
}

TEST(FastSearch, ConvertsEverythingWhereThroughputStillRises) {
    const ToyDevice device{.step_ns = 400e6};
    const auto search = search_fast(kSpace, device.measure_recipe()).value();
    EXPECT_EQ(search.tried.size(), 2u);
    EXPECT_THAT(search.tried[search.chosen].counts, ElementsAre(4, 4, 4));
    EXPECT_GT(search.tried[1].max_batch_size, search.tried[0].max_batch_size);
}

TEST(FastSearch, TriesNothingElseWhereThroughputIsSaturated) {
    const ToyDevice device{.step_ns = 0};
    const auto search = search_fast(kSpace, device.measure_recipe()).value();
    EXPECT_EQ(search.tried.size(), 1u);
    EXPECT_EQ(search.chosen, 0u);
    EXPECT_THAT(search.why, HasSubstr("no longer rises"));
}

/// AutoTempo's fast mode never runs what it chose.
TEST(FastSearch, KeepsTheOriginalWhereTheTechniquesCostMoreThanTheLargerBatchGains) {
    const ToyDevice device{.step_ns = 400e6, .dropout_ns = 200e6};
    const auto search = search_fast(kSpace, device.measure_recipe()).value();
    EXPECT_EQ(search.tried.size(), 2u);
    EXPECT_EQ(search.chosen, 0u);
}

/// AutoTempo's smart mode moves all techniques together, so it cannot leave out one of them.
TEST(SmartSearch, LeavesOutATechniqueThatDoesNotPay) {
    const ToyDevice device{.step_ns = 100e6, .norm_ns = 20e6};
    const auto search = search_smart(kSpace, device.measure_recipe()).value();
    EXPECT_THAT(search.tried[search.chosen].counts, ElementsAre(4, 0, 4));
    EXPECT_THAT(search.why, HasSubstr("layer_norm=from_output in 0 of 4 layers"));
}

TEST(SmartSearch, IsAsFastAsEveryRecipeThatItTried) {
    for (const double cost : {0.0, 0.5e6, 2e6, 8e6, 40e6}) {
        const ToyDevice device{.step_ns = 60e6, .gelu_ns = cost, .norm_ns = cost / 3};
        const auto search = search_smart(kSpace, device.measure_recipe()).value();
        const double best = search.tried[search.chosen].sequences_per_s();
        for (const MeasuredRecipe& one : search.tried) {
            EXPECT_LE(one.sequences_per_s(), best * (1 + kLeastGain));
        }
    }
}

TEST(SmartSearch, KeepsTheOriginalWhereNothingPays) {
    const ToyDevice device{.step_ns = 0, .gelu_ns = 1e6, .norm_ns = 1e6, .dropout_ns = 1e6};
    const auto search = search_smart(kSpace, device.measure_recipe()).value();
    EXPECT_EQ(search.chosen, 0u);
    EXPECT_THAT(search.why, HasSubstr("trains faster than none"));
}

/// AutoTempo compares the times of steps at different batches: the larger batch always loses.
TEST(SmartSearch, ComparesTimeASequenceAndNotTimeAStep) {
    const ToyDevice device{.step_ns = 400e6};
    const auto search = search_smart(kSpace, device.measure_recipe()).value();
    const MeasuredRecipe& chosen = search.tried[search.chosen];
    EXPECT_GT(chosen.best()->step_time_ns, search.tried[0].best()->step_time_ns);
    EXPECT_GT(chosen.sequences_per_s(), search.tried[0].sequences_per_s());
}

TEST(SmartSearch, FindsARecipeThatFitsWhereTheOriginalDoesNot) {
    const ToyDevice device{.memory = 80};
    const auto search = search_smart(kSpace, device.measure_recipe()).value();
    EXPECT_EQ(search.tried[0].max_batch_size, 0);
    EXPECT_EQ(search.tried[search.chosen].max_batch_size, 1);
}

TEST(SmartSearch, TriesNoRecipeTwice) {
    const ToyDevice device;
    const auto search = search_smart(kSpace, device.measure_recipe()).value();
    for (std::size_t i = 0; i < search.tried.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            EXPECT_NE(search.tried[i].counts, search.tried[k].counts);
        }
    }
}

}  // namespace
