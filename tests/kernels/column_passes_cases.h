#pragma once

#include "kernels/inplace_layernorm.h"
#include "kernels/reference/column_passes_reference.h"
#include "kernels/reference/dropout_reference.h"
#include "tests/kernels/kernel_test_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

// The passes of column_passes.h against their double-precision reference, for the CPU and for CUDA:
// `Device::run(args, num_rows)` runs a pass over all rows, with partials for them.

namespace kernels::test {

inline const std::vector<Activation> kActivations = {Activation::kNone, Activation::kRelu,
                                                     Activation::kGelu, Activation::kTanhGelu};
inline const std::vector<MaskKind> kAllMaskKinds = {MaskKind::kByte, MaskKind::kBit,
                                                    MaskKind::kElement, MaskKind::kNone};
inline const DropoutKey kPassKey = {.seed = 5, .rank = 1, .step = 2, .layer = 4, .site = 3};

/// Rows and columns around every boundary: vectors, packs, warps of columns, partials of 64 rows.
inline const std::vector<std::pair<int64_t, int64_t>> kMatrices = {
    {1, 1}, {3, 7}, {70, 33}, {65, 64}, {9, 264}, {2, 1030}, {130, 24}};

/// `terms` roundings of a value of the size of `scale`, and one of the result in T.
template <typename T>
void expect_close(const std::vector<T>& got, const std::vector<double>& expected, double terms,
                  double scale, const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
        const double error =
            2 * kRoundoff<T> * std::abs(expected[i]) + terms * kComputeRoundoff<T> * scale;
        ASSERT_NEAR(to_double(got[i]), expected[i], error + kTiny<T>) << what << " " << i;
    }
}

template <typename Device, typename T>
std::vector<T> reduced(const std::vector<StatOf<T>>& partials, int64_t num_rows, int64_t size,
                       bool second = false) {
    std::vector<T> sums(static_cast<size_t>(size));
    layer_norm_reduce<T>({partials.data(), second ? nullptr : sums.data(),
                          second ? sums.data() : nullptr, Device::num_partials(num_rows), size},
                         0, size);
    return sums;
}

template <typename Device, typename T>
std::vector<StatOf<T>> partials_for(int64_t num_rows, int64_t size) {
    return std::vector<StatOf<T>>(static_cast<size_t>(2 * size * Device::num_partials(num_rows)));
}

/// An activation amplifies what its argument lost by rounding to T: by at most 1.13 in GELU.
template <typename T>
double rounding_of_steps(Activation activation) {
    return 8 * kRoundoff<T> + (activation == Activation::kTanhGelu ? 2e-7 : 0);
}

template <typename Device, typename T>
void check_bias_dropout(int64_t num_rows, int64_t size, Activation activation, MaskKind kind,
                        double dropout_p) {
    const int64_t count = num_rows * size;
    const auto x = normal<T>(count, 1, 0, 2), residual = normal<T>(count, 2),
               bias = normal<T>(size, 3), dy = normal<T>(count, 4);
    std::vector<T> y(x.size()), biased(x.size()), dx(x.size());
    std::vector<uint8_t> mask(static_cast<size_t>(mask_bytes<T>(kind, count)));
    Device::run(BiasDropoutForwardArgs<T>{.x = x.data(),
                                          .bias = bias.data(),
                                          .residual = residual.data(),
                                          .biased = biased.data(),
                                          .y = y.data(),
                                          .mask = mask.data(),
                                          .mask_kind = kind,
                                          .dropout_p = dropout_p,
                                          .key = kPassKey,
                                          .activation = activation,
                                          .num_columns = size},
                num_rows);
    const auto keep = reference::dropout_keep(kPassKey, dropout_p, count);
    const auto expected =
        reference::bias_dropout(load(x), load(bias), load(residual), activation, keep, dropout_p);
    expect_close(biased, expected.biased, 2, 4, "biased");
    const double scale = rounding_of_steps<T>(activation) / kComputeRoundoff<T> * 8;
    expect_close(y, expected.y, scale, 1, "y");
    auto partials = partials_for<Device, T>(num_rows, size);
    BiasDropoutBackwardArgs<T> back{.dy = dy.data(),
                                    .x = biased.data(),
                                    .mask = mask.data(),
                                    .dx = dx.data(),
                                    .partials = partials.data(),
                                    .mask_kind = kind,
                                    .dropout_p = dropout_p,
                                    .key = kPassKey,
                                    .activation = activation,
                                    .num_columns = size};
    Device::run(back, num_rows);
    const auto gradients =
        reference::bias_dropout_backward(load(dy), load(biased), size, activation, keep, dropout_p);
    const double slope = activation == Activation::kRelu ? 2 : 40;
    expect_close(dx, gradients.dx, slope, 8, "dx");
    expect_close(reduced<Device, T>(partials, num_rows, size), gradients.dbias,
                 slope + static_cast<double>(num_rows), 8 * static_cast<double>(num_rows), "dbias");
    // From x and the bias instead of their sum, which is rounded in between: only 64 bits do not
    // show it.
    if constexpr (sizeof(T) >= 4) {
        back.x = x.data();
        back.bias = bias.data();
        Device::run(back, num_rows);
        expect_close(dx, gradients.dx, 60, 8, "dx from x and bias");
    }
}

/// NaN stays NaN in ReLU, and its gradient passes, as in torch.relu and its backward. `size` 8
/// takes whole packs, 7 single elements.
template <typename Device, typename T>
void check_relu_at_nan(int64_t size) {
    const std::vector<double> inputs = {std::nan(""), -1, 0, 2, -std::nan(""), -0.0, 1e-3, -1e-3};
    const std::vector<double> gradients = {3, 0, 0, 3, 3, 0, 3, 0};
    std::vector<T> x, dy(static_cast<size_t>(size), from_double<T>(3)), y(dy), dx(dy);
    for (size_t i = 0; i < dy.size(); ++i) x.push_back(from_double<T>(inputs[i]));
    Device::run(
        BiasDropoutForwardArgs<T>{
            .x = x.data(), .y = y.data(), .activation = Activation::kRelu, .num_columns = size},
        1);
    Device::run(BiasDropoutBackwardArgs<T>{.dy = dy.data(),
                                           .x = x.data(),
                                           .dx = dx.data(),
                                           .activation = Activation::kRelu,
                                           .num_columns = size},
                1);
    for (size_t i = 0; i < dy.size(); ++i) {
        EXPECT_EQ(std::isnan(to_double(y[i])), std::isnan(inputs[i])) << i;
        EXPECT_EQ(to_double(dx[i]), gradients[i]) << i;
    }
}

template <typename Device, typename T>
void check_heads(int64_t batch_size, const HeadsShape& shape) {
    const int64_t num_rows = batch_size * shape.seq_len, size = shape.num_columns();
    const int64_t part = num_rows * size / kHeadParts;
    const auto x = normal<T>(num_rows * size, 1), bias = normal<T>(size, 2);
    std::vector<T> heads(x.size()), dx(x.size());
    Device::run(BiasHeadsForwardArgs<T>{.x = x.data(),
                                        .bias = bias.data(),
                                        .heads = {heads.data(), heads.data() + part,
                                                  heads.data() + 2 * part},
                                        .shape = shape},
                num_rows);
    std::vector<double> expected(x.size()), expected_dx(x.size());
    const auto dheads = normal<T>(num_rows * size, 3);
    for (size_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<size_t>(
            reference::element_of_heads(shape, num_rows, static_cast<int64_t>(i)));
        expected[at] = to_double(x[i]) + to_double(bias[i % bias.size()]);
        expected_dx[i] = to_double(dheads[at]);
    }
    expect_close(heads, expected, 1, 4, "heads");
    auto partials = partials_for<Device, T>(num_rows, size);
    Device::run(BiasHeadsBackwardArgs<T>{.dheads = {dheads.data(), dheads.data() + part,
                                                    dheads.data() + 2 * part},
                                         .dx = dx.data(),
                                         .partials = partials.data(),
                                         .shape = shape},
                num_rows);
    expect_close(dx, expected_dx, 0, 0, "dx");
    expect_close(reduced<Device, T>(partials, num_rows, size),
                 reference::column_sums(expected_dx, size), static_cast<double>(num_rows),
                 4 * static_cast<double>(num_rows), "dbias");
}

template <typename Device, typename T>
void check_scale_shift(int64_t num_rows, int64_t size, bool with_residual) {
    const int64_t count = num_rows * size;
    const auto dy = normal<T>(count, 1), dresidual = normal<T>(count, 2),
               normalized = normal<T>(count, 3), gamma = normal<T>(size, 4),
               dlinear = normal<T>(count, 5);
    std::vector<T> dnormalized(dy.size());
    auto partials = partials_for<Device, T>(num_rows, size), bias_partials = partials;
    Device::run(
        ScaleShiftBackwardArgs<T>{.dy = dy.data(),
                                  .dresidual = with_residual ? dresidual.data() : nullptr,
                                  .normalized = normalized.data(),
                                  .gamma = gamma.data(),
                                  .dlinear = with_residual ? dlinear.data() : nullptr,
                                  .dnormalized = dnormalized.data(),
                                  .partials = partials.data(),
                                  .bias_partials = with_residual ? bias_partials.data() : nullptr,
                                  .num_columns = size},
        num_rows);
    auto g = load(dy), expected = g, products = g;
    for (size_t i = 0; i < g.size(); ++i) {
        if (with_residual) g[i] += to_double(dresidual[i]);
        expected[i] = g[i] * to_double(gamma[i % gamma.size()]);
        products[i] = g[i] * to_double(normalized[i]);
    }
    const double rows = static_cast<double>(num_rows);
    expect_close(dnormalized, expected, 4, 16, "dnormalized");
    expect_close(reduced<Device, T>(partials, num_rows, size),
                 reference::column_sums(products, size), rows + 4, 16 * rows, "dgamma");
    expect_close(reduced<Device, T>(partials, num_rows, size, true),
                 reference::column_sums(g, size), rows + 4, 8 * rows, "dbeta");
    if (!with_residual) return;
    expect_close(reduced<Device, T>(bias_partials, num_rows, size),
                 reference::column_sums(load(dlinear), size), rows, 4 * rows, "dbias");
}

template <typename Device, typename T>
void check_all_column_passes() {
    for (const auto& [num_rows, size] : kMatrices) {
        SCOPED_TRACE(std::to_string(num_rows) + " x " + std::to_string(size));
        for (size_t i = 0; i < kActivations.size(); ++i) {
            check_bias_dropout<Device, T>(num_rows, size, kActivations[i], MaskKind::kNone, 0);
            check_bias_dropout<Device, T>(num_rows, size, kActivations[i], kAllMaskKinds[i], 0.2);
        }
        check_scale_shift<Device, T>(num_rows, size, false);
        check_scale_shift<Device, T>(num_rows, size, true);
    }
    for (const int64_t size : {7, 8}) check_relu_at_nan<Device, T>(size);
    for (const HeadsShape& shape :
         {HeadsShape{1, 1, 1}, HeadsShape{5, 2, 7}, HeadsShape{19, 3, 8}, HeadsShape{70, 2, 64}}) {
        check_heads<Device, T>(2, shape);
    }
}

}  // namespace kernels::test
