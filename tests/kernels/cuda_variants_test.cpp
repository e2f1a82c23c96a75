// Goal: CUDA kernels give the results of their CPU twins also with arguments left out (no gamma,
// beta, dx or partial sums), without dropout and with p = 1, and for GELU's backward at any length
// and address. Built twice, as cuda_kernels_test.cpp.

#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/residual_layernorm.h"
#include "kernels/softmax_dropout.h"
#include "tests/kernels/cuda_kernels.h"

namespace kernels {
namespace {

using test::DeviceTensor;
using test::expect_near;
using test::kKey;

const MaskKind kMaskKinds[] = {MaskKind::kByte, MaskKind::kBit, MaskKind::kNone};

template <typename T>
class CudaVariants : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaVariants, test::CudaTypes);

template <typename T>
constexpr double kLowest = std::numeric_limits<StatOf<T>>::lowest();
template <>
constexpr double kLowest<Half> = -65504;
template <>
constexpr double kLowest<BFloat16> = -0x1.FEp127;

template <typename T>
size_t size_of_mask(MaskKind kind, const std::vector<T>& x) {
    return static_cast<size_t>(mask_bytes<T>(kind, static_cast<int64_t>(x.size())));
}

TYPED_TEST(CudaVariants, GeluBackwardOfOddLengthsAndShiftsEqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t count : {1, 7, 255, 256, 257, 2049, 2304}) {
        for (const size_t shift : {size_t{0}, size_t{1}}) {
            for (const GeluKind kind : {GeluKind::kErf, GeluKind::kTanh}) {
                const auto x = test::normal<T>(count, 1, 0, 2), dy = test::normal<T>(count, 2);
                std::vector<T> y(x.size()), dx(x.size());
                std::vector<uint8_t> mask(size_of_mask(MaskKind::kBit, x));
                inplace_gelu_forward<T>({.x = x.data(),
                                         .y = y.data(),
                                         .mask = mask.data(),
                                         .mask_kind = MaskKind::kBit,
                                         .kind = kind},
                                        0, count);
                InplaceGeluBackwardArgs<T> args = {.dy = dy.data(),
                                                   .y = y.data(),
                                                   .mask = mask.data(),
                                                   .dx = dx.data(),
                                                   .mask_kind = MaskKind::kBit,
                                                   .kind = kind};
                inplace_gelu_backward(args, 0, count);
                DeviceTensor<T> device_dy(dy, shift), device_y(y, shift), device_dx(x.size());
                DeviceTensor<uint8_t> device_mask(mask);
                cudaDeviceSynchronize();
                args.dy = device_dy.data();
                args.y = device_y.data();
                args.mask = device_mask.data();
                args.dx = device_dx.data();
                launch_inplace_gelu_backward(args, count, this->stream());
                this->wait();
                // 16-bit types take fits with an error of 6e-5 on CUDA.
                const double fit = sizeof(T) == 2 ? 3e-4 : 1e-5;
                expect_near(device_dx.read(), dx, fit, fit, "dx");
            }
        }
    }
}

TYPED_TEST(CudaVariants, DropoutOfProbability0KeepsAllAnd1Nothing) {
    using T = TypeParam;
    const auto x = test::normal<T>(777, 1);
    for (const double p : {0.0, 1.0}) {
        const std::vector<T> expected = p == 0 ? x : std::vector<T>(x.size());
        for (const MaskKind kind : kMaskKinds) {
            DeviceTensor<T> device_x(x), device_y(x.size()), device_dx(x.size());
            DeviceTensor<uint8_t> mask(size_of_mask(kind, x));
            cudaDeviceSynchronize();
            launch_dropout_forward<T>({.x = device_x.data(),
                                       .y = device_y.data(),
                                       .mask = mask.data(),
                                       .mask_kind = kind,
                                       .dropout_p = p,
                                       .key = kKey},
                                      777, this->stream());
            launch_dropout_backward<T>({.dy = device_x.data(),
                                        .dx = device_dx.data(),
                                        .mask = mask.data(),
                                        .mask_kind = kind,
                                        .dropout_p = p,
                                        .key = kKey},
                                       777, this->stream());
            this->wait();
            EXPECT_TRUE(test::same_bits(device_y.read(), expected));
            EXPECT_TRUE(test::same_bits(device_dx.read(), expected));
        }
    }
}

/// Rows in registers and rows of any length, without gamma, without beta, and without each result
/// once.
TYPED_TEST(CudaVariants, LayerNormWithoutAffineOrUnwantedResultsEqualsTheCpu) {
    using T = TypeParam;
    using S = StatOf<T>;
    const int64_t num_rows = 9;
    for (const int64_t size : {264, 65, 4100}) {
        const auto h = static_cast<size_t>(size), count = h * num_rows;
        const auto x = test::normal<T>(num_rows * size, 1),
                   dy = test::normal<T>(num_rows * size, 2),
                   gamma = test::normal<T>(size, 3, 1, 0.1),
                   beta = test::normal<T>(size, 4, 0, 0.3);
        DeviceTensor<T> device_x(x), device_dy(dy), device_gamma(gamma), device_beta(beta);
        for (const auto& [has_gamma, has_beta] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
            std::vector<T> y(count), dx(count);
            std::vector<S> rstd(num_rows), partials(2 * h * layer_norm_num_partials(num_rows));
            LayerNormForwardArgs<T> args = {.x = x.data(),
                                            .gamma = has_gamma ? gamma.data() : nullptr,
                                            .beta = has_beta ? beta.data() : nullptr,
                                            .y = y.data(),
                                            .rstd = rstd.data(),
                                            .hidden_size = size};
            layer_norm_forward(args, 0, num_rows);
            LayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                             .saved = y.data(),
                                             .gamma = args.gamma,
                                             .beta = args.beta,
                                             .rstd = rstd.data(),
                                             .dx = dx.data(),
                                             .partials = partials.data(),
                                             .hidden_size = size};
            layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
            std::vector<T> dgamma(h), dbeta(h);
            layer_norm_reduce_partials(partials.data(), layer_norm_num_partials(num_rows), size,
                                       dgamma.data(), dbeta.data(), 0, size);

            const int64_t num_partials = layer_norm_cuda_num_partials(num_rows);
            DeviceTensor<T> device_saved(y), device_y(count), device_dx(count), device_dgamma(h),
                device_dbeta(h);
            DeviceTensor<S> device_rstd(num_rows), device_partials(2 * h * num_partials);
            cudaDeviceSynchronize();
            args.x = device_x.data();
            args.gamma = back.gamma = has_gamma ? device_gamma.data() : nullptr;
            args.beta = back.beta = has_beta ? device_beta.data() : nullptr;
            args.y = device_y.data();
            args.rstd = device_rstd.data();
            launch_layer_norm_forward(args, num_rows, this->stream());
            back.dy = device_dy.data();
            back.saved = device_saved.data();
            back.rstd = device_rstd.data();
            back.dx = device_dx.data();
            back.partials = nullptr;
            launch_layer_norm_backward(back, num_rows, this->stream());
            back.dx = nullptr;
            back.partials = device_partials.data();
            launch_layer_norm_backward(back, num_rows, this->stream());
            launch_layer_norm_reduce_partials(device_partials.data(), num_partials, size,
                                              device_dgamma.data(), static_cast<T*>(nullptr),
                                              this->stream());
            launch_layer_norm_reduce_partials(device_partials.data(), num_partials, size,
                                              static_cast<T*>(nullptr), device_dbeta.data(),
                                              this->stream());
            this->wait();
            const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
            expect_near(device_y.read(), y, 0, 100 * c + u, "y");
            expect_near(device_dx.read(), dx, 0, 400 * c + 2 * u, "dx");
            expect_near(device_dgamma.read(), dgamma, 0, 2000 * c, "dgamma");
            expect_near(device_dbeta.read(), dbeta, 0, 2000 * c, "dbeta");
        }
    }
}

/// Rows in registers and rows of any length, from the output and from x̂, with and without gamma.
TYPED_TEST(CudaVariants, RmsNormEqualsTheCpu) {
    using T = TypeParam;
    using S = StatOf<T>;
    const int64_t num_rows = 70;
    const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
    for (const int64_t size : {8, 264, 65, 1024, 4100}) {
        const auto h = static_cast<size_t>(size), count = h * num_rows;
        const auto x = test::normal<T>(num_rows * size, 1, 0.3, 2),
                   dy = test::normal<T>(num_rows * size, 2),
                   gamma = test::normal<T>(size, 3, 1, 0.1);
        DeviceTensor<T> device_x(x), device_dy(dy), device_gamma(gamma);
        for (const auto& [has_gamma, save] : {std::pair(true, LayerNormSave::kOutput),
                                              {true, LayerNormSave::kNormalized},
                                              {false, LayerNormSave::kOutput}}) {
            std::vector<T> y(count), normalized(count), dx(count), dgamma(h);
            std::vector<S> rstd(num_rows), partials(2 * h * layer_norm_num_partials(num_rows));
            LayerNormForwardArgs<T> args = {.x = x.data(),
                                            .gamma = has_gamma ? gamma.data() : nullptr,
                                            .y = y.data(),
                                            .normalized = normalized.data(),
                                            .rstd = rstd.data(),
                                            .hidden_size = size,
                                            .subtract_mean = false};
            layer_norm_forward(args, 0, num_rows);
            const auto& saved = save == LayerNormSave::kOutput ? y : normalized;
            LayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                             .saved = saved.data(),
                                             .gamma = args.gamma,
                                             .rstd = rstd.data(),
                                             .dx = dx.data(),
                                             .partials = partials.data(),
                                             .save = save,
                                             .hidden_size = size,
                                             .subtract_mean = false};
            layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
            layer_norm_reduce_partials(partials.data(), layer_norm_num_partials(num_rows), size,
                                       dgamma.data(), static_cast<T*>(nullptr), 0, size);

            const int64_t num_partials = layer_norm_cuda_num_partials(num_rows);
            DeviceTensor<T> device_saved(saved), device_y(count), device_normalized(count),
                device_dx(count), device_dgamma(h);
            DeviceTensor<S> device_rstd(rstd), device_new_rstd(num_rows),
                device_partials(2 * h * num_partials);
            cudaDeviceSynchronize();
            args.x = device_x.data();
            args.gamma = back.gamma = has_gamma ? device_gamma.data() : nullptr;
            args.y = device_y.data();
            args.normalized = device_normalized.data();
            args.rstd = device_new_rstd.data();
            launch_layer_norm_forward(args, num_rows, this->stream());
            back.dy = device_dy.data();
            back.saved = device_saved.data();
            back.rstd = device_rstd.data();
            back.dx = device_dx.data();
            back.partials = device_partials.data();
            launch_layer_norm_backward(back, num_rows, this->stream());
            launch_layer_norm_reduce_partials(device_partials.data(), num_partials, size,
                                              device_dgamma.data(), static_cast<T*>(nullptr),
                                              this->stream());
            this->wait();
            expect_near(device_y.read(), y, 0, 100 * c + u, "y");
            expect_near(device_normalized.read(), normalized, 0, 100 * c + u, "normalized");
            expect_near(device_new_rstd.read(), rstd, 40 * c, 0, "rstd");
            expect_near(device_dx.read(), dx, 0, 400 * c + 2 * u, "dx");
            const double sums = 2000 * c * std::sqrt(static_cast<double>(num_rows));
            expect_near(device_dgamma.read(), dgamma, 0, sums, "dgamma");
        }
    }
}

/// Six rows of causal softmax, three for each row of the mask (none if empty).
template <typename T>
void expect_softmax_of_the_cpu(const std::vector<T>& scores, const std::vector<T>& additive,
                               double scale, CudaStream stream) {
    constexpr int64_t kNumRows = 6;
    const auto row = scores.size() / kNumRows;
    std::vector<T> probs(scores.size());
    SoftmaxDropoutForwardArgs<T> args = {
        .scores = scores.data(),
        .additive_mask = additive.empty() ? nullptr : additive.data(),
        .probs = probs.data(),
        .scale = scale,
        .num_keys = static_cast<int64_t>(row),
        .num_queries = 3,
        .rows_per_mask = 3,
        .causal = true};
    softmax_dropout_forward(args, 0, kNumRows);
    DeviceTensor<T> device_scores(scores), device_additive(additive), device_probs(scores.size());
    args.scores = device_scores.data();
    args.additive_mask = additive.empty() ? nullptr : device_additive.data();
    args.probs = device_probs.data();
    cudaDeviceSynchronize();
    launch_softmax_dropout_forward(args, kNumRows, stream);
    cudaStreamSynchronize(stream);
    const auto got = device_probs.read();
    const double relative = 100 * test::kComputeRoundoff<T> + 2 * test::kRoundoff<T>;
    for (size_t i = 0; i < scores.size(); ++i) {
        const double p = to_double(probs[i]);
        ASSERT_EQ(std::isnan(to_double(got[i])), std::isnan(p)) << i << " " << scale;
        if (std::isnan(p)) continue;
        ASSERT_NEAR(to_double(got[i]), p, p * relative + test::kTiny<T>)
            << "row " << i / row << ", scale " << scale << ", masked " << !additive.empty();
    }
}

/// NaN, infinities and scales that turn the order of the keys, with and without an additive mask.
TYPED_TEST(CudaVariants, SoftmaxOfSpecialScoresAndScalesEqualsTheCpu) {
    using T = TypeParam;
    const double inf = std::numeric_limits<double>::infinity();
    for (const int64_t size : {64, 65, 264}) {
        const auto row = static_cast<size_t>(size);
        auto scores = test::normal<T>(6 * size, 1, 0, 3);
        scores[row] = from_double<T>(std::nan(""));
        std::fill_n(scores.begin() + 2 * size, size, from_double<T>(-inf));
        scores[3 * row + 5] = from_double<T>(inf);
        scores[4 * row + 7] = from_double<T>(-inf);
        for (const double scale : {0.5, 0.0, -0.5}) {
            expect_softmax_of_the_cpu<T>(scores, {}, scale, this->stream());
            expect_softmax_of_the_cpu(scores, test::normal<T>(2 * size, 2), scale, this->stream());
        }
    }
}

/// A mask of the lowest number hides some keys of a row, or all. Softmax must take exponentials of
/// differences: those of the numbers themselves are not finite.
TYPED_TEST(CudaVariants, SoftmaxOfTheLowestNumbersEqualsTheCpu) {
    using T = TypeParam;
    for (const int64_t size : {64, 65, 264}) {
        auto scores = test::normal<T>(6 * size, 1, 0, 3);
        // Multiples of 1/2, so that also their sums with the mask are exact, in any order.
        for (T& score : scores) score = from_double<T>(std::round(to_double(score)));
        for (const double share : {1.0, 0.5, 1e-3}) {
            std::vector<T> additive(2 * static_cast<size_t>(size));
            const T masked = from_double<T>(share * kLowest<T>);
            std::fill(additive.begin() + 3, additive.end(), masked);
            expect_softmax_of_the_cpu(scores, additive, 0.5, this->stream());
        }
    }
}

/// One warp a row, half a warp, and rows of any length.
TYPED_TEST(CudaVariants, SoftmaxWithoutDropoutAndWithProbability1EqualsTheCpu) {
    using T = TypeParam;
    const int64_t num_rows = 6;
    for (const int64_t size : {64, 65, 192, 2056}) {
        const int64_t count = num_rows * size;
        const auto n = static_cast<size_t>(count);
        const auto scores = test::normal<T>(count, 1, 0, 3), dd = test::normal<T>(count, 2);
        std::vector<T> probs(n);
        SoftmaxDropoutForwardArgs<T> args = {
            .scores = scores.data(), .probs = probs.data(), .num_keys = size, .num_queries = size};
        softmax_dropout_forward(args, 0, num_rows);
        DeviceTensor<T> device_scores(scores), device_probs(n), device_dropped(n), device_dd(dd),
            device_dscores(n), device_saved(probs);
        args.scores = device_scores.data();
        args.probs = device_probs.data();
        for (const double p : {0.0, 1.0}) {
            for (const MaskKind kind : kMaskKinds) {
                std::vector<T> dscores(n);
                std::vector<uint8_t> mask(size_of_mask(kind, scores));
                SoftmaxDropoutBackwardArgs<T> back = {.ddropped = dd.data(),
                                                      .probs = probs.data(),
                                                      .mask = mask.data(),  // p = 1: all dropped
                                                      .dscores = dscores.data(),
                                                      .mask_kind = kind,
                                                      .dropout_p = p,
                                                      .key = kKey,
                                                      .num_keys = size};
                softmax_dropout_backward(back, 0, num_rows);
                DeviceTensor<uint8_t> device_mask(mask.size());
                cudaDeviceSynchronize();
                args.dropped = p > 0 ? device_dropped.data() : nullptr;
                args.mask = p > 0 ? device_mask.data() : nullptr;
                back.mask = args.mask;
                args.mask_kind = kind;
                args.dropout_p = p;
                args.key = kKey;
                launch_softmax_dropout_forward(args, num_rows, this->stream());
                back.ddropped = device_dd.data();
                back.probs = device_saved.data();
                back.dscores = device_dscores.data();
                launch_softmax_dropout_backward(back, num_rows, this->stream());
                this->wait();
                const double c = test::kComputeRoundoff<T>, u = test::kRoundoff<T>;
                expect_near(device_probs.read(), probs, 100 * c, test::kTiny<T>, "probs");
                expect_near(device_dscores.read(), dscores, 100 * c, 100 * c + 4 * u, "dscores");
                if (p == 1) {
                    EXPECT_EQ(device_mask.read(), mask);
                    EXPECT_TRUE(test::same_bits(device_dropped.read(), std::vector<T>(n)));
                }
            }
        }
    }
}

template <typename T>
class CudaFusedVariants : public test::CudaKernels<T> {};
TYPED_TEST_SUITE(CudaFusedVariants, test::CudaTypes);

/// With gamma and beta, from x̂, without the sum's gradient.
TYPED_TEST(CudaFusedVariants, ResidualLayerNormOfEveryProbabilityEqualsTheCpu) {
    using T = TypeParam;
    using S = StatOf<T>;
    const int64_t num_rows = 7, size = 264, count = num_rows * size;
    const auto n = static_cast<size_t>(count), h = static_cast<size_t>(size);
    const auto x = test::normal<T>(count, 1), residual = test::normal<T>(count, 2),
               dy = test::normal<T>(count, 3), gamma = test::normal<T>(size, 4, 1, 0.1),
               beta = test::normal<T>(size, 5, 0, 0.3);
    for (const double p : {0.0, 0.3, 1.0}) {
        for (const MaskKind kind : kMaskKinds) {
            std::vector<T> y(n), normalized(n), dx(n), dresidual(n), dgamma(h), dbeta(h);
            std::vector<S> rstd(num_rows), partials(2 * h * layer_norm_num_partials(num_rows));
            std::vector<uint8_t> mask(size_of_mask(kind, x));
            ResidualLayerNormForwardArgs<T> args = {.x = x.data(),
                                                    .residual = residual.data(),
                                                    .gamma = gamma.data(),
                                                    .beta = beta.data(),
                                                    .y = y.data(),
                                                    .normalized = normalized.data(),
                                                    .rstd = rstd.data(),
                                                    .mask = mask.data(),
                                                    .mask_kind = kind,
                                                    .dropout_p = p,
                                                    .key = kKey,
                                                    .hidden_size = size};
            residual_layer_norm_forward(args, 0, num_rows);
            ResidualLayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                                     .saved = normalized.data(),
                                                     .gamma = gamma.data(),
                                                     .beta = beta.data(),
                                                     .rstd = rstd.data(),
                                                     .mask = mask.data(),
                                                     .dx = dx.data(),
                                                     .dresidual = dresidual.data(),
                                                     .partials = partials.data(),
                                                     .save = LayerNormSave::kNormalized,
                                                     .mask_kind = kind,
                                                     .dropout_p = p,
                                                     .key = kKey,
                                                     .hidden_size = size};
            residual_layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
            layer_norm_reduce_partials(partials.data(), layer_norm_num_partials(num_rows), size,
                                       dgamma.data(), dbeta.data(), 0, size);

            const int64_t num_partials = layer_norm_cuda_num_partials(num_rows);
            DeviceTensor<T> device_x(x), device_residual(residual), device_dy(dy),
                device_gamma(gamma), device_beta(beta), device_y(n), device_normalized(n),
                device_saved(normalized), device_dx(n), device_dresidual(n), device_dgamma(h),
                device_dbeta(h);
            DeviceTensor<S> device_rstd(num_rows), device_partials(2 * h * num_partials);
            DeviceTensor<uint8_t> device_mask(mask.size());
            cudaDeviceSynchronize();
            args.x = device_x.data();
            args.residual = device_residual.data();
            args.gamma = back.gamma = device_gamma.data();
            args.beta = back.beta = device_beta.data();
            args.y = device_y.data();
            args.normalized = device_normalized.data();
            args.rstd = device_rstd.data();
            args.mask = device_mask.data();
            launch_residual_layer_norm_forward(args, num_rows, this->stream());
            back.dy = device_dy.data();
            back.saved = device_saved.data();
            back.rstd = device_rstd.data();
            back.mask = device_mask.data();
            back.dx = device_dx.data();
            back.dresidual = device_dresidual.data();
            back.partials = device_partials.data();
            launch_residual_layer_norm_backward(back, num_rows, this->stream());
            launch_layer_norm_reduce_partials(device_partials.data(), num_partials, size,
                                              device_dgamma.data(), device_dbeta.data(),
                                              this->stream());
            this->wait();
            const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
            EXPECT_EQ(device_mask.read(), mask);
            expect_near(device_y.read(), y, 0, 100 * c + u, "y");
            expect_near(device_normalized.read(), normalized, 0, 100 * c + u, "normalized");
            expect_near(device_dresidual.read(), dresidual, 0, 400 * c + 4 * u, "dresidual");
            expect_near(device_dx.read(), dx, 0, 400 * c + 8 * u, "dx");
            expect_near(device_dgamma.read(), dgamma, 0, 2000 * c, "dgamma");
            expect_near(device_dbeta.read(), dbeta, 0, 2000 * c, "dbeta");
        }
    }
}

template <typename T>
class CudaBesideFloat : public test::CudaKernels<T> {};
using SixteenBitTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(CudaBesideFloat, SixteenBitTypes);

/// Rows in registers and rows of any length; x, gamma, beta and dx are float.
TYPED_TEST(CudaBesideFloat, LayerNormEqualsTheCpu) {
    using T = TypeParam;
    const int64_t num_rows = 9;
    for (const int64_t size : {264, 1600, 65}) {
        const auto n = static_cast<size_t>(num_rows * size), h = static_cast<size_t>(size);
        const auto x = test::normal<float>(num_rows * size, 1),
                   gamma = test::normal<float>(size, 3, 1, 0.1),
                   beta = test::normal<float>(size, 4, 0, 0.3);
        const auto dy = test::normal<T>(num_rows * size, 2);
        std::vector<T> y(n);
        std::vector<float> rstd(num_rows), dx(n), dgamma(h), dbeta(h),
            partials(2 * h * layer_norm_num_partials(num_rows));
        LayerNormForwardArgs<T> args = {.x = x.data(),
                                        .gamma = gamma.data(),
                                        .beta = beta.data(),
                                        .y = y.data(),
                                        .rstd = rstd.data(),
                                        .hidden_size = size};
        layer_norm_forward(args, 0, num_rows);
        LayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                         .saved = y.data(),
                                         .gamma = gamma.data(),
                                         .beta = beta.data(),
                                         .rstd = rstd.data(),
                                         .dx = dx.data(),
                                         .partials = partials.data(),
                                         .hidden_size = size};
        layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
        DeviceTensor<float> device_x(x), device_gamma(gamma), device_beta(beta), device_dx(n),
            device_rstd(num_rows), device_partials(2 * h * layer_norm_cuda_num_partials(num_rows));
        DeviceTensor<T> device_dy(dy), device_y(n), device_saved(y);
        cudaDeviceSynchronize();
        args.x = device_x.data();
        args.gamma = back.gamma = device_gamma.data();
        args.beta = back.beta = device_beta.data();
        args.y = device_y.data();
        args.rstd = device_rstd.data();
        back.rstd = device_rstd.data();
        launch_layer_norm_forward(args, num_rows, this->stream());
        back.dy = device_dy.data();
        back.saved = device_saved.data();
        back.dx = device_dx.data();
        back.partials = device_partials.data();
        launch_layer_norm_backward(back, num_rows, this->stream());
        this->wait();
        const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
        expect_near(device_y.read(), y, 0, 100 * c + u, "y");
        expect_near(device_rstd.read(), rstd, 40 * c, 0, "rstd");
        expect_near(device_dx.read(), dx, 0, 400 * c, "dx");
    }
}

/// The residual stream of a pre-LN layer, its gradients, and the parameters are float.
TYPED_TEST(CudaBesideFloat, ResidualLayerNormEqualsTheCpu) {
    using T = TypeParam;
    const int64_t num_rows = 7;
    for (const int64_t size : {264, 1032}) {
        const int64_t count = num_rows * size;
        const auto n = static_cast<size_t>(count);
        const auto x = test::normal<T>(count, 1), dy = test::normal<T>(count, 3);
        const auto residual = test::normal<float>(count, 2), dsum = test::normal<float>(count, 6),
                   gamma = test::normal<float>(size, 4, 1, 0.1),
                   beta = test::normal<float>(size, 5, 0, 0.3);
        std::vector<T> y(n), dx(n);
        std::vector<float> sum(n), dresidual(n), rstd(num_rows);
        std::vector<uint8_t> mask(size_of_mask(MaskKind::kBit, x));
        ResidualLayerNormForwardArgs<T> args = {.x = x.data(),
                                                .residual = residual.data(),
                                                .gamma = gamma.data(),
                                                .beta = beta.data(),
                                                .y = y.data(),
                                                .sum = sum.data(),
                                                .rstd = rstd.data(),
                                                .mask = mask.data(),
                                                .mask_kind = MaskKind::kBit,
                                                .dropout_p = 0.3,
                                                .key = kKey,
                                                .hidden_size = size};
        residual_layer_norm_forward(args, 0, num_rows);
        ResidualLayerNormBackwardArgs<T> back = {.dy = dy.data(),
                                                 .dsum = dsum.data(),
                                                 .saved = y.data(),
                                                 .gamma = gamma.data(),
                                                 .beta = beta.data(),
                                                 .rstd = rstd.data(),
                                                 .mask = mask.data(),
                                                 .dx = dx.data(),
                                                 .dresidual = dresidual.data(),
                                                 .mask_kind = MaskKind::kBit,
                                                 .dropout_p = 0.3,
                                                 .key = kKey,
                                                 .hidden_size = size};
        residual_layer_norm_backward(back, num_rows, 0, layer_norm_num_partials(num_rows));
        DeviceTensor<T> device_x(x), device_dy(dy), device_y(n), device_saved(y), device_dx(n);
        DeviceTensor<float> device_residual(residual), device_dsum(dsum), device_gamma(gamma),
            device_beta(beta), device_sum(n), device_dresidual(n), device_rstd(rstd);
        DeviceTensor<uint8_t> device_mask(mask.size());
        cudaDeviceSynchronize();
        args.x = device_x.data();
        args.residual = device_residual.data();
        args.gamma = back.gamma = device_gamma.data();
        args.beta = back.beta = device_beta.data();
        args.y = device_y.data();
        args.sum = device_sum.data();
        args.rstd = device_rstd.data();
        back.rstd = device_rstd.data();
        args.mask = device_mask.data();
        launch_residual_layer_norm_forward(args, num_rows, this->stream());
        back.dy = device_dy.data();
        back.dsum = device_dsum.data();
        back.saved = device_saved.data();
        back.mask = device_mask.data();
        back.dx = device_dx.data();
        back.dresidual = device_dresidual.data();
        launch_residual_layer_norm_backward(back, num_rows, this->stream());
        this->wait();
        const double u = test::kRoundoff<T>, c = test::kComputeRoundoff<T>;
        EXPECT_TRUE(test::same_bits(device_sum.read(), sum));
        expect_near(device_y.read(), y, 0, 100 * c + u, "y");
        expect_near(device_dresidual.read(), dresidual, 0, 400 * c, "dresidual");
        expect_near(device_dx.read(), dx, 0, 400 * c + 2 * u, "dx");
    }
}

}  // namespace
}  // namespace kernels
