// Goal: the fused op gives the same bits as dropout, an addition and LayerNorm one after another.
// Other files test those against double precision.

#include "kernels/residual_layernorm.h"

#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>

namespace kernels {
namespace {

const DropoutKey kKey = {.seed = 5, .rank = 0, .step = 2, .layer = 4, .site = 3};
const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 1},   {2, 7},     {70, 33}, {65, 64},
                                                          {5, 768}, {130, 100}, {200, 17}};

/// a + b as T stores it.
template <typename T>
std::vector<T> add(const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> sum(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        // float first: the kernels add in float, which for 16-bit types rounds twice.
        const auto total =
            static_cast<StatOf<T>>(to_double(a[i])) + static_cast<StatOf<T>>(to_double(b[i]));
        sum[i] = from_double<T>(total);
    }
    return sum;
}

template <typename T>
class ResidualLayerNormOfType : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(ResidualLayerNormOfType, Types);

template <typename T>
class ResidualLayerNormBesideFloat : public testing::Test {};
using SixteenBitTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(ResidualLayerNormBesideFloat, SixteenBitTypes);

/// Wide is the type of the residual, its sum and gradients, and of the parameters.
template <typename T, typename Wide = T>
struct Problem {
    int64_t num_rows, size;
    MaskKind kind;
    std::vector<T> x, dy;
    std::vector<Wide> residual, gamma, beta, dsum;
    std::vector<uint8_t> mask;
    std::vector<StatOf<T>> rstd;
    std::vector<T> y;
    std::vector<Wide> sum;

    Problem(int64_t rows, int64_t h, MaskKind mask_kind)
        : num_rows(rows),
          size(h),
          kind(mask_kind),
          x(test::normal<T>(rows * h, 1)),
          dy(test::normal<T>(rows * h, 5)),
          residual(test::normal<Wide>(rows * h, 2)),
          gamma(test::normal<Wide>(h, 3, 1, 0.1)),
          beta(test::normal<Wide>(h, 4, 0, 0.2)),
          dsum(test::normal<Wide>(rows * h, 6)),
          mask(static_cast<size_t>(mask_bytes<T>(kind, rows * h))),
          rstd(static_cast<size_t>(rows)),
          y(x.size()),
          sum(x.size()) {}

    ResidualLayerNormForwardArgs<T> forward_args() {
        return {.x = x.data(),
                .residual = residual.data(),
                .gamma = gamma.data(),
                .beta = beta.data(),
                .y = y.data(),
                .sum = sum.data(),
                .rstd = rstd.data(),
                .mask = mask.data(),
                .mask_kind = kind,
                .dropout_p = 0.2,
                .key = kKey,
                .hidden_size = size,
                .eps = 1e-5};
    }
    /// LayerNorm alone.
    std::vector<T> norm_of(const std::vector<Wide>& rows, std::vector<StatOf<T>>& new_rstd) const {
        std::vector<T> normed(rows.size());
        layer_norm_forward<T>({.x = rows.data(),
                               .gamma = gamma.data(),
                               .beta = beta.data(),
                               .y = normed.data(),
                               .rstd = new_rstd.data(),
                               .hidden_size = size,
                               .eps = 1e-5},
                              0, static_cast<int64_t>(new_rstd.size()));
        return normed;
    }
};

template <typename To, typename From>
std::vector<To> convert(const std::vector<From>& values) {
    return test::store<To>(test::load(values));
}

template <typename T, typename Wide = T>
void expect_forward_of_the_steps(int64_t num_rows, int64_t size, MaskKind kind) {
    Problem<T, Wide> p(num_rows, size, kind);
    residual_layer_norm_forward(p.forward_args(), 0, num_rows);
    std::vector<T> dropped(p.x.size());
    std::vector<uint8_t> mask(p.mask.size());
    dropout_forward<T>({.x = p.x.data(),
                        .y = dropped.data(),
                        .mask = mask.data(),
                        .mask_kind = kind,
                        .dropout_p = 0.2,
                        .key = kKey},
                       0, num_rows * size);
    const auto sum = add(p.residual, convert<Wide>(dropped));
    auto rstd = p.rstd;
    const auto y = p.norm_of(sum, rstd);
    EXPECT_TRUE(test::same_bits(p.sum, sum)) << num_rows << " x " << size;
    EXPECT_TRUE(test::same_bits(p.y, y)) << num_rows << " x " << size;
    EXPECT_TRUE(test::same_bits(p.rstd, rstd));
    EXPECT_EQ(p.mask, mask);
}

/// In place, unless the gradients have another type.
template <typename T, typename Wide = T>
void expect_backward_of_the_steps(int64_t num_rows, int64_t size, MaskKind kind, bool with_dsum) {
    constexpr bool kInPlace = std::is_same_v<T, Wide>;
    Problem<T, Wide> p(num_rows, size, kind);
    residual_layer_norm_forward(p.forward_args(), 0, num_rows);
    const int64_t num_partials = layer_norm_num_partials(num_rows);
    std::vector<StatOf<T>> partials(static_cast<size_t>(num_partials * 2 * size)),
        expected_partials(partials.size());
    std::vector<T> dx = kInPlace ? p.dy : std::vector<T>(p.dy.size()), expected_dx(p.x.size());
    auto dresidual = p.dsum;
    const Wide* const dsum = kInPlace ? dresidual.data() : p.dsum.data();
    residual_layer_norm_backward<T>({.dy = kInPlace ? dx.data() : p.dy.data(),
                                     .dsum = with_dsum ? dsum : nullptr,
                                     .saved = p.y.data(),
                                     .gamma = p.gamma.data(),
                                     .beta = p.beta.data(),
                                     .rstd = p.rstd.data(),
                                     .mask = p.mask.data(),
                                     .dx = dx.data(),
                                     .dresidual = dresidual.data(),
                                     .partials = partials.data(),
                                     .mask_kind = kind,
                                     .dropout_p = 0.2,
                                     .key = kKey,
                                     .hidden_size = size,
                                     .num_rows = num_rows},
                                    0, num_partials);
    std::vector<Wide> expected(p.x.size());
    layer_norm_backward<T>({.dy = p.dy.data(),
                            .saved = p.y.data(),
                            .gamma = p.gamma.data(),
                            .beta = p.beta.data(),
                            .rstd = p.rstd.data(),
                            .dx = expected.data(),
                            .partials = expected_partials.data(),
                            .hidden_size = size,
                            .num_rows = num_rows},
                           0, num_partials);
    if (with_dsum) expected = add(expected, p.dsum);
    const auto rounded = convert<T>(expected);
    dropout_backward<T>({.dy = rounded.data(),
                         .dx = expected_dx.data(),
                         .mask = p.mask.data(),
                         .mask_kind = kind,
                         .dropout_p = 0.2,
                         .key = kKey},
                        0, num_rows * size);
    EXPECT_TRUE(test::same_bits(dresidual, expected)) << num_rows << " x " << size;
    EXPECT_TRUE(test::same_bits(dx, expected_dx)) << num_rows << " x " << size;
    EXPECT_TRUE(test::same_bits(partials, expected_partials));
}

TYPED_TEST(ResidualLayerNormOfType, EqualsTheStepsBitForBit) {
    for (const auto& [num_rows, size] : kShapes) {
        for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
            expect_forward_of_the_steps<TypeParam>(num_rows, size, kind);
            for (const bool with_dsum : {false, true}) {
                expect_backward_of_the_steps<TypeParam>(num_rows, size, kind, with_dsum);
            }
        }
    }
}

/// A float residual, parameters and sum beside 16-bit x, y and dx.
TYPED_TEST(ResidualLayerNormBesideFloat, EqualsTheStepsBitForBit) {
    for (const auto& [num_rows, size] : kShapes) {
        expect_forward_of_the_steps<TypeParam, float>(num_rows, size, MaskKind::kBit);
        expect_backward_of_the_steps<TypeParam, float>(num_rows, size, MaskKind::kBit, true);
    }
}

TYPED_TEST(ResidualLayerNormOfType, ForwardWorksInPlaceAndByRanges) {
    using T = TypeParam;
    Problem<T> p(70, 33, MaskKind::kBit);
    residual_layer_norm_forward(p.forward_args(), 0, 70);
    Problem<T> q(70, 33, MaskKind::kBit);
    auto args = q.forward_args();
    args.y = q.residual.data();
    args.sum = nullptr;
    ASSERT_EQ(row_granularity(33), 64);
    residual_layer_norm_forward(args, 64, 70);
    residual_layer_norm_forward(args, 0, 64);
    EXPECT_TRUE(test::same_bits(q.residual, p.y));
    EXPECT_EQ(q.mask, p.mask);
}

TYPED_TEST(ResidualLayerNormOfType, ProbabilityZeroAddsXAndOneAddsNothing) {
    using T = TypeParam;
    for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
        for (const double dropout_p : {0.0, 1.0}) {
            Problem<T> p(70, 33, kind);
            auto args = p.forward_args();
            args.dropout_p = dropout_p;
            residual_layer_norm_forward(args, 0, 70);
            EXPECT_TRUE(test::same_bits(p.sum, dropout_p == 0 ? add(p.residual, p.x) : p.residual));
        }
    }
}

/// Substation's kernel: a bias comes first, and x + bias, x̂ and sum - mean are kept. Backward from
/// the last is backward from x̂, but for the rounding of what was stored.
TYPED_TEST(ResidualLayerNormOfType, KeepsWhatSubstationKeeps) {
    using T = TypeParam;
    for (const auto& [num_rows, size] : kShapes) {
        const auto kind = MaskKind::kElement;
        Problem<T> p(num_rows, size, kind), plain(num_rows, size, MaskKind::kByte);
        const auto bias = test::normal<T>(size, 7);
        std::vector<T> biased(p.x.size()), normalized(biased), centered(biased);
        auto args = p.forward_args();
        args.bias = bias.data();
        args.biased = biased.data();
        args.normalized = normalized.data();
        args.centered = centered.data();
        residual_layer_norm_forward(args, 0, num_rows);
        for (size_t i = 0; i < plain.x.size(); ++i) {
            const auto total = static_cast<StatOf<T>>(to_double(plain.x[i])) +
                               static_cast<StatOf<T>>(to_double(bias[i % bias.size()]));
            plain.x[i] = from_double<T>(total);
        }
        residual_layer_norm_forward(plain.forward_args(), 0, num_rows);
        EXPECT_TRUE(test::same_bits(biased, plain.x));
        EXPECT_TRUE(test::same_bits(p.y, plain.y));
        EXPECT_TRUE(test::same_bits(p.sum, plain.sum));
        const T* const mask = reinterpret_cast<const T*>(p.mask.data());
        for (size_t i = 0; i < plain.mask.size(); ++i) {
            ASSERT_EQ(to_double(mask[i]), plain.mask[i]);
        }
        std::vector<T> dx(p.x.size()), dresidual(dx), expected_dx(dx), expected_dresidual(dx);
        ResidualLayerNormBackwardArgs<T> back{.dy = p.dy.data(),
                                              .saved = centered.data(),
                                              .rstd = p.rstd.data(),
                                              .mask = p.mask.data(),
                                              .dx = dx.data(),
                                              .dresidual = dresidual.data(),
                                              .save = LayerNormSave::kCentered,
                                              .mask_kind = kind,
                                              .dropout_p = 0.2,
                                              .key = kKey,
                                              .hidden_size = size,
                                              .num_rows = num_rows};
        const int64_t num_partials = layer_norm_num_partials(num_rows);
        residual_layer_norm_backward(back, 0, num_partials);
        back.saved = normalized.data();
        back.save = LayerNormSave::kNormalized;
        back.mask = plain.mask.data();
        back.mask_kind = MaskKind::kByte;
        back.dx = expected_dx.data();
        back.dresidual = expected_dresidual.data();
        residual_layer_norm_backward(back, 0, num_partials);
        for (size_t i = 0; i < dx.size(); ++i) {
            // x̂ = centered rstd, each rounded once: 2 roundings of x̂, times mean(g x̂).
            const double scale = 16 * to_double(p.rstd[i / static_cast<size_t>(size)]);
            const double error = test::kRoundoff<T> * (scale + std::abs(to_double(dx[i])) * 2);
            ASSERT_NEAR(to_double(dresidual[i]), to_double(expected_dresidual[i]), error);
            ASSERT_NEAR(to_double(dx[i]), to_double(expected_dx[i]), 2 * error);
        }
    }
}

}  // namespace
}  // namespace kernels
