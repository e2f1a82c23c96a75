#pragma once

#include <vector>

// LayerNorm and RMSNorm in plain loops and double precision, backward from the input as the
// textbook has it: the truth that kernels are tested against.

namespace kernels::reference {

struct LayerNormResult {
    std::vector<double> y;           // [R, H]
    std::vector<double> normalized;  // [R, H] x̂
    std::vector<double> mean;        // [R]
    std::vector<double> rstd;        // [R]
};

struct LayerNormGradients {
    std::vector<double> dx;      // [R, H]
    std::vector<double> dgamma;  // [H]
    std::vector<double> dbeta;   // [H]
};

/// x [R, H]; gamma and beta [H].
LayerNormResult layer_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                           const std::vector<double>& beta, double eps);

/// RMSNorm: no mean is subtracted and there is no beta.
LayerNormResult rms_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                         double eps);

LayerNormGradients layer_norm_backward(const std::vector<double>& dy,
                                       const LayerNormResult& forward,
                                       const std::vector<double>& gamma);

/// dbeta stays 0.
LayerNormGradients rms_norm_backward(const std::vector<double>& dy, const LayerNormResult& forward,
                                     const std::vector<double>& gamma);

}  // namespace kernels::reference
