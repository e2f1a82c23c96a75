// In-place GELU on CUDA. Bytes per element: forward e read, e + m written; backward 2e + m read, e
// written (e = size of T; m = 1 or 1/8). Bounds: those bytes over the bandwidth, and the
// instructions of an element over the issue rate; docs/measurements/kernels-model.md has both.
// One warp per tile of 256 elements (cuda_tile.cuh); arithmetic in gelu_math.h.

#include "kernels/cuda_tile.cuh"
#include "kernels/gelu_math.h"
#include "kernels/inplace_gelu.h"

#include <bit>

namespace kernels {
namespace {

using namespace cuda;

template <class Fit, typename T>
__device__ __forceinline__ StatOf<T> value_of(StatOf<T> x) {
    if constexpr (sizeof(T) == 2) return gelu_value_16bit<Fit>(x);
    return gelu_value<Fit>(x);
}

template <class Fit, typename T>
__device__ __forceinline__ StatOf<T> derivative(StatOf<T> o, bool right) {
    if constexpr (sizeof(T) == 2) return gelu_derivative_from_output_16bit<Fit>(o, right);
    return gelu_derivative_from_output<Fit>(o, right);
}

template <class Fit, typename T>
__device__ __forceinline__ bool right_of_minimum(StatOf<T> x) {
    if constexpr (sizeof(T) == 8) return x >= Fit::kXMin;
    return x >= Fit::kBranch;
}

/// right_of_minimum of eight floats as bits. kBelow - x is negative for exactly the x >= kBranch
/// and for no NaN, so each element takes a subtraction and a shift of its sign into the word.
template <class Fit>
__device__ __forceinline__ uint32_t branch_bits(const float (&x)[8]) {
    constexpr float kBelow = std::bit_cast<float>(std::bit_cast<uint32_t>(Fit::kBranch) + 1);
    static_assert(kBelow < Fit::kBranch);
    uint32_t bits = 0;
#pragma unroll
    for (int j = 7; j >= 0; --j) {
        bits = bits << 1 | bits_as<uint32_t>(kBelow - x[j]) >> 31;
    }
    return bits;
}

// --- bias: [size], repeated along the tensor -----------------------------------------------------

/// p mod `count` for p < 2^31 by a multiplication: count * multiplier = 2^(31 + s) + r with
/// 0 <= r < count <= 2^s, so the quotient is exact (Granlund and Montgomery, Division by invariant
/// integers using multiplication, PLDI 1994, theorem 4.2).
struct Remainder {
    uint32_t count = 1;
    uint32_t multiplier = 1u << 31;
    uint32_t shift = 31;

    __device__ __forceinline__ uint32_t of(uint32_t p) const {
        return p - static_cast<uint32_t>(uint64_t{p} * multiplier >> shift) * count;
    }
};

Remainder remainder_by(uint32_t count) {
    const auto log = static_cast<uint32_t>(std::bit_width(count - 1));
    const uint64_t power = uint64_t{1} << (31 + log);
    return {count, static_cast<uint32_t>((power + count - 1) / count), 31 + log};
}

/// A bias of whole packs is read in packs. Others make the kernel walk single elements.
template <typename T>
bool takes_bias_packs(const InplaceGeluForwardArgs<T>& a, int64_t count) {
    if (a.bias == nullptr) return true;
    return a.bias_size % kPackSize<T> == 0 && aligned_to_packs(a.bias) &&
           count / kPackSize<T> <= 0x7FFFFFFF;
}

template <typename T>
__device__ __forceinline__ void add_bias(const T* bias, const Remainder& packs_of_bias,
                                         const Tile& tile, StatOf<T> (&values)[8]) {
    constexpr int V = kPackSize<T>;
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        const auto pack = static_cast<uint32_t>(tile.pack_begin<T>(k) / V);
        StatOf<T> added[V];
        unpack<T>(load_words(bias + int64_t{packs_of_bias.of(pack)} * V), added);
#pragma unroll
        for (int j = 0; j < V; ++j) values[k * V + j] += added[j];
    }
}

/// double serves tests, and its inversion by Newton is long: one element at a time.
template <typename T>
inline constexpr bool kHasTiles = sizeof(T) < 8;

template <class Fit, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_forward_kernel(InplaceGeluForwardArgs<T> a, Remainder packs_of_bias, int64_t count,
                                bool aligned) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    uint32_t bits = 0;
    if constexpr (kHasTiles<T>) {
        if (takes_packs(tile, aligned)) {
            StatOf<T> values[8];
            load_tile(a.x, tile, StatOf<T>{0}, values);
            if (a.bias) add_bias(a.bias, packs_of_bias, tile, values);
            store_bits<T>(a.mask_kind, a.mask, tile, branch_bits<Fit>(values));
#pragma unroll
            for (int j = 0; j < 8; ++j) values[j] = value_of<Fit, T>(values[j]);
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
        a.y[i] = from_compute<T>(value_of<Fit, T>(value));
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
    const bool packs = takes_bias_packs(args, count);
    const Remainder packs_of_bias =
        args.bias && packs ? remainder_by(static_cast<uint32_t>(args.bias_size / kPackSize<T>))
                           : Remainder{};
    launch("inplace_gelu_forward", kernel, blocks_for(count), kBlockThreads, stream, args,
           packs_of_bias, count, packs && aligned_to_packs(args.x, args.y, args.mask));
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
