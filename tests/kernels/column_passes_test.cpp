// Goal: the fused passes with sums of columns equal their double-precision reference, in every
// type, mask format and activation, at sizes around every boundary; ranges give what the whole
// gives.

#include "tests/kernels/column_passes_cases.h"
#include "tests/kernels/kernel_devices.h"

namespace kernels {
namespace {

template <typename T>
class ColumnPassesOfType : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(ColumnPassesOfType, Types);

TYPED_TEST(ColumnPassesOfType, EqualTheReference) {
    test::check_all_column_passes<test::OnCpu, TypeParam>();
}

TYPED_TEST(ColumnPassesOfType, ForwardWorksByRanges) {
    using T = TypeParam;
    const int64_t num_rows = 70, size = 33, count = num_rows * size;
    const auto x = test::normal<T>(count, 1), bias = test::normal<T>(size, 2);
    std::vector<T> whole(x.size()), parts(x.size());
    std::vector<uint8_t> whole_mask(x.size()), part_mask(x.size());
    BiasDropoutForwardArgs<T> args{.x = x.data(),
                                   .bias = bias.data(),
                                   .y = whole.data(),
                                   .mask = whole_mask.data(),
                                   .dropout_p = 0.3,
                                   .key = test::kPassKey,
                                   .activation = Activation::kRelu,
                                   .num_columns = size};
    bias_dropout_forward(args, 0, num_rows);
    args.y = parts.data();
    args.mask = part_mask.data();
    bias_dropout_forward(args, 64, num_rows);
    bias_dropout_forward(args, 0, 64);
    EXPECT_TRUE(test::same_bits(whole, parts));
    EXPECT_EQ(whole_mask, part_mask);
}

/// GELU far from 0, where a careless derivative is inf · 0.
TEST(ColumnPasses, GeluDerivativeIsRightForHugeAndTinyInputs) {
    const std::vector<float> x = {0.0f,   -0.0f,  1e-30f, 1e-4f, -1e-4f, 0.4999f, 0.5f,
                                  -0.5f,  -0.75f, 3.9f,   -3.9f, 5.0f,   -5.0f,   12.0f,
                                  -12.0f, 1e4f,   -1e4f,  3e38f, -3e38f};
    const std::vector<float> dy(x.size(), 1.0f);
    for (const Activation activation : {Activation::kGelu, Activation::kTanhGelu}) {
        std::vector<float> dx(x.size());
        bias_dropout_backward<float>({.dy = dy.data(),
                                      .x = x.data(),
                                      .dx = dx.data(),
                                      .activation = activation,
                                      .num_columns = static_cast<int64_t>(x.size()),
                                      .num_rows = 1},
                                     0, 1);
        for (size_t i = 0; i < x.size(); ++i) {
            const double held = std::max(-40.0, std::min(40.0, double{x[i]}));
            EXPECT_NEAR(dx[i], reference::activation_derivative(activation, held), 3e-7) << x[i];
        }
    }
}

}  // namespace
}  // namespace kernels
