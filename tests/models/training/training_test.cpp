#include "models/training/training.h"
#include "models/ops/checkpoint.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/autograd.h>

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
    for (const Precision precision :
         {Precision::kFp32, Precision::kBf16, Precision::kFp16, Precision::kAmpBf16,
          Precision::kAmpFp16, Precision::kPureBf16}) {
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

TEST(Training, EveryRecipeTrainsUnderAutocast) {
    for (const Precision precision : {Precision::kAmpBf16, Precision::kAmpFp16}) {
        Workload w = tiny("bert-base", Head::kMlm, precision);
        const double expected = losses(w, 1).front();
        for (const char* recipe : {"tempo", "tempo-packed", "tempo-philox", "deepspeed-all",
                                   "deepspeed-gelu-checkpoint", "checkpoint", "checkpoint=sqrt"}) {
            w.recipe = *parse_recipe(recipe);
            const auto result = losses(w, 3);
            // Two recipes differ by one rounding to 16 bits per op, on a loss of about 4.6.
            EXPECT_NEAR(result.front(), expected, 0.05) << recipe << ' ' << name_of(precision);
            EXPECT_TRUE(std::isfinite(result.back())) << recipe << ' ' << name_of(precision);
        }
    }
}

TEST(Training, CheckpointingRunsAgainUnderTheForwardsAutocast) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kAmpBf16);
    const auto expected = losses(w, 6);
    w.recipe = *parse_recipe("checkpoint");
    const auto checkpointed = losses(w, 6);
    // The same ops in the same precision, but gradients with several sources are added in another
    // order.
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(checkpointed[i], expected[i], 5e-5);
}

TEST(Training, PadsInEveryPrecision) {
    for (const Precision precision :
         {Precision::kFp32, Precision::kBf16, Precision::kFp16, Precision::kPureBf16,
          Precision::kPureFp16, Precision::kAmpBf16, Precision::kAmpFp16, Precision::kFp64}) {
        Workload w = tiny("bert-base", Head::kMlm, precision);
        w.padding = Padding::kRandom;
        EXPECT_TRUE(std::isfinite(losses(w, 1).front())) << name_of(precision);
    }
}

TEST(Training, SkipsTheUpdateWhileTheLossScaleIsTooLarge) {
    // The loss of head `layers` is a sum with random weights: 65536 times it overflows half.
    Training training(tiny("bert-base", Head::kLayers, Precision::kFp16));
    training.step();
    EXPECT_TRUE(training.skipped_update());
    EXPECT_TRUE(training.optimizer().state().empty());
    for (int i = 0; i < 16 && training.skipped_update(); ++i) training.step();
    EXPECT_FALSE(training.skipped_update());
    EXPECT_FALSE(training.optimizer().state().empty());
}

/// The gradients of every parameter at the end of each backward.
class GradientListener final : public StepListener {
public:
    explicit GradientListener(const Training& training) : training_(training) {}
    void on_phase_begin(TrainingPhase phase) override { phases.push_back(phase); }
    void on_phase_end(TrainingPhase) noexcept override {}
    void on_gradients() override {
        std::vector<Tensor> gradients;
        for (const Parameter& parameter : training_.model().parameters()) {
            gradients.push_back(parameter.value.grad().clone());
        }
        at_backward.push_back(std::move(gradients));
    }

    std::vector<TrainingPhase> phases;
    std::vector<std::vector<Tensor>> at_backward;

private:
    const Training& training_;
};

/// With a learning rate of 0, two steps of one batch each see the masks of the two micro-batches.
TEST(Training, AddsUpTheGradientsOfItsMicroBatches) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp64);
    w.learning_rate = 0;
    w.recipe.optimizer = Optimizer::kSgd;
    Training single(w);
    GradientListener expected(single);
    const double first = single.step(&expected);
    const double second = single.step(&expected);
    ASSERT_NE(first, second) << "dropout draws other masks";
    w.gradient_accumulation_steps = 2;
    Training accumulating(w);
    GradientListener seen(accumulating);
    EXPECT_NEAR(accumulating.step(&seen), (first + second) / 2, 1e-12);
    using enum TrainingPhase;
    EXPECT_EQ(seen.phases,
              (std::vector{kForward, kLoss, kBackward, kForward, kLoss, kBackward, kOptimizer}));
    ASSERT_EQ(seen.at_backward.size(), 2U);
    for (std::size_t i = 0; i < seen.at_backward[0].size(); ++i) {
        const Tensor a = expected.at_backward[0][i] / 2;
        const Tensor b = expected.at_backward[1][i] / 2;
        EXPECT_TRUE(at::allclose(seen.at_backward[0][i], a, 1e-10, 1e-14)) << i;
        EXPECT_TRUE(at::allclose(seen.at_backward[1][i], a + b, 1e-10, 1e-14)) << i;
    }
}

TEST(Training, StartsEachAccumulationAnew) {
    Workload w = tiny("gpt2", Head::kLm, Precision::kFp32);
    w.gradient_accumulation_steps = 3;
    Training training(w);
    training.step();
    for (const Parameter& parameter : training.model().parameters()) {
        EXPECT_FALSE(parameter.value.grad().defined()) << parameter.name;
    }
}

TEST(Training, LearnsWithMicroBatchesInEveryPrecision) {
    for (const Precision precision : {Precision::kFp32, Precision::kFp16, Precision::kAmpBf16}) {
        Workload w = tiny("gpt2", Head::kLm, precision);
        w.gradient_accumulation_steps = 2;
        const auto result = losses(w, 40);
        EXPECT_LT(result.back(), 0.95 * result.front()) << name_of(precision);
    }
}

TEST(Training, ContinuesWithAnotherBatchSize) {
    Training training(tiny("bert-base", Head::kSquad, Precision::kFp32));
    training.step();
    training.set_batch_size(5);
    EXPECT_TRUE(std::isfinite(training.step()));
    EXPECT_EQ(training.batch().input_ids.size(0), 5);
}

/// Loshchilov and Hutter 2017, Algorithm 2, with torch's defaults, for a single number.
double adamw_by_hand(double weight, const std::vector<double>& gradients, double learning_rate) {
    double m = 0, v = 0;
    for (std::size_t t = 1; t <= gradients.size(); ++t) {
        const double g = gradients[t - 1];
        weight -= learning_rate * 0.01 * weight;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
        weight -= learning_rate * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
    return weight;
}

TEST(Optimizer, EveryAdamWIsTheAlgorithmOfThePaper) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp64);
    const std::vector<double> gradients{0.3, -0.02, 1.5};
    for (const Optimizer variant :
         {Optimizer::kAdamW, Optimizer::kAdamWLoop, Optimizer::kAdamWFused}) {
        w.recipe.optimizer = variant;
        const std::vector<Parameter> parameters{{"a", at::full({2, 3}, 0.7, at::kDouble)},
                                                {"b", at::full({5}, -1.3, at::kDouble)}};
        const auto optimizer = make_optimizer(w, parameters);
        for (const double g : gradients) {
            optimizer->step({at::full({2, 3}, g, at::kDouble), at::full({5}, -g, at::kDouble)});
        }
        std::vector<double> negative;
        for (const double g : gradients) negative.push_back(-g);
        EXPECT_NEAR(parameters[0].value[1][2].item<double>(),
                    adamw_by_hand(0.7, gradients, w.learning_rate), 1e-12);
        EXPECT_NEAR(parameters[1].value[4].item<double>(),
                    adamw_by_hand(-1.3, negative, w.learning_rate), 1e-12);
    }
}

/// Of a tensor whose elements are all alike, of which each has the tensor's |w| / |d|.
double lamb_by_hand(double weight, const std::vector<double>& gradients, double learning_rate) {
    double m = 0, v = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const auto t = static_cast<double>(i + 1);
        m = 0.9 * m + 0.1 * gradients[i];
        v = 0.999 * v + 0.001 * gradients[i] * gradients[i];
        const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
        const double direction = m_hat / (std::sqrt(v_hat) + 1e-6) + 0.01 * weight;
        const bool has_ratio = weight != 0 && direction != 0;
        const double ratio = has_ratio ? std::abs(weight) / std::abs(direction) : 1;
        weight -= learning_rate * ratio * direction;
    }
    return weight;
}

TEST(Optimizer, LambIsTheAlgorithmOfThePaper) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp64);
    w.recipe.optimizer = Optimizer::kLamb;
    const std::vector<double> gradients{0.3, -0.02, 1.5};
    for (const double start : {0.7, -1.3, 0.0}) {
        const std::vector<Parameter> parameters{{"a", at::full({2, 3}, start, at::kDouble)},
                                                {"b", at::full({5}, 9.0, at::kDouble)}};
        const auto optimizer = make_optimizer(w, parameters);
        for (const double g : gradients) {
            optimizer->step({at::full({2, 3}, g, at::kDouble), at::full({5}, -g, at::kDouble)});
        }
        EXPECT_NEAR(parameters[0].value[1][2].item<double>(),
                    lamb_by_hand(start, gradients, w.learning_rate), 1e-12);
    }
}

TEST(Optimizer, LambScalesEachTensorByItsOwnNorms) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp64);
    w.recipe.optimizer = Optimizer::kLamb;
    const at::Tensor weight = at::tensor({3.0, -4.0}, at::kDouble);
    const std::vector<Parameter> parameters{{"a", weight.clone()}};
    make_optimizer(w, parameters)->step({at::tensor({0.5, 0.5}, at::kDouble)});
    const at::Tensor direction = at::full({2}, 0.5 / (0.5 + 1e-6), at::kDouble) + 0.01 * weight;
    const at::Tensor expected = weight - w.learning_rate * 5.0 / direction.norm() * direction;
    EXPECT_LT((parameters[0].value - expected).abs().max().item<double>(), 1e-12);
}

TEST(Optimizer, SgdSubtractsTheScaledGradient) {
    Workload w = tiny("bert-base", Head::kMlm, Precision::kFp64);
    w.recipe.optimizer = Optimizer::kSgd;
    const std::vector<Parameter> parameters{{"a", at::full({3}, 2.0, at::kDouble)}};
    make_optimizer(w, parameters)->step({at::full({3}, 5.0, at::kDouble)});
    EXPECT_DOUBLE_EQ(parameters[0].value[0].item<double>(), 2.0 - 5.0 * w.learning_rate);
}

TEST(Checkpoint, RefusesAnInputThatWouldCostTheParametersTheirGradients) {
    const at::Tensor x = at::ones({2, 2});
    EXPECT_THROW(ops::checkpoint("layer", [](at::TensorList t) { return t[0] * 2; }, {x}),
                 c10::Error);
}

TEST(Checkpoint, GivesEachInputItsGradient) {
    const at::Tensor x = at::full({2}, 3.0).requires_grad_();
    const at::Tensor y = at::full({2}, 5.0).requires_grad_();
    const at::Tensor z =
        ops::checkpoint("layer", [](at::TensorList t) { return t[0] * t[1] * t[1]; }, {x, y});
    const auto gradients = torch::autograd::grad({z.sum()}, {x, y});
    EXPECT_EQ(gradients[0][0].item<float>(), 25);
    EXPECT_EQ(gradients[1][0].item<float>(), 30);
}

TEST(Checkpoint, DrawsFromTorchsGeneratorAgainWhatItDrewAndLeavesItThere) {
    at::manual_seed(3);
    const at::Tensor x = at::ones({64}).requires_grad_();
    const at::Tensor z = ops::checkpoint(
        "layer", [](at::TensorList t) { return std::get<0>(at::native_dropout(t[0], 0.5, true)); },
        {x});
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    (void)at::rand({8});  // what comes between must not matter
    const at::Tensor state = generator.get_state();
    EXPECT_TRUE(torch::autograd::grad({z.sum()}, {x})[0].equal(z.detach()));
    EXPECT_TRUE(generator.get_state().equal(state));
}

TEST(Checkpoint, HasAFirstDerivativeAndRefusesAGraphOfIt) {
    const at::Tensor x = at::full({2}, 3.0).requires_grad_();
    const at::Tensor y =
        ops::checkpoint("layer", [](at::TensorList t) { return t[0] * t[0] * t[0]; }, {x});
    EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, true, true), c10::Error);
    EXPECT_EQ(torch::autograd::grad({y.sum()}, {x})[0][0].item<float>(), 27);
}

}  // namespace
}  // namespace models
