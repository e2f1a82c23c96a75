#include "profiler/planner/step/layer_profile.h"

#include "tests/profiler/planner/toy_step.h"

#include <gtest/gtest.h>

namespace {

using namespace profiler;

constexpr int64_t kWord = 4;

/// Of a toy of five layers: n = B·S rows, H = 64, I = 256.
LayerProfile profile(const std::string& recipe) {
    models::Workload workload = tests::toy_workload(4);
    workload.model.num_layers = 5;
    workload = models::with_recipe(workload, recipe).value();
    return profile_layers(tests::make_toy_step(workload)).value();
}

constexpr int64_t kRows = 4 * 32;
constexpr int64_t kHidden = kRows * 64 * kWord;  // the layer's input and its output
constexpr int64_t kInner = kRows * 256 * kWord;  // GELU's input and its output
constexpr int64_t kWeight = 64 * 256 * kWord;

TEST(LayerProfile, CountsWhatALayerKeepsAndWhatItNeedsForAMoment) {
    const LayerProfile original = profile("original");
    EXPECT_EQ(original.bytes[2].saved_bytes, kHidden + 2 * kInner);
    EXPECT_EQ(original.bytes[2].gradient_bytes, 2 * kWeight);
    // down.grad, dgelu and dup live at once, and grad has gone.
    EXPECT_EQ(original.bytes[2].backward_bytes, kWeight + 2 * kInner - kHidden);
    EXPECT_EQ(original.bytes[2].forward_bytes, original.bytes[2].saved_bytes);
}

TEST(LayerProfile, IsThatOfEachLayersOwnRecipeWhateverItsNeighboursHave) {
    const LayerProfile mixed = profile("gelu=in_place@1+checkpoint@2-3");
    EXPECT_EQ(mixed.bytes[1].saved_bytes, kHidden + kInner);
    EXPECT_EQ(mixed.bytes[2].saved_bytes, kHidden);
    EXPECT_EQ(mixed.bytes[3].saved_bytes, kHidden);
    for (const std::size_t layer : {1, 2, 3}) {
        EXPECT_EQ(mixed.bytes[layer].gradient_bytes, 2 * kWeight);
    }
}

TEST(LayerProfile, HoldsTheOpsOfEachLayer) {
    const LayerProfile mixed = profile("checkpoint@2");
    EXPECT_EQ(mixed.work[1].ops.size(), 8U);   // three forward, five backward
    EXPECT_EQ(mixed.work[2].ops.size(), 10U);  // two of them again
}

TEST(LayerProfile, NeedsOpsOfEveryLayer) {
    Trace trace = tests::make_toy_step(tests::toy_workload(4));
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
        trace.ops.set<&Op::module_path>(Id<Op>(i), {});
    EXPECT_FALSE(profile_layers(trace));
}

}  // namespace
