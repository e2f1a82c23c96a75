#include "kernels/reference/column_passes_reference.h"

#include "kernels/reference/dropout_reference.h"

#include <cmath>

namespace kernels::reference {
namespace {

constexpr double kCubic = 0.044715;
constexpr double kScale = 0.79788456080286535588;  // sqrt(2 / pi)

}  // namespace

double activated(Activation activation, double x) {
    switch (activation) {
        case Activation::kNone:
            return x;
        case Activation::kRelu:
            return x < 0 ? 0 : x;  // NaN stays
        case Activation::kGelu:
            return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
        case Activation::kTanhGelu:
            return 0.5 * x * (1 + std::tanh(kScale * (x + kCubic * x * x * x)));
    }
    return x;
}

double activation_derivative(Activation activation, double x) {
    switch (activation) {
        case Activation::kNone:
            return 1;
        case Activation::kRelu:
            return x <= 0 ? 0 : 1;  // 1 at NaN, as in torch
        case Activation::kGelu:
            return 0.5 * std::erfc(-x * std::sqrt(0.5)) +
                   x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
        case Activation::kTanhGelu: {
            const double t = std::tanh(kScale * (x + kCubic * x * x * x));
            return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
        }
    }
    return 1;
}

BiasDropout bias_dropout(const std::vector<double>& x, const std::vector<double>& bias,
                         const std::vector<double>& residual, Activation activation,
                         const std::vector<bool>& keep, double dropout_p) {
    BiasDropout result{.biased = x, .y = x};
    for (size_t i = 0; i < x.size(); ++i) {
        if (!bias.empty()) result.biased[i] += bias[i % bias.size()];
        result.y[i] = activated(activation, result.biased[i]);
    }
    if (dropout_p > 0) result.y = dropout(result.y, keep, dropout_p);
    for (size_t i = 0; i < residual.size(); ++i) result.y[i] += residual[i];
    return result;
}

BiasGradients bias_dropout_backward(const std::vector<double>& dy,
                                    const std::vector<double>& biased, int64_t num_columns,
                                    Activation activation, const std::vector<bool>& keep,
                                    double dropout_p) {
    BiasGradients result{.dx = dropout_p > 0 ? dropout(dy, keep, dropout_p) : dy, .dbias = {}};
    for (size_t i = 0; i < dy.size(); ++i) {
        result.dx[i] *= activation_derivative(activation, biased[i]);
    }
    result.dbias = column_sums(result.dx, num_columns);
    return result;
}

int64_t element_of_heads(const HeadsShape& s, int64_t num_rows, int64_t i) {
    const int64_t row = i / s.num_columns(), column = i % s.num_columns();
    const int64_t batch = row / s.seq_len, token = row % s.seq_len;
    const int64_t part = column / (s.num_heads * s.head_dim);
    const int64_t head = column / s.head_dim % s.num_heads;
    const int64_t batch_size = num_rows / s.seq_len;
    return (((part * batch_size + batch) * s.num_heads + head) * s.seq_len + token) * s.head_dim +
           column % s.head_dim;
}

std::vector<double> column_sums(const std::vector<double>& x, int64_t num_columns) {
    std::vector<double> sums(static_cast<size_t>(num_columns));
    for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
    return sums;
}

}  // namespace kernels::reference
