#include "kernels/reference/inplace_layernorm_reference.h"

#include <cmath>

namespace kernels::reference {

LayerNormResult layer_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                           const std::vector<double>& beta, double eps) {
    const size_t size = gamma.size();
    const size_t num_rows = x.size() / size;
    LayerNormResult result = {x, x, std::vector<double>(num_rows), std::vector<double>(num_rows)};
    for (size_t row = 0; row < num_rows; ++row) {
        const double* from = x.data() + row * size;
        double sum = 0, squares = 0;
        for (size_t h = 0; h < size; ++h) sum += from[h];
        const double mean = sum / static_cast<double>(size);
        for (size_t h = 0; h < size; ++h) squares += (from[h] - mean) * (from[h] - mean);
        const double rstd = 1 / std::sqrt(squares / static_cast<double>(size) + eps);
        for (size_t h = 0; h < size; ++h) {
            const double normalized = (from[h] - mean) * rstd;
            result.normalized[row * size + h] = normalized;
            result.y[row * size + h] = normalized * gamma[h] + beta[h];
        }
        result.mean[row] = mean;
        result.rstd[row] = rstd;
    }
    return result;
}

LayerNormGradients layer_norm_backward(const std::vector<double>& dy,
                                       const LayerNormResult& forward,
                                       const std::vector<double>& gamma) {
    const size_t size = gamma.size();
    LayerNormGradients result = {dy, std::vector<double>(size), std::vector<double>(size)};
    for (size_t row = 0; row < dy.size() / size; ++row) {
        const double* normalized = forward.normalized.data() + row * size;
        const double* gradient = dy.data() + row * size;
        double g_sum = 0, gx_sum = 0;
        for (size_t h = 0; h < size; ++h) {
            g_sum += gradient[h] * gamma[h];
            gx_sum += gradient[h] * gamma[h] * normalized[h];
            result.dgamma[h] += gradient[h] * normalized[h];
            result.dbeta[h] += gradient[h];
        }
        const double n = static_cast<double>(size);
        for (size_t h = 0; h < size; ++h) {
            const double g = gradient[h] * gamma[h];
            result.dx[row * size + h] =
                forward.rstd[row] * (g - g_sum / n - normalized[h] * gx_sum / n);
        }
    }
    return result;
}

LayerNormResult rms_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                         double eps) {
    const size_t size = gamma.size();
    const size_t num_rows = x.size() / size;
    LayerNormResult result = {x, x, std::vector<double>(num_rows), std::vector<double>(num_rows)};
    for (size_t row = 0; row < num_rows; ++row) {
        double squares = 0;
        for (size_t h = 0; h < size; ++h) squares += x[row * size + h] * x[row * size + h];
        result.rstd[row] = 1 / std::sqrt(squares / static_cast<double>(size) + eps);
        for (size_t h = 0; h < size; ++h) {
            result.normalized[row * size + h] = x[row * size + h] * result.rstd[row];
            result.y[row * size + h] = result.normalized[row * size + h] * gamma[h];
        }
    }
    return result;
}

/// With x̂ = x rstd and rstd = (mean(x²) + eps)^-1/2:  drstd/dx = -rstd³ x / H, so
/// dx = rstd (g - x̂ mean(g x̂)).
LayerNormGradients rms_norm_backward(const std::vector<double>& dy, const LayerNormResult& forward,
                                     const std::vector<double>& gamma) {
    const size_t size = gamma.size();
    LayerNormGradients result = {dy, std::vector<double>(size), std::vector<double>(size)};
    for (size_t row = 0; row < dy.size() / size; ++row) {
        const double* normalized = forward.normalized.data() + row * size;
        double gx_sum = 0;
        for (size_t h = 0; h < size; ++h) {
            gx_sum += dy[row * size + h] * gamma[h] * normalized[h];
            result.dgamma[h] += dy[row * size + h] * normalized[h];
        }
        for (size_t h = 0; h < size; ++h) {
            const double g = dy[row * size + h] * gamma[h];
            result.dx[row * size + h] =
                forward.rstd[row] * (g - normalized[h] * gx_sum / static_cast<double>(size));
        }
    }
    return result;
}

}  // namespace kernels::reference
