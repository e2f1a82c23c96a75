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

/// double serves tests, and its inversion by Newton is long: one element at a time.
template <typename T>
inline constexpr bool kHasTiles = sizeof(T) < 8;

template <class Fit, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_forward_kernel(InplaceGeluForwardArgs<T> a, int64_t count, bool aligned) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    uint32_t bits = 0;
    if constexpr (kHasTiles<T>) {
        if (takes_packs(tile, aligned)) {
            StatOf<T> values[8];
            load_tile(a.x, tile, StatOf<T>{0}, values);
            if (a.bias) add_bias<T>({a.bias, a.bias_size}, tile, values);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                bits |= (right_of_minimum<Fit, T>(values[j]) ? 1u : 0u) << j;
                values[j] = gelu_value<Fit>(values[j]);
            }
            store_bits<T>(a.mask_kind, a.mask, tile, bits);
            store_tile(a.y, tile, values);
            return;
        }
    }
    const Unit unit = unit_of(tile);
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) {
        const int64_t i = unit.begin + j;
        StatOf<T> value = to_compute(a.x[i]);
        if (a.bias) value += to_compute(a.bias[i % a.bias_size]);
        bits |= (right_of_minimum<Fit, T>(value) ? 1u : 0u) << j;
        a.y[i] = from_compute<T>(gelu_value<Fit>(value));
    }
    store_unit(a.mask_kind, a.mask, unit, bits);
}

template <class Fit, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_backward_kernel(InplaceGeluBackwardArgs<T> a, int64_t count, bool aligned) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    if constexpr (kHasTiles<T>) {
        if (takes_packs(tile, aligned)) {
            StatOf<T> gradients[8];
            StatOf<T> outputs[8];
            load_tile(a.dy, tile, StatOf<T>{0}, gradients);
            load_tile(a.y, tile, StatOf<T>{0}, outputs);
            const uint32_t bits = load_bits<T>(a.mask_kind, a.mask, tile);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                gradients[j] *= derivative<Fit, T>(outputs[j], bits >> j & 1);
            }
            store_tile(a.dx, tile, gradients);
            return;
        }
    }
    const Unit unit = unit_of(tile);
    const uint32_t bits = load_unit(a.mask_kind, a.mask, unit);
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) {
        const int64_t i = unit.begin + j;
        const StatOf<T> slope = derivative<Fit, T>(to_compute(a.y[i]), bits >> j & 1);
        a.dx[i] = from_compute<T>(to_compute(a.dy[i]) * slope);
    }
}

}  // namespace

template <typename T>
void launch_inplace_gelu_forward(const InplaceGeluForwardArgs<T>& args, int64_t count,
                                 CudaStream stream) {
    if (count == 0) return;
    const auto kernel = args.kind == GeluKind::kErf
                            ? inplace_gelu_forward_kernel<gelu_fit::ErfFit, T>
                            : inplace_gelu_forward_kernel<gelu_fit::TanhFit, T>;
    launch("inplace_gelu_forward", kernel, blocks_for(count), kBlockThreads, stream, args, count,
           aligned_to_packs(args.x, args.y, args.mask));
}

template <typename T>
void launch_inplace_gelu_backward(const InplaceGeluBackwardArgs<T>& args, int64_t count,
                                  CudaStream stream) {
    if (count == 0) return;
    const auto kernel = args.kind == GeluKind::kErf
                            ? inplace_gelu_backward_kernel<gelu_fit::ErfFit, T>
                            : inplace_gelu_backward_kernel<gelu_fit::TanhFit, T>;
    launch("inplace_gelu_backward", kernel, blocks_for(count), kBlockThreads, stream, args, count,
           aligned_to_packs(args.dy, args.y, args.mask, args.dx));
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
