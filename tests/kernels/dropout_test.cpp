#include "kernels/dropout.h"

#include "kernels/philox.h"
#include "kernels/reference/dropout_reference.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>

namespace kernels {
namespace {

using test::kLengths;

const DropoutKey kKey = {
    .seed = 0x123456789ABCDEFull, .rank = 3, .step = 7, .layer = 11, .site = 2};

template <typename T>
struct Dropped {
    std::vector<T> y;
    std::vector<uint8_t> mask;
};

template <typename T>
Dropped<T> forward(const std::vector<T>& x, MaskKind kind, double p, const DropoutKey& key = kKey) {
    const auto count = static_cast<int64_t>(x.size());
    Dropped<T> result{std::vector<T>(x.size()),
                      std::vector<uint8_t>(static_cast<size_t>(mask_bytes<T>(kind, count)), 0xAA)};
    dropout_forward<T>({.x = x.data(),
                        .y = result.y.data(),
                        .mask = result.mask.data(),
                        .mask_kind = kind,
                        .dropout_p = p,
                        .key = key},
                       0, count);
    return result;
}

template <typename T>
std::vector<T> backward(const std::vector<T>& dy, const std::vector<uint8_t>& mask, MaskKind kind,
                        double p) {
    std::vector<T> dx(dy.size());
    dropout_backward<T>({.dy = dy.data(),
                         .dx = dx.data(),
                         .mask = mask.data(),
                         .mask_kind = kind,
                         .dropout_p = p,
                         .key = kKey},
                        0, static_cast<int64_t>(dy.size()));
    return dx;
}

template <typename T>
class DropoutOfType : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(DropoutOfType, Types);

TYPED_TEST(DropoutOfType, EqualsReferenceForEveryLengthAndMaskKind) {
    for (const int64_t count : kLengths) {
        for (const double p : {0.1, 0.5, 0.9}) {
            const auto x = test::normal<TypeParam>(count, 1);
            const auto keep = reference::dropout_keep(kKey, p, count);
            const auto expected = reference::dropout(test::load(x), keep, p);
            for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
                const auto got = forward(x, kind, p);
                for (int64_t i = 0; i < count; ++i) {
                    const auto at = static_cast<size_t>(i);
                    // One rounding of 1/q and of the product in the compute type, one to T.
                    const double tolerance =
                        std::abs(expected[at]) *
                        (test::kRoundoff<TypeParam> + 2.01 * test::kComputeRoundoff<TypeParam>);
                    ASSERT_NEAR(to_double(got.y[at]), expected[at],
                                tolerance + test::kTiny<TypeParam>)
                        << "element " << i << " of " << count;
                    if (kind != MaskKind::kNone) {
                        ASSERT_EQ(test::mask_at(got.mask, kind, i), keep[at]);
                    }
                }
            }
        }
    }
}

TYPED_TEST(DropoutOfType, BackwardOfTheInputRepeatsForwardBitForBit) {
    for (const int64_t count : kLengths) {
        const auto x = test::normal<TypeParam>(count, 2);
        for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
            const auto got = forward(x, kind, 0.1);
            EXPECT_TRUE(test::same_bits(backward(x, got.mask, kind, 0.1), got.y)) << count;
        }
    }
}

TYPED_TEST(DropoutOfType, RangesInPlaceGiveWhatTheWholeGives) {
    const auto x = test::normal<TypeParam>(1000, 4);
    for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit}) {
        const auto expected = forward(x, kind, 0.1);
        auto y = x, dx = x;
        std::vector<uint8_t> mask(expected.mask.size());
        const DropoutForwardArgs<TypeParam> args = {.x = y.data(),
                                                    .y = y.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = kind,
                                                    .dropout_p = 0.1,
                                                    .key = kKey};
        dropout_forward(args, 640, 1000);
        dropout_forward(args, 0, kElementGranularity);
        dropout_forward(args, kElementGranularity, 640);
        EXPECT_TRUE(test::same_bits(y, expected.y));
        EXPECT_EQ(mask, expected.mask);
        dropout_backward<TypeParam>({.dy = dx.data(),
                                     .dx = dx.data(),
                                     .mask = mask.data(),
                                     .mask_kind = kind,
                                     .dropout_p = 0.1,
                                     .key = kKey},
                                    0, 1000);
        EXPECT_TRUE(test::same_bits(dx, expected.y));
    }
}

TYPED_TEST(DropoutOfType, ProbabilityZeroKeepsAndOneDropsEverything) {
    const auto x = test::normal<TypeParam>(100, 5);
    for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
        const auto kept = forward(x, kind, 0.0);
        EXPECT_TRUE(test::same_bits(kept.y, x));
        EXPECT_TRUE(test::same_bits(backward(x, kept.mask, kind, 0.0), x));
        const auto none = forward(x, kind, 1.0);
        for (const TypeParam& y : none.y) EXPECT_EQ(to_double(y), 0.0);
        for (const TypeParam& dx : backward(x, none.mask, kind, 1.0)) EXPECT_EQ(to_double(dx), 0.0);
    }
}

TEST(Dropout, DroppedInfinityAndNanAreZero) {
    std::vector<float> x(256, std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < x.size(); i += 2) x[i] = std::nanf("");
    const auto got = forward(x, MaskKind::kByte, 0.5);
    for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(got.y[i] == 0.0f, got.mask[i] == 0);
    }
}

TEST(Dropout, KeepsWithTheQuantizedProbabilityAndScalesByItsInverse) {
    EXPECT_EQ(keep_threshold(0.1), 58982u);
    EXPECT_EQ(keep_threshold(0.0), 65536u);
    EXPECT_EQ(keep_threshold(1.0), 0u);
    EXPECT_EQ(keep_scale(58982), 65536.0 / 58982);
    EXPECT_EQ(keep_scale(0), 0.0);
}

/// The number of kept elements is binomial. 5 standard deviations: one false alarm in 1.7 million
/// checks. Pairs at small distances must be independent: both kept with probability q^2.
TEST(Dropout, KeptFractionAndNeighboursFollowTheProbability) {
    const int64_t count = 1 << 20;
    const std::vector<float> x(static_cast<size_t>(count), 1.0f);
    for (const double p : {0.1, 0.5, 0.01}) {
        const double q = keep_threshold(p) / 65536.0;
        for (uint32_t step = 0; step < 3; ++step) {
            DropoutKey key = kKey;
            key.step = step;
            const auto got = forward(x, MaskKind::kByte, p, key);
            int64_t kept = 0;
            for (const uint8_t bit : got.mask) kept += bit;
            const double n = static_cast<double>(count);
            EXPECT_NEAR(static_cast<double>(kept), n * q, 5 * std::sqrt(n * q * (1 - q)));
            for (const int64_t distance : {1, 2, 7, 8, 64, 512, 768}) {
                int64_t both = 0;
                for (int64_t i = 0; i + distance < count; ++i) {
                    both += got.mask[static_cast<size_t>(i)] &
                            got.mask[static_cast<size_t>(i + distance)];
                }
                const double r = q * q;
                EXPECT_NEAR(static_cast<double>(both), n * r, 8 * std::sqrt(n * r * (1 - r)))
                    << "distance " << distance;
            }
        }
    }
}

TEST(Dropout, EveryPartOfTheKeyChangesTheMask) {
    const std::vector<float> x(4096, 1.0f);
    const auto base = forward(x, MaskKind::kBit, 0.5).mask;
    std::vector<DropoutKey> others(6, kKey);
    others[0].seed ^= 1;
    others[1].seed ^= uint64_t{1} << 40;
    others[2].rank += 1;
    others[3].step += 1;
    others[4].layer += 1;
    others[5].site += 1;
    for (const DropoutKey& key : others) {
        const auto mask = forward(x, MaskKind::kBit, 0.5, key).mask;
        int different = 0;
        for (size_t i = 0; i < mask.size(); ++i)
            different += std::popcount(uint8_t(mask[i] ^ base[i]));
        EXPECT_NEAR(different, 2048, 5 * 32);  // half of the elements, 5 standard deviations
    }
}

/// Known answers of Random123's philox4x32-10 (kat_vectors): all zeros, all ones, and digits of pi.
TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
    const PhiloxWords zeros = philox4x32_10({}, 0);
    EXPECT_EQ(zeros.x0, 0x6627e8d5u);
    EXPECT_EQ(zeros.x1, 0xe169c58du);
    EXPECT_EQ(zeros.x2, 0xbc57ac4cu);
    EXPECT_EQ(zeros.x3, 0x9b00dbd8u);
    const uint32_t f = 0xffffffffu;
    const PhiloxWords ones = philox4x32_10({f, f, f, f, f}, f);
    EXPECT_EQ(ones.x0, 0x408f276du);
    EXPECT_EQ(ones.x1, 0x41c83b0eu);
    EXPECT_EQ(ones.x2, 0xa20bc7c6u);
    EXPECT_EQ(ones.x3, 0x6d5451fdu);
    const PhiloxWords pi = philox4x32_10(
        {0xa4093822u, 0x299f31d0u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0x243f6a88u);
    EXPECT_EQ(pi.x0, 0xd16cfe09u);
    EXPECT_EQ(pi.x1, 0x94fdccebu);
    EXPECT_EQ(pi.x2, 0x5001e420u);
    EXPECT_EQ(pi.x3, 0x24126ea1u);
}

/// Above 2^31 elements the counter must not wrap: only the last block is computed.
TEST(Dropout, IndexesBeyondTwoToThe31Elements) {
    const int64_t begin = (int64_t{1} << 33) + 64;
    std::vector<float> window(64, 1.0f);
    std::vector<float> y(64);
    // Pointers are shifted so that elements [begin, begin + 64) are the window.
    dropout_backward<float>({.dy = window.data() - begin,
                             .dx = y.data() - begin,
                             .mask_kind = MaskKind::kNone,
                             .dropout_p = 0.5,
                             .key = kKey},
                            begin, begin + 64);
    for (uint32_t j = 0; j < 64; ++j) {
        const auto words =
            philox4x32_10(make_philox_key(kKey), static_cast<uint32_t>(begin / 8) + j / 8);
        const bool keep = keep_bits_8(words, keep_threshold(0.5)) >> (j % 8) & 1;
        EXPECT_EQ(y[j], keep ? 2.0f : 0.0f);
    }
}

}  // namespace
}  // namespace kernels
