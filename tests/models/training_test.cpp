#include "models/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace models {
namespace {

Workload tiny(const std::string& model_name, Head head, Precision precision) {
    Workload w{.model = *find_model(model_name),
               .head = head,
               .precision = precision,
               .batch_size = 3,
               .seq_len = 16};
    w.model.hidden_size = 32;
    w.model.num_heads = 4;
    w.model.num_layers = 2;
    w.model.intermediate_size = 64;
    w.model.vocab_size = 97;
    w.learning_rate = 1e-3;
    return w;
}

std::vector<double> losses(const Workload& workload, int count) {
    Training training(workload);
    std::vector<double> result;
    for (int i = 0; i < count; ++i) result.push_back(training.step());
    return result;
}

TEST(Training, RepeatsExactlyWithTheSameSeed) {
    const Workload w = tiny("bert-base", Head::kMlm, Precision::kFp32);
    EXPECT_EQ(losses(w, 4), losses(w, 4));
}

TEST(Training, DiffersWithAnotherSeed) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp32);
    const auto first = losses(w, 1);
    w.seed = 1;
    EXPECT_NE(losses(w, 1), first);
}

TEST(Training, LearnsItsOneBatchInEveryPrecision) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16,
                                      Precision::kAmpBf16, Precision::kPureBf16}) {
        Workload w = tiny("gpt2", Head::kLm, precision);
        const auto result = losses(w, 60);
        for (const double loss : result) ASSERT_TRUE(std::isfinite(loss)) << name_of(precision);
        EXPECT_LT(result.back(), 0.9 * result.front()) << name_of(precision);
    }
}

TEST(Training, TempoFollowsTheLossesOfOriginal) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp32);
    const auto original = losses(w, 20);
    w.recipe = *parse_recipe("tempo-packed");
    const auto tempo = losses(w, 20);
    for (std::size_t i = 0; i < original.size(); ++i) EXPECT_NEAR(tempo[i], original[i], 1e-3) << i;
}

TEST(Training, ContinuesWithAnotherBatchSize) {
    Training training(tiny("bert-base", Head::kSquad, Precision::kFp32));
    training.step();
    training.set_batch_size(5);
    EXPECT_TRUE(std::isfinite(training.step()));
    EXPECT_EQ(training.batch().input_ids.size(0), 5);
}

TEST(Training, EveryOptimizerTakesTheSameStep) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp32);
    const auto foreach = losses(w, 5);
    for (const Optimizer variant : {Optimizer::kAdamWLoop, Optimizer::kAdamWFused}) {
        w.recipe.optimizer = variant;
        const auto other = losses(w, 5);
        for (std::size_t i = 0; i < foreach.size(); ++i) EXPECT_NEAR(other[i], foreach[i], 1e-4);
    }
}

}  // namespace
}  // namespace models
