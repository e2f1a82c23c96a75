#include "kernels/softmax_dropout.h"

#include "kernels/reference/dropout_reference.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <limits>

namespace kernels {
namespace {

const DropoutKey kKey = {.seed = 99, .rank = 0, .step = 5, .layer = 1, .site = 4};
const double kInfinity = std::numeric_limits<double>::infinity();

struct Shape {
    int64_t num_heads, num_queries, num_keys;
    int64_t num_rows() const { return num_heads * num_queries; }
};
const std::vector<Shape> kShapes = {{1, 1, 1},  {2, 3, 5},    {1, 8, 8},   {2, 7, 63},  {1, 4, 64},
                                    {2, 5, 65}, {3, 16, 100}, {1, 3, 512}, {1, 2, 1001}};

template <typename T>
struct Forward {
    std::vector<T> probs, dropped;
    std::vector<uint8_t> mask;
};

template <typename T>
Forward<T> forward(SoftmaxDropoutForwardArgs<T> args, int64_t num_rows) {
    const auto count = static_cast<size_t>(num_rows * args.num_keys);
    Forward<T> f{std::vector<T>(count), std::vector<T>(count),
                 std::vector<uint8_t>(
                     static_cast<size_t>(mask_bytes<T>(args.mask_kind, num_rows * args.num_keys)))};
    args.probs = f.probs.data();
    args.dropped = f.dropped.data();
    args.mask = f.mask.data();
    softmax_dropout_forward(args, 0, num_rows);
    return f;
}

/// The logits of the reference: scaled, with additive and causal mask.
template <typename T>
std::vector<double> logits(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows) {
    std::vector<double> values(static_cast<size_t>(num_rows * args.num_keys));
    for (int64_t row = 0; row < num_rows; ++row) {
        for (int64_t key = 0; key < args.num_keys; ++key) {
            const int64_t i = row * args.num_keys + key;
            double v = to_double(args.scores[i]) * args.scale;
            if (args.additive_mask) {
                v += to_double(args.additive_mask[row / args.rows_per_mask * args.num_keys + key]);
            }
            if (args.causal && key > row % args.num_queries + args.num_keys - args.num_queries)
                v = -kInfinity;
            values[static_cast<size_t>(i)] = v;
        }
    }
    return values;
}

template <typename T>
class SoftmaxDropoutOfType : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(SoftmaxDropoutOfType, Types);

/// P: exp's error is relative, the logit's rounding (|logit| up to 20) enters its exponent; then
/// one rounding.
template <typename T>
void expect_probabilities(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows) {
    const auto f = forward(args, num_rows);
    const auto truth = reference::softmax(logits(args, num_rows), args.num_keys);
    const double relative = test::kRoundoff<T> + 60 * test::kComputeRoundoff<T>;
    for (size_t i = 0; i < truth.size(); ++i) {
        ASSERT_NEAR(to_double(f.probs[i]), truth[i], truth[i] * relative + test::kTiny<T> + 1e-38)
            << "element " << i << " S " << args.num_keys << " causal " << args.causal;
    }
}

TYPED_TEST(SoftmaxDropoutOfType, ForwardEqualsReferenceWithEveryMask) {
    using T = TypeParam;
    for (const Shape& shape : kShapes) {
        const auto scores = test::normal<T>(shape.num_rows() * shape.num_keys, 1, 0, 4);
        auto additive = test::normal<T>(shape.num_heads * shape.num_keys, 2);
        additive[0] = from_double<T>(shape.num_keys > 1 ? -kInfinity : 0);
        for (const bool causal : {false, true}) {
            for (const bool masked : {false, true}) {
                if (causal && masked) additive[0] = from_double<T>(0);  // query 0 must see a key
                const SoftmaxDropoutForwardArgs<T> args = {
                    .scores = scores.data(),
                    .additive_mask = masked ? additive.data() : nullptr,
                    .dropout_p = 0.2,
                    .key = kKey,
                    .scale = 0.5,
                    .num_keys = shape.num_keys,
                    .num_queries =
                        causal ? std::min(shape.num_queries, shape.num_keys) : shape.num_queries,
                    .rows_per_mask = shape.num_queries,
                    .causal = causal};
                expect_probabilities(args, shape.num_rows());
            }
        }
    }
}

TYPED_TEST(SoftmaxDropoutOfType, MasksAndDroppedProductAreThoseOfDropout) {
    using T = TypeParam;
    for (const Shape& shape : kShapes) {
        const int64_t count = shape.num_rows() * shape.num_keys;
        const auto scores = test::normal<T>(count, 3);
        const auto keep = reference::dropout_keep(kKey, 0.3, count);
        for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
            const auto f = forward<T>({.scores = scores.data(),
                                       .mask_kind = kind,
                                       .dropout_p = 0.3,
                                       .key = kKey,
                                       .num_keys = shape.num_keys},
                                      shape.num_rows());
            std::vector<T> expected(f.probs.size()), again(f.probs.size());
            dropout_backward<T>({.dy = f.probs.data(),
                                 .dx = expected.data(),
                                 .mask = f.mask.data(),
                                 .mask_kind = kind,
                                 .dropout_p = 0.3,
                                 .key = kKey},
                                0, count);
            EXPECT_TRUE(test::same_bits(f.dropped, expected));
            recompute_dropped_probs<T>({.probs = f.probs.data(),
                                        .dropped = again.data(),
                                        .mask = f.mask.data(),
                                        .mask_kind = kind,
                                        .dropout_p = 0.3,
                                        .key = kKey,
                                        .num_keys = shape.num_keys},
                                       0, shape.num_rows());
            EXPECT_TRUE(test::same_bits(f.dropped, again));
            for (int64_t i = 0; i < count && kind != MaskKind::kNone; ++i) {
                ASSERT_EQ(test::mask_at(f.mask, kind, i), keep[static_cast<size_t>(i)]);
            }
        }
    }
}

/// Backward in place, from the stored P: its rounding is an error of the forward. `terms` roundings
/// of P, and one of the result.
template <typename T>
void expect_backward(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows,
                     const std::vector<T>& ddropped, double terms) {
    const auto keep = reference::dropout_keep(kKey, args.dropout_p, num_rows * args.num_keys);
    std::vector<double> factor(keep.size());
    for (size_t i = 0; i < keep.size(); ++i)
        factor[i] = keep[i] ? keep_scale(keep_threshold(args.dropout_p)) : 0;
    const auto f = forward(args, num_rows);
    const auto gradient = reference::softmax_dropout_backward(
        test::load(ddropped), test::load(f.probs), factor, args.num_keys);
    auto dscores = ddropped;
    softmax_dropout_backward<T>({.ddropped = dscores.data(),
                                 .probs = f.probs.data(),
                                 .mask = f.mask.data(),
                                 .dscores = dscores.data(),
                                 .mask_kind = args.mask_kind,
                                 .dropout_p = args.dropout_p,
                                 .key = kKey,
                                 .scale = args.scale,
                                 .num_keys = args.num_keys},
                                0, num_rows);
    for (size_t i = 0; i < gradient.size(); ++i) {
        const double truth = gradient[i] * args.scale;
        const double size = args.scale * to_double(f.probs[i]);
        ASSERT_NEAR(to_double(dscores[i]), truth,
                    std::abs(truth) * test::kRoundoff<T> +
                        terms * size * test::kComputeRoundoff<T> + test::kTiny<T>)
            << "element " << i << " of S " << args.num_keys << " p " << args.dropout_p;
    }
}

TYPED_TEST(SoftmaxDropoutOfType, BackwardEqualsReferenceForEveryMaskKind) {
    using T = TypeParam;
    for (const Shape& shape : kShapes) {
        const int64_t count = shape.num_rows() * shape.num_keys;
        const auto scores = test::normal<T>(count, 4);
        for (const double p : {0.0, 0.3}) {
            for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
                expect_backward<T>({.scores = scores.data(),
                                    .mask_kind = kind,
                                    .dropout_p = p,
                                    .key = kKey,
                                    .scale = 0.25,
                                    .num_keys = shape.num_keys},
                                   shape.num_rows(), test::normal<T>(count, 5),
                                   6 * 40);  // |dP| and the row's sum are below 6
            }
        }
    }
}

TYPED_TEST(SoftmaxDropoutOfType, RowRangesAndInPlaceGiveWhatTheWholeGives) {
    using T = TypeParam;
    const int64_t num_rows = 150, num_keys = 24;
    const auto scores = test::normal<T>(num_rows * num_keys, 6);
    for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit}) {
        SoftmaxDropoutForwardArgs<T> args = {.scores = scores.data(),
                                             .mask_kind = kind,
                                             .dropout_p = 0.4,
                                             .key = kKey,
                                             .num_keys = num_keys};
        const auto whole = forward(args, num_rows);
        auto probs = scores;
        std::vector<T> dropped(scores.size());
        std::vector<uint8_t> mask(whole.mask.size());
        args.scores = args.probs = probs.data();
        args.dropped = dropped.data();
        args.mask = mask.data();
        ASSERT_EQ(row_granularity(num_keys), 8);
        softmax_dropout_forward(args, 80, num_rows);
        softmax_dropout_forward(args, 0, 8);
        softmax_dropout_forward(args, 8, 80);
        EXPECT_TRUE(test::same_bits(probs, whole.probs));
        EXPECT_TRUE(test::same_bits(dropped, whole.dropped));
        EXPECT_EQ(mask, whole.mask);
        std::vector<T> one(scores.size()), two(scores.size());
        const SoftmaxDropoutBackwardArgs<T> back = {.ddropped = scores.data(),
                                                    .probs = probs.data(),
                                                    .mask = mask.data(),
                                                    .dscores = one.data(),
                                                    .mask_kind = kind,
                                                    .dropout_p = 0.4,
                                                    .key = kKey,
                                                    .num_keys = num_keys};
        softmax_dropout_backward(back, 0, num_rows);
        auto parts = back;
        parts.dscores = two.data();
        softmax_dropout_backward(parts, 16, num_rows);
        softmax_dropout_backward(parts, 0, 16);
        EXPECT_TRUE(test::same_bits(one, two));
    }
}

/// Rows beyond the stack buffer take the path that computes values twice.
TYPED_TEST(SoftmaxDropoutOfType, LongRowsEqualReference) {
    using T = TypeParam;
    const int64_t num_keys = 5003, num_rows = 3;
    const auto scores = test::normal<T>(num_rows * num_keys, 7, 0, 3);
    const SoftmaxDropoutForwardArgs<T> args = {.scores = scores.data(),
                                               .mask_kind = MaskKind::kBit,
                                               .dropout_p = 0.1,
                                               .key = kKey,
                                               .num_keys = num_keys};
    expect_probabilities(args, num_rows);
    expect_backward(args, num_rows, scores, 20 * 100);
}

TEST(SoftmaxDropout, HugeScoresDoNotOverflow) {
    const std::vector<float> scores = {3e38f, 3e38f, -3e38f, 0.0f};
    const auto f = forward<float>({.scores = scores.data(), .num_keys = 4}, 1);
    EXPECT_EQ(f.probs, (std::vector<float>{0.5f, 0.5f, 0.0f, 0.0f}));
}

TEST(SoftmaxDropout, NanAndFullyMaskedRowsGiveNanAndLeaveOtherRowsAlone) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> scores = {1, std::nanf(""), 2, -inf, -inf, -inf, 0, 0, -inf};
    const auto f = forward<float>({.scores = scores.data(), .num_keys = 3}, 3);
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(f.probs[static_cast<size_t>(i)])) << i;
    EXPECT_EQ(f.probs[6], 0.5f);
    EXPECT_EQ(f.probs[8], 0.0f);
}

// With padding on the left, a causal query sees no key: torch adds both masks and the row is NaN.
TYPED_TEST(SoftmaxDropoutOfType, ARowWhoseVisibleKeysAreMaskedIsNanInItsInvisiblePartToo) {
    using T = TypeParam;
    constexpr int64_t kKeys = 67;
    const auto scores = test::normal<T>(kKeys * kKeys, 8);
    std::vector<T> mask(kKeys, from_double<T>(0));
    for (size_t key = 0; key < 2; ++key) mask[key] = from_double<T>(-kInfinity);
    const auto f = forward<T>({.scores = scores.data(),
                               .additive_mask = mask.data(),
                               .num_keys = kKeys,
                               .num_queries = kKeys,
                               .rows_per_mask = kKeys,
                               .causal = true},
                              kKeys);
    for (size_t i = 0; i < f.probs.size(); ++i) {
        const size_t query = i / kKeys, key = i % kKeys;
        const double prob = to_double(f.probs[i]);
        if (query < 2) {
            ASSERT_TRUE(std::isnan(prob)) << query << " " << key;
        } else {
            ASSERT_TRUE(key >= 2 && key <= query ? prob > 0 : prob == 0) << query << " " << key;
        }
    }
}

TYPED_TEST(SoftmaxDropoutOfType, ProbabilityOneDropsEverythingAndKeepsTheProbabilities) {
    using T = TypeParam;
    const auto scores = test::normal<T>(4 * 33, 8);
    const auto plain = forward<T>({.scores = scores.data(), .num_keys = 33}, 4);
    for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
        const auto f = forward<T>({.scores = scores.data(),
                                   .mask_kind = kind,
                                   .dropout_p = 1,
                                   .key = kKey,
                                   .num_keys = 33},
                                  4);
        EXPECT_TRUE(test::same_bits(f.probs, plain.probs));
        std::vector<T> dscores(scores.size());
        softmax_dropout_backward<T>({.ddropped = scores.data(),
                                     .probs = f.probs.data(),
                                     .mask = f.mask.data(),
                                     .dscores = dscores.data(),
                                     .mask_kind = kind,
                                     .dropout_p = 1,
                                     .key = kKey,
                                     .num_keys = 33},
                                    0, 4);
        for (size_t i = 0; i < scores.size(); ++i) {
            ASSERT_EQ(to_double(f.dropped[i]), 0.0);
            ASSERT_EQ(to_double(dscores[i]), 0.0);
        }
    }
}

}  // namespace
}  // namespace kernels
