// LayerNorm on the CPU. Bytes per element: forward e read, e written; backward 2e read, e written
// (e = size of T); later passes over a row (or four) find it in cache. The sums of dgamma and dbeta
// are read and written once per four rows, from cache. Bound: those bytes over the bandwidth.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/inplace_layernorm.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/dispatch.h"
#include "kernels/inplace_layernorm-inl.h"
#include "kernels/inplace_layernorm.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

KERNELS_TARGET_FUNCTIONS(layer_norm_forward, LayerNormForwardArgs)
KERNELS_TARGET_FUNCTIONS(layer_norm_backward, LayerNormBackwardArgs)
KERNELS_TARGET_FUNCTIONS(layer_norm_reduce, LayerNormReduceArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "kernels/convert.h"

namespace kernels {

KERNELS_DISPATCH(layer_norm_forward, LayerNormForwardArgs)
KERNELS_DISPATCH(layer_norm_backward, LayerNormBackwardArgs)
KERNELS_DISPATCH(layer_norm_reduce, LayerNormReduceArgs)

namespace {

constexpr int64_t kMaxPartials = 64;
/// Two blocks for each SM of an A100 (108), so that all blocks run at once on it and on larger
/// GPUs. A constant, because the size of the partial sums must not depend on the GPU; where more
/// blocks run, two add to one partial (layernorm_rows.cuh).
constexpr int64_t kMaxCudaPartials = 216;

/// A multiple of 64, so that the rows of a partial also have whole blocks of a dropout mask to
/// themselves.
int64_t rows_per_partial(int64_t num_rows) {
    const int64_t even_share = (num_rows + kMaxPartials - 1) / kMaxPartials;
    return std::max<int64_t>(1, (even_share + 63) / 64) * 64;
}

}  // namespace

int64_t layer_norm_num_partials(int64_t num_rows) {
    const int64_t share = rows_per_partial(num_rows);
    return std::max<int64_t>(1, (num_rows + share - 1) / share);
}

int64_t layer_norm_cuda_num_partials(int64_t num_rows) {
    return std::clamp<int64_t>(num_rows, 1, kMaxCudaPartials);
}

int64_t layer_norm_partial_first_row(int64_t index, int64_t num_rows) {
    return std::min(num_rows, index * rows_per_partial(num_rows));
}

template <typename T>
bool needs_normalized(const T* gamma, const T* beta, int64_t hidden_size) {
    for (int64_t h = 0; h < hidden_size; ++h) {
        const double size = gamma ? std::abs(to_double(gamma[h])) : 1.0;
        const double shift = beta ? std::abs(to_double(beta[h])) : 0.0;
        // Written so that NaN also fails the test.
        if (!(size >= kGammaMin && shift <= kBetaOverGammaMax * size)) return true;
    }
    return false;
}

#define KERNELS_INSTANTIATE(T) template bool needs_normalized<T>(const T*, const T*, int64_t);
KERNELS_FOR_EACH_TYPE(KERNELS_INSTANTIATE)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
#endif  // HWY_ONCE
