// In-place GELU on CUDA. Bytes per element: forward e read, e + m written; backward 2e + m read, e
// written (e = size of T; m = 1 or 1/8). Bound: those bytes over the bandwidth. Backward's
// arithmetic per element is two polynomials of degree 11 and one of 9 (float, both sides of a
// diverging warp), or of degrees 16 and 6 (16-bit types); an H100 has time for about 80 and 40
// multiply-adds per element at its bandwidth.
// One warp per tile of 256 elements (cuda_tile.cuh); arithmetic in gelu_math.h.

#include "kernels/cuda_tile.cuh"
#include "kernels/gelu_math.h"
#include "kernels/inplace_gelu.h"

namespace kernels {
namespace {

using namespace cuda;

template <class Fit, typename T>
__device__ __forceinline__ StatOf<T> derivative(StatOf<T> o, bool right) {
    if constexpr (sizeof(T) == 2) {
        return gelu_derivative_from_output_16bit<Fit>(o, right);
    } else {
        return gelu_derivative_from_output<Fit>(o, right);
    }
}

template <class Fit, typename T>
__device__ __forceinline__ bool right_of_minimum(StatOf<T> x) {
    if constexpr (sizeof(T) == 8) return x >= Fit::kXMin;
    return x >= Fit::kBranch;
}

/// bias[i % size], [size], or null.
template <typename T>
struct RepeatedBias {
    const T* bias;
    int64_t size;
};

template <typename T>
__device__ __forceinline__ void add_bias(const RepeatedBias<T>& repeated, const Tile& tile,
                                         StatOf<T> (&values)[8]) {
    const int64_t first = tile.begin % repeated.size;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        constexpr int V = kPackSize<T>;
        int64_t column = first + 32 * V * (j / V) + V * tile.lane + j % V;
        while (column >= repeated.size) column -= repeated.size;
        values[j] += to_compute(repeated.bias[column]);
    }
}

template <class Fit, typename T, MaskKind kKind>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_forward_kernel(const T* x, RepeatedBias<T> bias, T* y, uint8_t* mask,
                                int64_t count, bool vectors) {
    const Tile tile = flat_tile(count, vectors);
    if (tile.begin >= count) return;
    StatOf<T> values[8];
    load_tile(x, tile, StatOf<T>{0}, values);
    if (bias.bias) add_bias(bias, tile, values);
    uint32_t bits = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        bits |= (right_of_minimum<Fit, T>(values[j]) ? 1u : 0u) << j;
        values[j] = gelu_value<Fit>(values[j]);
    }
    store_bits<T>(kKind, mask, tile, bits);
    store_tile(y, tile, values);
}

template <class Fit, typename T, MaskKind kKind>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_backward_kernel(const T* dy, const T* y, const uint8_t* mask, T* dx, int64_t count,
                                 bool vectors) {
    const Tile tile = flat_tile(count, vectors);
    if (tile.begin >= count) return;
    StatOf<T> gradients[8];
    StatOf<T> outputs[8];
    load_tile(dy, tile, StatOf<T>{0}, gradients);
    load_tile(y, tile, StatOf<T>{0}, outputs);
    const uint32_t bits = load_bits<T>(kKind, mask, tile);
#pragma unroll
    for (int j = 0; j < 8; ++j) gradients[j] *= derivative<Fit, T>(outputs[j], bits >> j & 1);
    store_tile(dx, tile, gradients);
}

template <class Fit, MaskKind kKind, typename T>
void launch_forward(const InplaceGeluForwardArgs<T>& a, int64_t count, CudaStream stream) {
    inplace_gelu_forward_kernel<Fit, T, kKind><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        a.x, RepeatedBias<T>{a.bias, a.bias_size}, a.y, a.mask, count,
        aligned_to_packs(a.x, a.y, a.mask));
}

template <class Fit, MaskKind kKind, typename T>
void launch_backward(const InplaceGeluBackwardArgs<T>& a, int64_t count, CudaStream stream) {
    inplace_gelu_backward_kernel<Fit, T, kKind><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        a.dy, a.y, a.mask, a.dx, count, aligned_to_packs(a.dy, a.y, a.mask, a.dx));
}

}  // namespace

template <typename T>
void launch_inplace_gelu_forward(const InplaceGeluForwardArgs<T>& args, int64_t count,
                                 CudaStream stream) {
    using gelu_fit::ErfFit, gelu_fit::TanhFit;
    if (count == 0) return;
    const bool erf = args.kind == GeluKind::kErf;
    if (args.mask_kind == MaskKind::kBit) {
        erf ? launch_forward<ErfFit, MaskKind::kBit>(args, count, stream)
            : launch_forward<TanhFit, MaskKind::kBit>(args, count, stream);
    } else {
        erf ? launch_forward<ErfFit, MaskKind::kByte>(args, count, stream)
            : launch_forward<TanhFit, MaskKind::kByte>(args, count, stream);
    }
    check_launch("inplace_gelu_forward");
}

template <typename T>
void launch_inplace_gelu_backward(const InplaceGeluBackwardArgs<T>& args, int64_t count,
                                  CudaStream stream) {
    using gelu_fit::ErfFit, gelu_fit::TanhFit;
    if (count == 0) return;
    const bool erf = args.kind == GeluKind::kErf;
    if (args.mask_kind == MaskKind::kBit) {
        erf ? launch_backward<ErfFit, MaskKind::kBit>(args, count, stream)
            : launch_backward<TanhFit, MaskKind::kBit>(args, count, stream);
    } else {
        erf ? launch_backward<ErfFit, MaskKind::kByte>(args, count, stream)
            : launch_backward<TanhFit, MaskKind::kByte>(args, count, stream);
    }
    check_launch("inplace_gelu_backward");
}

#define KERNELS_INSTANTIATE(T)                                                                \
    template void launch_inplace_gelu_forward<T>(const InplaceGeluForwardArgs<T>&, int64_t,   \
                                                 CudaStream);                                 \
    template void launch_inplace_gelu_backward<T>(const InplaceGeluBackwardArgs<T>&, int64_t, \
                                                  CudaStream);
KERNELS_INSTANTIATE(float)
KERNELS_INSTANTIATE(double)
KERNELS_INSTANTIATE(Half)
KERNELS_INSTANTIATE(BFloat16)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
