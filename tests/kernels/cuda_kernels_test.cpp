// Goal: each CUDA kernel gives the results of its CPU twin: masks and Philox dropout with the same
// bits, the rest within the roundings of the compute type. Built twice: cuda_kernels_test needs a
// GPU (without one, each test is skipped and says so); cuda_on_cpu_test runs the same kernels as
// fibers.

#include "tests/kernels/cuda_kernels.h"
#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"
#include "tests/kernels/gelu_error.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>

namespace kernels {
namespace {

using test::CudaKernels;
using test::CudaTypes;
using test::DeviceTensor;
using test::expect_near;
using test::kKey;

TYPED_TEST_SUITE(CudaKernels, CudaTypes);

const std::vector<int64_t> kCounts = {1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 100003};

TYPED_TEST(CudaKernels, DropoutEqualsTheCpuBitForBit) {
    using T = TypeParam;
    for (const int64_t count : kCounts) {
        for (const size_t shift : {size_t{0}, size_t{1}}) {
            for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
                const auto x = test::normal<T>(count, 1);
                std::vector<T> y(x.size());
                std::vector<uint8_t> mask(static_cast<size_t>(mask_bytes<T>(kind, count)));
                dropout_forward<T>({.x = x.data(),
                                    .y = y.data(),
                                    .mask = mask.data(),
                                    .mask_kind = kind,
                                    .dropout_p = 0.1,
                                    .key = kKey},
                                   0, count);
                DeviceTensor<T> dx(x, shift), dy(x.size(), shift), back(x.size(), shift);
                DeviceTensor<uint8_t> dmask(mask.size());
                cudaDeviceSynchronize();
                launch_dropout_forward<T>({.x = dx.data(),
                                           .y = dy.data(),
                                           .mask = dmask.data(),
                                           .mask_kind = kind,
                                           .dropout_p = 0.1,
                                           .key = kKey},
                                          count, this->stream());
                launch_dropout_backward<T>({.dy = dx.data(),
                                            .dx = back.data(),
                                            .mask = dmask.data(),
                                            .mask_kind = kind,
                                            .dropout_p = 0.1,
                                            .key = kKey},
                                           count, this->stream());
                this->wait();
                ASSERT_TRUE(test::same_bits(dy.read(), y)) << count;
                ASSERT_TRUE(test::same_bits(back.read(), y)) << count;
                ASSERT_EQ(dmask.read(), mask) << count;
            }
        }
    }
}

TYPED_TEST(CudaKernels, GeluDerivativeIsAsGoodAsTheStoredOutputAllows) {
    using T = TypeParam;
    for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
        const auto x = test::gelu_points<T>(kind);
        const auto count = static_cast<int64_t>(x.size());
        for (const MaskKind mask_kind : {MaskKind::kByte, MaskKind::kBit}) {
            DeviceTensor<T> dx(x), y(x.size()), ones(std::vector<T>(x.size(), from_double<T>(1)));
            DeviceTensor<uint8_t> mask(static_cast<size_t>(mask_bytes<T>(mask_kind, count)));
            cudaDeviceSynchronize();
            launch_inplace_gelu_forward<T>({.x = dx.data(),
                                            .y = y.data(),
                                            .mask = mask.data(),
                                            .mask_kind = mask_kind,
                                            .kind = kind},
                                           count, this->stream());
            launch_inplace_gelu_backward<T>({.dy = ones.data(),
                                             .y = y.data(),
                                             .mask = mask.data(),
                                             .dx = ones.data(),
                                             .mask_kind = mask_kind,
                                             .kind = kind},
                                            count, this->stream());
            this->wait();
            const auto error = test::measure_gelu_error(kind, x, ones.read());
            EXPECT_LE(error.excess, 1.05 * error.floor) << "worst at x = " << error.worst_x;
            const auto bits = mask.read();
            const double x_min = reference::gelu_minimum_x(kind);
            for (int64_t i = 0; i < count; ++i) {
                const double value = to_double(x[static_cast<size_t>(i)]);
                if (value != x_min) {
                    ASSERT_EQ(test::mask_at(bits, mask_kind, i), value > x_min);
                }
            }
        }
    }
}

TYPED_TEST(CudaKernels, GeluOfOddLengthsAndShiftsEqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t count : kCounts) {
        for (const size_t shift : {size_t{0}, size_t{1}}) {
            const auto x = test::normal<T>(count, 2, 0, 2);
            std::vector<T> y(x.size());
            std::vector<uint8_t> mask(static_cast<size_t>(packed_bytes(count)));
            inplace_gelu_forward<T>({.x = x.data(), .y = y.data(), .mask = mask.data()}, 0, count);
            DeviceTensor<T> device(x, shift);
            DeviceTensor<uint8_t> dmask(mask.size());
            cudaDeviceSynchronize();
            launch_inplace_gelu_forward<T>(
                {.x = device.data(), .y = device.data(), .mask = dmask.data()}, count,
                this->stream());
            this->wait();
            expect_near(device.read(), y, 8 * test::kComputeRoundoff<T>,
                        0.2 * test::kComputeRoundoff<T> + test::kTiny<T>, "y");
            EXPECT_EQ(dmask.read(), mask);
        }
    }
}

TYPED_TEST(CudaKernels, GeluWithBiasEqualsTheCpu) {
    using T = TypeParam;
    // Packs of the bias that divide a tile, that do not, one alone, and sizes without packs.
    for (const int64_t size : {1, 4, 7, 8, 24, 256, 264, 1000, 3072}) {
        const int64_t count = (size < 256 ? 999 : 9) * size;
        const auto x = test::normal<T>(count, 1), bias = test::normal<T>(size, 2);
        std::vector<T> y(x.size());
        std::vector<uint8_t> mask(static_cast<size_t>(packed_bytes(count)));
        inplace_gelu_forward<T>({.x = x.data(),
                                 .y = y.data(),
                                 .mask = mask.data(),
                                 .bias = bias.data(),
                                 .bias_size = size},
                                0, count);
        DeviceTensor<T> device_x(x), device_bias(bias), device_y(y.size());
        DeviceTensor<uint8_t> device_mask(mask.size());
        cudaDeviceSynchronize();
        launch_inplace_gelu_forward<T>({.x = device_x.data(),
                                        .y = device_y.data(),
                                        .mask = device_mask.data(),
                                        .bias = device_bias.data(),
                                        .bias_size = size},
                                       count, this->stream());
        this->wait();
        expect_near(device_y.read(), y, 8 * test::kComputeRoundoff<T>,
                    0.2 * test::kComputeRoundoff<T> + test::kTiny<T>, "y");
        EXPECT_EQ(device_mask.read(), mask);
    }
}

/// Rows in registers: several warps to a row, several rows to a block, and more rows than partials.
/// With 1840 and 240 rows large cards also have more blocks than partials. Then rows of any length.
const std::vector<std::pair<int64_t, int64_t>> kRowShapes = {
    {1, 3},    {5, 8},    {7, 65},   {70, 512}, {9, 1024}, {230, 1600}, {1840, 264},
    {3, 4096}, {5, 4104}, {3, 8192}, {3, 8200}, {5, 5001}, {240, 2056}};

TYPED_TEST(CudaKernels, LayerNormEqualsTheCpu) {
    using T = TypeParam;
    using S = StatOf<T>;
    for (const auto& [num_rows, size] : kRowShapes) {
        const auto count = static_cast<size_t>(num_rows * size),
                   rows = static_cast<size_t>(num_rows), h = static_cast<size_t>(size);
        const auto x = test::normal<T>(num_rows * size, 1, 0.3, 2),
                   dy = test::normal<T>(num_rows * size, 2);
        auto gamma = test::normal<T>(size, 3, 1, 0.1);
        const auto beta = test::normal<T>(size, 4, 0, 0.3);
        std::vector<T> y(count), normalized(count), dx(count), dgamma(h), dbeta(h);
        std::vector<S> rstd(rows),
            partials(static_cast<size_t>(layer_norm_num_partials(num_rows)) * 2 * h);
        layer_norm_forward<T>({.x = x.data(),
                               .gamma = gamma.data(),
                               .beta = beta.data(),
                               .y = y.data(),
                               .normalized = normalized.data(),
                               .rstd = rstd.data(),
                               .hidden_size = size,
                               .eps = 1e-5},
                              0, num_rows);
        DeviceTensor<T> device_x(x), device_dy(dy), device_gamma(gamma), device_beta(beta),
            device_y(count), device_normalized(count), device_dx(count), device_dgamma(h),
            device_dbeta(h);
        const int64_t num_partials = layer_norm_cuda_num_partials(num_rows);
        DeviceTensor<S> device_rstd(rows),
            device_partials(static_cast<size_t>(num_partials) * 2 * h);
        cudaDeviceSynchronize();
        launch_layer_norm_forward<T>({.x = device_x.data(),
                                      .gamma = device_gamma.data(),
                                      .beta = device_beta.data(),
                                      .y = device_y.data(),
                                      .normalized = device_normalized.data(),
                                      .rstd = device_rstd.data(),
                                      .hidden_size = size,
                                      .eps = 1e-5},
                                     num_rows, this->stream());
        this->wait();
        const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
        expect_near(device_y.read(), y, 0, 100 * c + u, "y");
        expect_near(device_rstd.read(), rstd, 40 * c, 0, "rstd");
        for (const LayerNormSave save : {LayerNormSave::kOutput, LayerNormSave::kNormalized}) {
            const auto& saved = save == LayerNormSave::kOutput ? y : normalized;
            layer_norm_backward<T>({.dy = dy.data(),
                                    .saved = saved.data(),
                                    .gamma = gamma.data(),
                                    .beta = beta.data(),
                                    .rstd = rstd.data(),
                                    .dx = dx.data(),
                                    .partials = partials.data(),
                                    .save = save,
                                    .hidden_size = size},
                                   num_rows, 0, layer_norm_num_partials(num_rows));
            layer_norm_reduce_partials<T>(partials.data(), layer_norm_num_partials(num_rows), size,
                                          dgamma.data(), dbeta.data(), 0, size);
            DeviceTensor<T> device_saved(saved);
            cudaDeviceSynchronize();
            launch_layer_norm_backward<T>({.dy = device_dy.data(),
                                           .saved = device_saved.data(),
                                           .gamma = device_gamma.data(),
                                           .beta = device_beta.data(),
                                           .rstd = device_rstd.data(),
                                           .dx = device_dx.data(),
                                           .partials = device_partials.data(),
                                           .save = save,
                                           .hidden_size = size},
                                          num_rows, this->stream());
            launch_layer_norm_reduce_partials<T>(device_partials.data(), num_partials, size,
                                                 device_dgamma.data(), device_dbeta.data(),
                                                 this->stream());
            this->wait();
            const double sums = 200 * c * std::sqrt(static_cast<double>(num_rows)) * 10;
            expect_near(device_dx.read(), dx, 0, 400 * c + 2 * u, "dx");
            expect_near(device_dgamma.read(), dgamma, 0, sums, "dgamma");
            expect_near(device_dbeta.read(), dbeta, 0, sums, "dbeta");
        }
    }
}

/// The mask has the same bits, and so has the sum, since both round after each step.
TYPED_TEST(CudaKernels, ResidualLayerNormEqualsTheCpu) {
    using T = TypeParam;
    using S = StatOf<T>;
    for (const auto& [num_rows, size] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 8}, {70, 264}, {230, 768}, {9, 1600}, {3, 4096}, {3, 8192}}) {
        if (sizeof(T) == 8 && size > kMaxFusedHiddenSize / 2) continue;
        const auto count = static_cast<size_t>(num_rows * size);
        const auto rows = static_cast<size_t>(num_rows), h = static_cast<size_t>(size);
        const auto x = test::normal<T>(num_rows * size, 1),
                   residual = test::normal<T>(num_rows * size, 2);
        const auto dy = test::normal<T>(num_rows * size, 3),
                   dsum = test::normal<T>(num_rows * size, 4);
        for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
            std::vector<T> y(count), sum(count), dx(count), dresidual(count);
            std::vector<S> rstd(rows);
            std::vector<uint8_t> mask(static_cast<size_t>(mask_bytes<T>(kind, num_rows * size)));
            ResidualLayerNormForwardArgs<T> args = {.x = x.data(),
                                                    .residual = residual.data(),
                                                    .y = y.data(),
                                                    .sum = sum.data(),
                                                    .rstd = rstd.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = kind,
                                                    .dropout_p = 0.1,
                                                    .key = kKey,
                                                    .hidden_size = size,
                                                    .eps = 1e-5};
            residual_layer_norm_forward(args, 0, num_rows);
            ResidualLayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                                     .dsum = dsum.data(),
                                                     .saved = y.data(),
                                                     .rstd = rstd.data(),
                                                     .mask = mask.data(),
                                                     .dx = dx.data(),
                                                     .dresidual = dresidual.data(),
                                                     .mask_kind = kind,
                                                     .dropout_p = 0.1,
                                                     .key = kKey,
                                                     .hidden_size = size};
            residual_layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
            DeviceTensor<T> device_x(x), device_residual(residual), device_y(count),
                device_sum(count), device_dy(dy), device_dsum(dsum), device_saved(y),
                device_dx(count), device_dresidual(count);
            DeviceTensor<S> device_rstd(rows),
                device_partials(static_cast<size_t>(layer_norm_cuda_num_partials(num_rows)) * 2 *
                                h);
            DeviceTensor<uint8_t> device_mask(mask.size());
            cudaDeviceSynchronize();
            args.x = device_x.data();
            args.residual = device_residual.data();
            args.y = device_y.data();
            args.sum = device_sum.data();
            args.rstd = device_rstd.data();
            args.mask = device_mask.data();
            launch_residual_layer_norm_forward(args, num_rows, this->stream());
            back.dy = device_dy.data();
            back.dsum = device_dsum.data();
            back.saved = device_saved.data();
            back.rstd = device_rstd.data();
            back.mask = device_mask.data();
            back.dx = device_dx.data();
            back.dresidual = device_dresidual.data();
            back.partials = device_partials.data();
            launch_residual_layer_norm_backward(back, num_rows, this->stream());
            this->wait();
            const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
            EXPECT_EQ(device_mask.read(), mask);
            EXPECT_TRUE(test::same_bits(device_sum.read(), sum));
            expect_near(device_y.read(), y, 0, 100 * c + u, "y");
            expect_near(device_dresidual.read(), dresidual, 0, 400 * c + 4 * u, "dresidual");
            expect_near(device_dx.read(), dx, 0, 400 * c + 8 * u, "dx");
        }
    }
}

TYPED_TEST(CudaKernels, SoftmaxDropoutEqualsTheCpu) {
    using T = TypeParam;
    const int64_t num_heads = 3, num_queries = 13;
    for (const int64_t num_keys :
         {1, 5, 8, 63, 64, 120, 128, 136, 384, 512, 1000, 1024, 2048, 2049}) {
        for (const MaskKind kind : {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone}) {
            const int64_t num_rows = num_heads * num_queries, count = num_rows * num_keys;
            const auto n = static_cast<size_t>(count);
            const auto scores = test::normal<T>(count, 1, 0, 3),
                       additive = test::normal<T>(num_heads * num_keys, 2),
                       dd = test::normal<T>(count, 3);
            std::vector<T> probs(n), dropped(n), dscores(n);
            std::vector<uint8_t> mask(static_cast<size_t>(mask_bytes<T>(kind, count)));
            SoftmaxDropoutForwardArgs<T> args = {.scores = scores.data(),
                                                 .additive_mask = additive.data(),
                                                 .probs = probs.data(),
                                                 .dropped = dropped.data(),
                                                 .mask = mask.data(),
                                                 .mask_kind = kind,
                                                 .dropout_p = 0.1,
                                                 .key = kKey,
                                                 .scale = 0.5,
                                                 .num_keys = num_keys,
                                                 .num_queries = std::min(num_queries, num_keys),
                                                 .rows_per_mask = num_queries,
                                                 .causal = num_keys % 2 == 0};
            softmax_dropout_forward(args, 0, num_rows);
            softmax_dropout_backward<T>({.ddropped = dd.data(),
                                         .probs = probs.data(),
                                         .mask = mask.data(),
                                         .dscores = dscores.data(),
                                         .mask_kind = kind,
                                         .dropout_p = 0.1,
                                         .key = kKey,
                                         .scale = 0.5,
                                         .num_keys = num_keys},
                                        0, num_rows);
            DeviceTensor<T> device_scores(scores), device_additive(additive), device_probs(n),
                device_dropped(n), device_again(n), device_dd(dd);
            DeviceTensor<uint8_t> device_mask(mask.size());
            args.scores = device_scores.data();
            args.additive_mask = device_additive.data();
            args.probs = device_probs.data();
            args.dropped = device_dropped.data();
            args.mask = device_mask.data();
            cudaDeviceSynchronize();
            launch_softmax_dropout_forward(args, num_rows, this->stream());
            launch_recompute_dropped_probs<T>({.probs = device_probs.data(),
                                               .dropped = device_again.data(),
                                               .mask = device_mask.data(),
                                               .mask_kind = kind,
                                               .dropout_p = 0.1,
                                               .key = kKey,
                                               .num_keys = num_keys},
                                              num_rows, this->stream());
            launch_softmax_dropout_backward<T>({.ddropped = device_dd.data(),
                                                .probs = device_probs.data(),
                                                .mask = device_mask.data(),
                                                .dscores = device_dd.data(),
                                                .mask_kind = kind,
                                                .dropout_p = 0.1,
                                                .key = kKey,
                                                .scale = 0.5,
                                                .num_keys = num_keys},
                                               num_rows, this->stream());
            this->wait();
            const double c = test::kComputeRoundoff<T>, u = test::kRoundoff<T>;
            expect_near(device_probs.read(), probs, 100 * c, test::kTiny<T>, "probs");
            EXPECT_TRUE(test::same_bits(device_again.read(), device_dropped.read()));
            EXPECT_EQ(device_mask.read(), mask);
            expect_near(device_dd.read(), dscores, 100 * c, 100 * c + 4 * u, "dscores");
        }
    }
}

}  // namespace
}  // namespace kernels
