// Goal: tensors of more than 2^31 elements are indexed right, and the emulation that runs the CUDA
// kernels here refuses what would hang on a card. Such tensors need not exist: only the last blocks
// of the grid run, on pointers shifted so that their elements are a small window.

#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>

namespace kernels {
namespace {

const DropoutKey kKey = {.seed = 77, .rank = 2, .step = 3, .layer = 4, .site = 1};

/// The last `count` elements of a tensor of `first + count`: data() is where element 0 would be.
template <typename T>
class Window {
public:
    Window(int64_t first, const std::vector<T>& values) : first_(first), values_(values) {}
    Window(int64_t first, int64_t count) : Window(first, std::vector<T>(size_t(count))) {}
    T* data() { return values_.data() - first_; }
    const std::vector<T>& values() const { return values_; }

private:
    int64_t first_;
    std::vector<T> values_;
};

class BeyondTwoToThe31 : public testing::TestWithParam<MaskKind> {
protected:
    void SetUp() override { cuda_on_cpu::run_last_blocks_only(1); }
    void TearDown() override { cuda_on_cpu::run_last_blocks_only(0); }
};

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
}

/// A whole tile and a partial one.
TEST_P(BeyondTwoToThe31, FlatKernels) {
    const int64_t begin = int64_t{1} << 33, rest = 256 + 77, count = begin + rest;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes(GetParam(), rest);
    Window<float> x(begin, test::normal<float>(rest, 1)), y(begin, rest), expected(begin, rest);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    DropoutForwardArgs<float> drop = {.x = x.data(),
                                      .y = y.data(),
                                      .mask = mask.data(),
                                      .mask_kind = GetParam(),
                                      .dropout_p = 0.3,
                                      .key = kKey};
    launch_dropout_forward(drop, count, nullptr);
    drop.y = expected.data();
    drop.mask = expected_mask.data();
    dropout_forward(drop, begin, count);
    EXPECT_TRUE(test::same_bits(y.values(), expected.values()));
    EXPECT_EQ(mask.values(), expected_mask.values());
    launch_dropout_backward<float>({.dy = x.data(),
                                    .dx = y.data(),
                                    .mask = mask.data(),
                                    .mask_kind = GetParam(),
                                    .dropout_p = 0.3,
                                    .key = kKey},
                                   count, nullptr);
    EXPECT_TRUE(test::same_bits(y.values(), expected.values()));
    if (GetParam() == MaskKind::kNone) return;

    const auto bias = test::normal<float>(1000, 2);
    InplaceGeluForwardArgs<float> gelu = {.x = x.data(),
                                          .y = y.data(),
                                          .mask = mask.data(),
                                          .mask_kind = GetParam(),
                                          .bias = bias.data(),
                                          .bias_size = 1000};
    launch_inplace_gelu_forward(gelu, count, nullptr);
    gelu.y = expected.data();
    gelu.mask = expected_mask.data();
    inplace_gelu_forward(gelu, begin, count);
    expect_near(y.values(), expected.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
    Window<float> dx(begin, rest), expected_dx(begin, rest);
    InplaceGeluBackwardArgs<float> back = {.dy = x.data(),
                                           .y = expected.data(),
                                           .mask = mask.data(),
                                           .dx = dx.data(),
                                           .mask_kind = GetParam()};
    launch_inplace_gelu_backward(back, count, nullptr);
    back.dx = expected_dx.data();
    inplace_gelu_backward(back, begin, count);
    expect_near(dx.values(), expected_dx.values());
}

/// Four rows, one warp each.
TEST_P(BeyondTwoToThe31, SoftmaxDropout) {
    const int64_t size = 128, first_row = int64_t{1} << 26, num_rows = first_row + 4;
    const int64_t begin = first_row * size, rest = 4 * size;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes(GetParam(), rest);
    Window<float> scores(begin, test::normal<float>(rest, 1)), probs(begin, rest),
        dropped(begin, rest), expected_probs(begin, rest), expected_dropped(begin, rest);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    SoftmaxDropoutForwardArgs<float> args = {.scores = scores.data(),
                                             .probs = probs.data(),
                                             .dropped = dropped.data(),
                                             .mask = mask.data(),
                                             .mask_kind = GetParam(),
                                             .dropout_p = 0.3,
                                             .key = kKey,
                                             .num_keys = size,
                                             .num_queries = size,
                                             .causal = true};
    launch_softmax_dropout_forward(args, num_rows, nullptr);
    args.probs = expected_probs.data();
    args.dropped = expected_dropped.data();
    args.mask = expected_mask.data();
    softmax_dropout_forward(args, first_row, num_rows);
    expect_near(probs.values(), expected_probs.values());
    expect_near(dropped.values(), expected_dropped.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
    SoftmaxDropoutBackwardArgs<float> back = {.ddropped = scores.data(),
                                              .probs = expected_probs.data(),
                                              .mask = mask.data(),
                                              .dscores = probs.data(),
                                              .mask_kind = GetParam(),
                                              .dropout_p = 0.3,
                                              .key = kKey,
                                              .num_keys = size};
    launch_softmax_dropout_backward(back, num_rows, nullptr);
    back.dscores = expected_dropped.data();
    softmax_dropout_backward(back, first_row, num_rows);
    expect_near(probs.values(), expected_dropped.values());
}

/// Forward only: backward's blocks walk over all rows, with the index arithmetic of forward.
TEST_P(BeyondTwoToThe31, LayerNorm) {
    const int64_t size = 256, first_row = int64_t{1} << 25, num_rows = first_row + 4;
    const int64_t begin = first_row * size, rest = 4 * size;
    const int64_t mask_begin = GetParam() == MaskKind::kBit ? begin / 8 : begin;
    const int64_t mask_size = mask_bytes(GetParam(), rest);
    Window<float> x(begin, test::normal<float>(rest, 1)), y(begin, rest), expected(begin, rest),
        rstd(first_row, 4);
    Window<uint8_t> mask(mask_begin, mask_size), expected_mask(mask_begin, mask_size);
    LayerNormForwardArgs<float> norm = {
        .x = x.data(), .y = y.data(), .rstd = rstd.data(), .hidden_size = size, .eps = 1e-5};
    launch_layer_norm_forward(norm, num_rows, nullptr);
    norm.y = expected.data();
    layer_norm_forward(norm, first_row, num_rows);
    expect_near(y.values(), expected.values());
    ResidualLayerNormForwardArgs<float> residual = {.x = x.data(),
                                                    .residual = x.data(),
                                                    .y = y.data(),
                                                    .rstd = rstd.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = GetParam(),
                                                    .dropout_p = 0.3,
                                                    .key = kKey,
                                                    .hidden_size = size,
                                                    .eps = 1e-5};
    launch_residual_layer_norm_forward(residual, num_rows, nullptr);
    residual.y = expected.data();
    residual.mask = expected_mask.data();
    residual_layer_norm_forward(residual, first_row, num_rows);
    expect_near(y.values(), expected.values());
    EXPECT_EQ(mask.values(), expected_mask.values());
}

INSTANTIATE_TEST_SUITE_P(Masks, BeyondTwoToThe31,
                         testing::Values(MaskKind::kByte, MaskKind::kBit, MaskKind::kNone));

TEST(CudaOnCpu, RefusesABarrierThatSomeThreadsDoNotReach) {
    const auto run = [](const std::function<void()>& thread) {
        cuda_on_cpu::run("kernel", 1, 64, thread);
    };
    run([] { __syncthreads(); });
    EXPECT_THROW(run([] {
                     if (threadIdx.x != 5) __syncthreads();
                 }),
                 std::runtime_error);
    EXPECT_THROW(run([] {
                     if (threadIdx.x != 5) __shfl_sync(~0u, 1, 0);
                 }),
                 std::runtime_error);
}

TEST(CudaOnCpu, ShufflesTakeTheValueOfTheirWarp) {
    std::vector<int> got(64);
    cuda_on_cpu::run("kernel", 1, 64, [&] {
        const int own = static_cast<int>(threadIdx.x);
        int value = __shfl_xor_sync(~0u, own, 1);
        value = __shfl_sync(~0u, value, 3);
        got[threadIdx.x] = value;
    });
    for (size_t t = 0; t < 64; ++t) EXPECT_EQ(got[t], t < 32 ? 2 : 34) << t;
}

}  // namespace
}  // namespace kernels
