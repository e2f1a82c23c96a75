#include "kernels/inplace_layernorm.h"

#include "kernels/reference/inplace_layernorm_reference.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <limits>

namespace kernels {
namespace {

template <typename T>
struct Problem {
    int64_t num_rows, size;
    std::vector<T> x, gamma, beta, dy;
    bool is_rms = false;  // RMSNorm: no mean, no beta
};

template <typename T>
Problem<T> make_problem(int64_t num_rows, int64_t size, double beta_size = 0.5) {
    Problem<T> p{num_rows,
                 size,
                 test::normal<T>(num_rows * size, 1, 0.3, 2),
                 test::normal<T>(size, 2, 1, 0.2),
                 test::normal<T>(size, 3, 0, beta_size),
                 test::normal<T>(num_rows * size, 4)};
    for (T& g : p.gamma) g = from_double<T>(std::max(0.25, to_double(g)));
    return p;
}

template <typename T>
struct Forward {
    std::vector<T> y, normalized;
    std::vector<StatOf<T>> mean, rstd;
};

template <typename T>
Forward<T> forward(const Problem<T>& p, double eps = 1e-5) {
    const auto rows = static_cast<size_t>(p.num_rows);
    Forward<T> f{std::vector<T>(p.x.size()), std::vector<T>(p.x.size()),
                 std::vector<StatOf<T>>(rows), std::vector<StatOf<T>>(rows)};
    layer_norm_forward<T>({.x = p.x.data(),
                           .gamma = p.gamma.data(),
                           .beta = p.is_rms ? nullptr : p.beta.data(),
                           .y = f.y.data(),
                           .normalized = f.normalized.data(),
                           .mean = f.mean.data(),
                           .rstd = f.rstd.data(),
                           .hidden_size = p.size,
                           .eps = eps,
                           .subtract_mean = !p.is_rms},
                          0, p.num_rows);
    return f;
}

template <typename T>
struct Gradients {
    std::vector<T> dx, dgamma, dbeta;
};

template <typename T>
Gradients<T> backward(const Problem<T>& p, const Forward<T>& f, LayerNormSave save) {
    const int64_t num_partials = layer_norm_num_partials(p.num_rows);
    const auto size = static_cast<size_t>(p.size);
    std::vector<StatOf<T>> partials(static_cast<size_t>(num_partials) * 2 * size,
                                    std::numeric_limits<StatOf<T>>::quiet_NaN());
    Gradients<T> g{std::vector<T>(p.x.size()), std::vector<T>(size), std::vector<T>(size)};
    const LayerNormBackwardArgs<T> args = {
        .dy = p.dy.data(),
        .saved = save == LayerNormSave::kOutput ? f.y.data() : f.normalized.data(),
        .gamma = p.gamma.data(),
        .beta = p.is_rms ? nullptr : p.beta.data(),
        .rstd = f.rstd.data(),
        .dx = g.dx.data(),
        .partials = partials.data(),
        .save = save,
        .hidden_size = p.size,
        .num_rows = p.num_rows,
        .subtract_mean = !p.is_rms};
    for (int64_t i = num_partials - 1; i >= 0; --i) layer_norm_backward(args, i, i + 1);
    layer_norm_reduce<T>({partials.data(), g.dgamma.data(), g.dbeta.data(), num_partials, p.size},
                         0, p.size);
    return g;
}

/// What the double-precision reference makes of a problem.
template <typename T>
reference::LayerNormResult truth_of(const Problem<T>& p) {
    const auto x = test::load(p.x), gamma = test::load(p.gamma);
    return p.is_rms ? reference::rms_norm(x, gamma, 1e-5)
                    : reference::layer_norm(x, gamma, test::load(p.beta), 1e-5);
}

template <typename T>
reference::LayerNormGradients gradient_of(const Problem<T>& p,
                                          const reference::LayerNormResult& truth) {
    const auto dy = test::load(p.dy), gamma = test::load(p.gamma);
    return p.is_rms ? reference::rms_norm_backward(dy, truth, gamma)
                    : reference::layer_norm_backward(dy, truth, gamma);
}

double largest(const std::vector<double>& values) {
    double size = 0;
    for (const double v : values) size = std::max(size, std::abs(v));
    return size;
}

template <typename T>
void expect_close(const std::vector<T>& got, const std::vector<double>& expected, double tolerance,
                  const char* what) {
    for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(to_double(got[i]), expected[i], tolerance) << what << " element " << i;
    }
}

template <typename T>
class LayerNormOfType : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(LayerNormOfType, Types);

const std::vector<std::pair<int64_t, int64_t>> kShapes = {
    {1, 1},  {1, 2},   {3, 7},    {2, 8},   {5, 17},    {4, 31},
    {9, 64}, {33, 65}, {70, 100}, {6, 768}, {131, 129}, {3, 1025}};

/// Forward: errors of a few roundings in the compute type, grown by the row's size of x over its
/// deviation, and one rounding to T.
TYPED_TEST(LayerNormOfType, ForwardEqualsReferenceForEveryShape) {
    for (const auto& [num_rows, size] : kShapes) {
        const auto p = make_problem<TypeParam>(num_rows, size);
        const auto f = forward(p);
        const auto truth = truth_of(p);
        // A row of one element is all rounding: x - mean is 0 and rstd is 316.
        const double growth = size <= 2 ? 4000 : 40;
        const double tolerance = largest(truth.y) * test::kRoundoff<TypeParam> +
                                 growth * test::kComputeRoundoff<TypeParam>;
        expect_close(f.y, truth.y, tolerance, "y");
        expect_close(f.normalized, truth.normalized,
                     tolerance + largest(truth.normalized) * test::kRoundoff<TypeParam>,
                     "normalized");
        expect_close(f.mean, truth.mean, 20 * test::kComputeRoundoff<TypeParam>, "mean");
        expect_close(f.rstd, truth.rstd,
                     largest(truth.rstd) * growth * test::kComputeRoundoff<TypeParam>, "rstd");
    }
}

/// Backward from the stored output: x̂ is known to u (|y| + |beta|) / |gamma|, u the unit roundoff
/// of T; dx is a sum of terms of size rstd |g| times `terms`, dgamma a sum over rows.
template <typename T, typename Truth, typename Gradient>
void expect_gradients(const Problem<T>& p, const Forward<T>& f, const Truth& truth,
                      const Gradient& gradient, double terms) {
    const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
    const double rows = static_cast<double>(p.num_rows);
    const double normalized_error = u * largest(truth.y) / 0.25 + 40 * c;
    const double dy_size = largest(test::load(p.dy)),
                 g_size = dy_size * largest(test::load(p.gamma));
    for (const LayerNormSave save : {LayerNormSave::kOutput, LayerNormSave::kNormalized}) {
        const auto got = backward(p, f, save);
        expect_close(
            got.dx, gradient.dx,
            u * largest(gradient.dx) + largest(truth.rstd) * g_size * normalized_error * terms,
            "dx");
        expect_close(got.dgamma, gradient.dgamma,
                     u * largest(gradient.dgamma) + rows * dy_size * normalized_error, "dgamma");
        if (p.is_rms) continue;
        expect_close(got.dbeta, gradient.dbeta,
                     u * largest(gradient.dbeta) + rows * dy_size * 4 * c, "dbeta");
    }
}

TYPED_TEST(LayerNormOfType, BackwardEqualsReferenceFromOutputAndFromNormalized) {
    for (const auto& [num_rows, size] : kShapes) {
        if (size <= 2) continue;  // x̂ is -1, 1 or 0 there and dx a difference of equal numbers
        const auto p = make_problem<TypeParam>(num_rows, size);
        const auto truth = truth_of(p);
        const auto gradient = gradient_of(p, truth);
        expect_gradients(p, forward(p), truth, gradient, 2);
    }
}

/// Tolerances as above. Nothing cancels in forward: a row of any size is well conditioned.
TYPED_TEST(LayerNormOfType, RmsNormEqualsReferenceFromOutputAndFromNormalized) {
    for (const auto& [num_rows, size] : kShapes) {
        auto p = make_problem<TypeParam>(num_rows, size);
        p.is_rms = true;
        const auto f = forward(p);
        const auto truth = truth_of(p);
        const double u = test::kRoundoff<TypeParam>, c = test::kComputeRoundoff<TypeParam>;
        expect_close(f.y, truth.y, largest(truth.y) * u + 40 * c, "y");
        expect_close(f.rstd, truth.rstd, largest(truth.rstd) * 40 * c, "rstd");
        const auto gradient = gradient_of(p, truth);
        // g and x̂ mean(g x̂) cancel in rows of one element, where dx is about 0.
        expect_gradients(p, f, truth, gradient, 2 + largest(truth.normalized));
    }
}

TYPED_TEST(LayerNormOfType, WorksInPlaceAndWithoutAffineOrWantedOutputs) {
    auto p = make_problem<TypeParam>(6, 100);
    for (auto& g : p.gamma) g = from_double<TypeParam>(1);
    for (auto& b : p.beta) b = from_double<TypeParam>(0);
    const auto f = forward(p);
    const auto g = backward(p, f, LayerNormSave::kOutput);
    auto y = p.x;
    std::vector<StatOf<TypeParam>> rstd(6);
    layer_norm_forward<TypeParam>(
        {.x = y.data(), .y = y.data(), .rstd = rstd.data(), .hidden_size = 100, .eps = 1e-5}, 0, 6);
    EXPECT_TRUE(test::same_bits(y, f.y));
    auto dx = p.dy;
    layer_norm_backward<TypeParam>({.dy = dx.data(),
                                    .saved = y.data(),
                                    .rstd = rstd.data(),
                                    .dx = dx.data(),
                                    .hidden_size = 100,
                                    .num_rows = 6},
                                   0, 1);
    EXPECT_TRUE(test::same_bits(dx, g.dx));
}

TYPED_TEST(LayerNormOfType, GradientsOfParametersDoNotDependOnTheSplit) {
    const auto p = make_problem<TypeParam>(131, 129);
    const auto f = forward(p);
    const auto once = backward(p, f, LayerNormSave::kOutput);
    EXPECT_TRUE(test::same_bits(once.dgamma, backward(p, f, LayerNormSave::kOutput).dgamma));
    std::vector<StatOf<TypeParam>> partials(static_cast<size_t>(layer_norm_num_partials(131)) * 2 *
                                            129);
    std::vector<TypeParam> dgamma(129);
    layer_norm_backward<TypeParam>({.dy = p.dy.data(),
                                    .saved = f.y.data(),
                                    .gamma = p.gamma.data(),
                                    .beta = p.beta.data(),
                                    .rstd = f.rstd.data(),
                                    .partials = partials.data(),
                                    .hidden_size = 129,
                                    .num_rows = 131},
                                   0, layer_norm_num_partials(131));
    const LayerNormReduceArgs<TypeParam> reduction = {partials.data(), dgamma.data(), nullptr,
                                                      layer_norm_num_partials(131), 129};
    layer_norm_reduce(reduction, 64, 129);
    layer_norm_reduce(reduction, 0, 64);
    EXPECT_TRUE(test::same_bits(once.dgamma, dgamma));
}

TEST(LayerNorm, LargeMeanDoesNotCancel) {
    Problem<float> p = make_problem<float>(4, 768);
    p.x = test::normal<float>(4 * 768, 5, 1000, 1);
    const auto f = forward(p);
    const auto truth = truth_of(p);
    expect_close(f.y, truth.y, 2e-4, "y");  // 1000 * 2^-24 per element of x, over a deviation of 1
}

/// gamma and beta / gamma at their bounds: what kGammaMin and kBetaOverGammaMax promise.
TEST(LayerNorm, BackwardHoldsAtTheBoundsOfGammaAndBeta) {
    auto p = make_problem<float>(40, 256);
    for (float& g : p.gamma) g = static_cast<float>(kGammaMin);
    for (float& b : p.beta) b = static_cast<float>(kGammaMin * kBetaOverGammaMax);
    ASSERT_FALSE(needs_normalized(p.gamma.data(), p.beta.data(), 256));
    const auto f = forward(p);
    const auto truth = truth_of(p);
    const auto gradient = gradient_of(p, truth);
    const auto got = backward(p, f, LayerNormSave::kOutput);
    const double normalized_error = (kBetaOverGammaMax + 6) * 0x1p-24 * 2;
    expect_close(got.dgamma, gradient.dgamma, 40 * 5 * normalized_error, "dgamma");
    expect_close(got.dx, gradient.dx, largest(truth.rstd) * kGammaMin * 5 * normalized_error * 4,
                 "dx");
}

TEST(LayerNorm, ZeroGammaIsExactFromNormalized) {
    auto p = make_problem<float>(40, 64);
    p.gamma[7] = 0;
    ASSERT_TRUE(needs_normalized(p.gamma.data(), p.beta.data(), 64));
    const auto f = forward(p);
    const auto truth = truth_of(p);
    const auto gradient = gradient_of(p, truth);
    const auto got = backward(p, f, LayerNormSave::kNormalized);
    EXPECT_NEAR(got.dgamma[7], gradient.dgamma[7], 40 * 4 * 40 * 0x1p-24);
    expect_close(got.dx, gradient.dx, largest(truth.rstd) * 8 * 40 * 0x1p-24, "dx");
}

TEST(LayerNorm, AsksForNormalizedWhenGammaIsSmallOrBetaLargeOrNan) {
    std::vector<float> gamma(8, 1.0f), beta(8, 0.0f);
    EXPECT_FALSE(needs_normalized(gamma.data(), beta.data(), 8));
    EXPECT_FALSE(needs_normalized<float>(nullptr, nullptr, 8));
    gamma[3] = -0.5f;
    EXPECT_FALSE(needs_normalized(gamma.data(), beta.data(), 8));
    gamma[3] = -0.01f;
    EXPECT_TRUE(needs_normalized(gamma.data(), beta.data(), 8));
    gamma[3] = 1.0f;
    beta[5] = -20.0f;
    EXPECT_TRUE(needs_normalized(gamma.data(), beta.data(), 8));
    beta[5] = std::nanf("");
    EXPECT_TRUE(needs_normalized(gamma.data(), beta.data(), 8));
}

TEST(LayerNorm, PartialsCoverEveryRowOnce) {
    for (const int64_t num_rows : {0, 1, 31, 32, 33, 2048, 2049, 100000}) {
        const int64_t count = layer_norm_num_partials(num_rows);
        EXPECT_LE(count, 64);
        EXPECT_EQ(layer_norm_partial_first_row(0, num_rows), 0);
        EXPECT_EQ(layer_norm_partial_first_row(count, num_rows), num_rows);
        for (int64_t i = 0; i < count; ++i) {
            EXPECT_LE(layer_norm_partial_first_row(i, num_rows),
                      layer_norm_partial_first_row(i + 1, num_rows));
        }
    }
}

template <typename T>
class LayerNormBesideFloat : public testing::Test {};
using SixteenBitTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(LayerNormBesideFloat, SixteenBitTypes);

/// What a kernel of float computes from the same numbers: rounded where the tensor has 16 bits.
TYPED_TEST(LayerNormBesideFloat, GivesTheNumbersOfFloatRoundedOnce) {
    using T = TypeParam;
    for (const int64_t size : {1, 37, 256}) {
        const int64_t num_rows = 70;
        const auto n = static_cast<size_t>(num_rows * size), h = static_cast<size_t>(size);
        const auto x = test::normal<float>(num_rows * size, 1, 0.3, 2),
                   gamma = test::normal<float>(size, 3, 1, 0.1),
                   beta = test::normal<float>(size, 4, 0, 0.3);
        const auto forward_in = [&]<typename Y>(std::vector<Y>& y, std::vector<float>& rstd) {
            layer_norm_forward<Y>({.x = x.data(),
                                   .gamma = gamma.data(),
                                   .beta = beta.data(),
                                   .y = y.data(),
                                   .rstd = rstd.data(),
                                   .hidden_size = size},
                                  0, num_rows);
        };
        std::vector<T> y(n);
        std::vector<float> wide_y(n), rstd(num_rows), wide_rstd(num_rows);
        forward_in(y, rstd);
        forward_in(wide_y, wide_rstd);
        EXPECT_TRUE(test::same_bits(y, test::store<T>(test::load(wide_y))));
        EXPECT_TRUE(test::same_bits(rstd, wide_rstd));

        struct Gradients {
            std::vector<float> dx, partials;
        };
        const auto backward_in = [&]<typename Y>(const std::vector<Y>& dy,
                                                 const std::vector<Y>& saved) {
            const int64_t num_partials = layer_norm_num_partials(num_rows);
            Gradients to{.dx = std::vector<float>(n),
                         .partials = std::vector<float>(static_cast<size_t>(num_partials) * 2 * h)};
            layer_norm_backward<Y>({.dy = dy.data(),
                                    .saved = saved.data(),
                                    .gamma = gamma.data(),
                                    .beta = beta.data(),
                                    .rstd = rstd.data(),
                                    .dx = to.dx.data(),
                                    .partials = to.partials.data(),
                                    .hidden_size = size,
                                    .num_rows = num_rows},
                                   0, num_partials);
            return to;
        };
        const auto dy = test::normal<T>(num_rows * size, 2);
        const Gradients narrow = backward_in(dy, y),
                        wide = backward_in(test::store<float>(test::load(dy)),
                                           test::store<float>(test::load(y)));
        EXPECT_TRUE(test::same_bits(narrow.dx, wide.dx));
        EXPECT_TRUE(test::same_bits(narrow.partials, wide.partials));
    }
}

}  // namespace
}  // namespace kernels
