#pragma once

#include "kernels/column_passes.h"

#include <cstdint>
#include <vector>

// The passes of column_passes.h in plain loops and double precision: the truth that kernels are
// tested against. An empty vector is an absent tensor.

namespace kernels::reference {

/// act(x) and act'(x), with the exact erf and tanh.
double activated(Activation activation, double x);
double activation_derivative(Activation activation, double x);

struct BiasDropout {
    std::vector<double> biased, y;  // [R, C]
};

/// x and residual [R, C], bias [C], keep [R, C].
BiasDropout bias_dropout(const std::vector<double>& x, const std::vector<double>& bias,
                         const std::vector<double>& residual, Activation activation,
                         const std::vector<bool>& keep, double dropout_p);

struct BiasGradients {
    std::vector<double> dx;     // [R, C]
    std::vector<double> dbias;  // [C]
};

BiasGradients bias_dropout_backward(const std::vector<double>& dy,
                                    const std::vector<double>& biased, int64_t num_columns,
                                    Activation activation, const std::vector<bool>& keep,
                                    double dropout_p);

/// Element of [3, B, A, S, D] that holds element i of [B, S, 3, A, D], for B * S = `num_rows`.
int64_t element_of_heads(const HeadsShape& shape, int64_t num_rows, int64_t i);

/// Sums of the columns.
std::vector<double> column_sums(const std::vector<double>& x, int64_t num_columns);

}  // namespace kernels::reference
