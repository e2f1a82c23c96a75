// T5's layers: the gradients of a whole stack, and the parts that other layers do not have.
//
// Method: in fp64 the derivative of the loss along a random direction of all parameters and inputs
// equals the change of the loss over a small step in that direction. With a step of 1e-7 rounding
// is off by about 1e-7; a larger step would move some of the 672 ReLUs over their kink.

#include "models/layers/t5_layer.h"
#include "models/training/batch.h"
#include "models/training/model.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace models {
namespace {

Workload tiny(const std::string& model, Precision precision = Precision::kFp64) {
    Workload w{.model = *find_model(model), .precision = precision, .batch_size = 2, .seq_len = 7};
    w.model.hidden_size = 16;
    w.model.num_heads = 4;
    w.model.num_layers = 2;
    w.model.intermediate_size = 24;
    return w;
}

std::vector<Tensor> leaves_of(const Model& model, const Batch& batch) {
    std::vector<Tensor> leaves;
    for (const Parameter& parameter : model.parameters()) leaves.push_back(parameter.value);
    for (const Tensor& input : {batch.input, batch.encoder_states}) {
        if (input.defined()) leaves.push_back(input);
    }
    return leaves;
}

double loss_of(const Model& model, const Batch& batch) {
    return model.loss(model.forward(batch, 3), batch).item<double>();
}

class T5 : public testing::TestWithParam<const char*> {};

TEST_P(T5, GradientsAreTheChangeOfTheLoss) {
    const Workload w = tiny(GetParam());
    const Model model(w);
    const Batch batch = make_batch(w);
    model.loss(model.forward(batch, 3), batch).backward();
    at::manual_seed(7);
    const std::vector<Tensor> leaves = leaves_of(model, batch);
    std::vector<Tensor> directions;
    double expected = 0;
    for (const Tensor& leaf : leaves) {
        ASSERT_TRUE(leaf.grad().defined());
        EXPECT_GT(leaf.grad().abs().max().item<double>(), 0) << "every leaf changes the loss";
        directions.push_back(at::randn_like(leaf));
        expected += at::sum(leaf.grad() * directions.back()).item<double>();
    }
    const at::NoGradGuard no_grad;
    constexpr double kStep = 1e-7;
    const auto move = [&](double by) {
        for (std::size_t i = 0; i < leaves.size(); ++i) Tensor(leaves[i]).add_(directions[i], by);
    };
    move(kStep);
    const double above = loss_of(model, batch);
    move(-2 * kStep);
    const double below = loss_of(model, batch);
    EXPECT_NEAR((above - below) / (2 * kStep), expected, 1e-5 * std::abs(expected));
}

INSTANTIATE_TEST_SUITE_P(Stacks, T5, testing::Values("t5-base-encoder", "t5-base-decoder"),
                         [](const auto& test) { return std::string(test.param).substr(8); });

/// A decoder's token sees itself and what came before; an encoder's token sees all.
TEST(T5Decoder, LooksBackOnly) {
    for (const char* name : {"t5-base-encoder", "t5-base-decoder"}) {
        Workload w = tiny(name);
        w.model.hidden_dropout_p = w.model.attention_dropout_p = 0;
        const Model model(w);
        const Batch batch = make_batch(w);
        const at::NoGradGuard no_grad;
        const Tensor before = model.forward(batch, 0).clone();
        batch.input.select(1, w.seq_len - 1).add_(1);
        const Tensor change = (model.forward(batch, 0) - before).abs().amax({0, 2});  // [S]
        const double early = change.narrow(0, 0, w.seq_len - 1).max().item<double>();
        EXPECT_GT(change[w.seq_len - 1].item<double>(), 1e-3);
        if (w.model.traits().is_causal) {
            EXPECT_EQ(early, 0);
        } else {
            EXPECT_GT(early, 1e-6);
        }
    }
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
    const Workload w = tiny("t5-base-encoder");
    ParameterStore store(0, at::kDouble);
    const NormModule norm(store, "", "layer_norm", w);
    const Tensor x = at::randn({2, 3, 16}, at::kDouble) * 5 + 2;
    const Tensor expected = x / at::sqrt(at::mean(x * x, {-1}, true) + 1e-6);
    EXPECT_TRUE(at::allclose(norm(x), expected, 1e-12, 0));
}

/// Values of T5Attention._relative_position_bucket of Hugging Face, 32 buckets and distance 128.
TEST(RelativePositionBias, HasHuggingFacesBuckets) {
    const Tensor encoder = RelativePositionBias::buckets(200, false, at::kCPU);
    const auto at = [](const Tensor& buckets, int64_t query, int64_t key) {
        return buckets[query][key].item<int64_t>();
    };
    EXPECT_EQ(at(encoder, 5, 5), 0);
    EXPECT_EQ(at(encoder, 5, 4), 1);
    EXPECT_EQ(at(encoder, 4, 5), 17);
    EXPECT_EQ(at(encoder, 7, 0), 7);
    EXPECT_EQ(at(encoder, 16, 0), 10);
    EXPECT_EQ(at(encoder, 64, 0), 14);
    EXPECT_EQ(at(encoder, 199, 0), 15);
    EXPECT_EQ(at(encoder, 0, 199), 31);
    const Tensor decoder = RelativePositionBias::buckets(200, true, at::kCPU);
    EXPECT_EQ(at(decoder, 0, 100), 0) << "the future has no bucket of its own";
    EXPECT_EQ(at(decoder, 15, 0), 15);
    EXPECT_EQ(at(decoder, 32, 0), 21);
    EXPECT_EQ(at(decoder, 199, 0), 31);
}

TEST(T5, TrainsInEveryPrecisionAndHasNoBiases) {
    for (const Precision precision : {Precision::kFp32, Precision::kPureBf16}) {
        const Workload w = tiny("t5-base-decoder", precision);
        const Model model(w);
        const Batch batch = make_batch(w);
        const Tensor y = model.forward(batch, 0);
        EXPECT_TRUE(y.isfinite().all().item<bool>()) << name_of(precision);
        for (const Parameter& parameter : model.parameters()) {
            EXPECT_FALSE(parameter.name.ends_with(".bias")) << parameter.name;
        }
    }
}

}  // namespace
}  // namespace models
