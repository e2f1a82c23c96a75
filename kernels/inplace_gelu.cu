// In-place GELU on CUDA. Bytes per element: forward e read, e + m written; backward 2e + m read, e
// written (e = size of T; m = 1 or 1/8). Bounds: those bytes over the bandwidth, and the
// instructions of an element over the issue rate; docs/dev/measurements/kernels-model.md has both.
// One warp per tile of 256 elements (cuda_tile.cuh), or per two in 16-bit backward; arithmetic in
// gelu_math.h.

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
__device__ __forceinline__ StatOf<T> derivative(StatOf<T> o, uint32_t right) {
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

/// Packs are counted by an int.
constexpr int64_t kMaxPacks = 0x7FFFFFFF;

/// A bias of whole packs is read in packs. Others make packs of one element.
template <typename T>
bool takes_bias_packs(const InplaceGeluForwardArgs<T>& a, int64_t count) {
    if (a.bias == nullptr) return true;
    return a.bias_size % kPackSize<T> == 0 && aligned_to_packs(a.bias) &&
           count / kPackSize<T> <= kMaxPacks;
}

template <typename T, int V>
__device__ __forceinline__ void add_bias(const InplaceGeluForwardArgs<T>& a,
                                         const Divisor& packs_of_bias, const Tile& tile,
                                         StatOf<T> (&values)[8]) {
#pragma unroll
    for (int k = 0; k < 8 / V; ++k) {
        const int64_t i = tile.pack_begin<T, V>(k);
        StatOf<T> added[V];
        if constexpr (V == 1) {
            added[0] = to_compute(a.bias[i % a.bias_size]);
        } else {
            const uint32_t pack = packs_of_bias.remainder(static_cast<uint32_t>(i / V));
            load_elements<V>(a.bias + int64_t{pack} * V, added);
        }
#pragma unroll
        for (int j = 0; j < V; ++j) values[k * V + j] += added[j];
    }
}

/// One element of each lane at a time: the last tile, and double, which serves tests and whose
/// inversion by Newton is long.
template <class Fit, typename T>
__device__ __forceinline__ void gelu_elements(const InplaceGeluForwardArgs<T>& a,
                                              const Tile& tile) {
    uint32_t bits = 0;
#pragma unroll 1
    for (int k = 0; k < 8; ++k) {
        if (!tile.holds<T, 1>(k)) continue;
        const int64_t i = tile.pack_begin<T, 1>(k);
        StatOf<T> value = to_compute(a.x[i]);
        if (a.bias) value += to_compute(a.bias[i % a.bias_size]);
        bits |= (right_of_minimum<Fit, T>(value) ? 1u : 0u) << k;
        a.y[i] = from_compute<T>(value_of<Fit, T>(value));
    }
    store_bits<T, 1>(a.mask_kind, a.mask, tile, bits);
}

template <class Fit, typename T, int V>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_forward_kernel(InplaceGeluForwardArgs<T> a, Divisor packs_of_bias, int64_t count) {
    const Tile tile = flat_tile(count);
    if constexpr (sizeof(T) < 8) {
        if (takes_packs<V>(tile)) {
            StatOf<T> values[8];
            load_tile<T, V>(a.x, tile, StatOf<T>{0}, values);
            if (a.bias) add_bias<T, V>(a, packs_of_bias, tile, values);
            store_bits<T, V>(a.mask_kind, a.mask, tile, branch_bits<Fit>(values));
#pragma unroll
            for (int j = 0; j < 8; ++j) values[j] = value_of<Fit, T>(values[j]);
            return store_tile<T, V>(a.y, tile, values);
        }
    }
    if (tile.room > 0) gelu_elements<Fit>(a, tile);
}

template <class Fit, typename T>
__device__ __forceinline__ void gelu_gradient_elements(const InplaceGeluBackwardArgs<T>& a,
                                                       const Tile& tile) {
    const uint32_t bits = load_bits<T, 1>(a.mask_kind, a.mask, tile);
#pragma unroll 1
    for (int k = 0; k < 8; ++k) {
        if (!tile.holds<T, 1>(k)) continue;
        const int64_t i = tile.pack_begin<T, 1>(k);
        const StatOf<T> slope = derivative<Fit, T>(to_compute(a.y[i]), bits & 1u << k);
        a.dx[i] = from_compute<T>(to_compute(a.dy[i]) * slope);
    }
}

/// Tiles of a warp in backward, one after another in the tensor. With two, a warp has twice the
/// loads on their way: in 16 bits 1.00 to 1.02 of the speed of a copy on an H200 where one had 0.93
/// to 0.94. fp32, whose tiles have twice the bytes, did not gain.
template <typename T, int V>
inline constexpr int kBackwardTiles = sizeof(T) == 2 && V > 1 ? 2 : 1;

/// Tile k of this warp's `kTiles`.
template <int kTiles>
__device__ __forceinline__ Tile tile_of_warp(int64_t count, int k) {
    const int64_t warp = int64_t{blockIdx.x} * (kBlockThreads / 32) + threadIdx.x / 32;
    const int64_t begin = (warp * kTiles + k) * kTile, rest = count - begin;
    const int room = rest < kTile ? static_cast<int>(rest > 0 ? rest : 0) : kTile;
    return {begin, room, static_cast<int>(threadIdx.x % 32)};
}

template <class Fit, typename T, int V>
__device__ __forceinline__ void store_gradient(const InplaceGeluBackwardArgs<T>& a,
                                               const Tile& tile, const StoredTile<T, V>& dy,
                                               const StoredTile<T, V>& y, uint32_t bits) {
    StatOf<T> gradients[8], outputs[8];
    dy.convert(gradients);
    y.convert(outputs);
#pragma unroll
    for (int j = 0; j < 8; ++j) gradients[j] *= derivative<Fit, T>(outputs[j], bits & 1u << j);
    store_tile<T, V>(a.dx, tile, gradients);
}

template <class Fit, typename T, int V>
__global__ void __launch_bounds__(kBlockThreads)
    inplace_gelu_backward_kernel(InplaceGeluBackwardArgs<T> a, int64_t count) {
    constexpr int kTiles = kBackwardTiles<T, V>;
    const Tile last = tile_of_warp<kTiles>(count, kTiles - 1);
    if constexpr (sizeof(T) < 8) {
        if (takes_packs<V>(last)) {
            const StoredTile<T, V> dy(a.dy, last), y(a.y, last);
            if constexpr (kTiles == 2) {
                const Tile first = {last.begin - kTile, kTile, last.lane};
                const StoredTile<T, V> first_dy(a.dy, first), first_y(a.y, first);
                const uint32_t first_bits = load_bits<T, V>(a.mask_kind, a.mask, first);
                const uint32_t bits = load_bits<T, V>(a.mask_kind, a.mask, last);
                store_gradient<Fit, T, V>(a, first, first_dy, first_y, first_bits);
                return store_gradient<Fit, T, V>(a, last, dy, y, bits);
            }
            const uint32_t bits = load_bits<T, V>(a.mask_kind, a.mask, last);
            return store_gradient<Fit, T, V>(a, last, dy, y, bits);
        }
    }
#pragma unroll 1
    for (int k = 0; k < kTiles; ++k) {
        const Tile tile = tile_of_warp<kTiles>(count, k);
        if (tile.room > 0) gelu_gradient_elements<Fit>(a, tile);
    }
}

/// Calls `launch` with the fit and with the size of packs, as constants.
template <typename T, class Launch>
void with_fit_and_packs(GeluKind kind, bool aligned, const Launch& launch) {
    const auto with_packs = [&](auto fit) {
        if constexpr (sizeof(T) < 8) {
            if (aligned) return launch(fit, std::integral_constant<int, kPackSize<T>>());
        }
        launch(fit, std::integral_constant<int, 1>());
    };
    if (kind == GeluKind::kErf) return with_packs(gelu_fit::ErfFit());
    with_packs(gelu_fit::TanhFit());
}

}  // namespace

template <typename T>
void launch(const InplaceGeluForwardArgs<T>& args, int64_t count, CudaStream stream) {
    if (count == 0) return;
    const bool packs = takes_bias_packs(args, count) && aligned_to_packs(args.x, args.y, args.mask);
    const Divisor packs_of_bias =
        args.bias && packs ? divisor_of(args.bias_size / kPackSize<T>) : Divisor{};
    with_fit_and_packs<T>(args.kind, packs, [&](auto fit, auto pack) {
        launch_kernel("inplace_gelu_forward",
                      inplace_gelu_forward_kernel<decltype(fit), T, decltype(pack)::value>,
                      blocks_for(count), kBlockThreads, stream, args, packs_of_bias, count);
    });
}

template <typename T>
void launch(const InplaceGeluBackwardArgs<T>& args, int64_t count, CudaStream stream) {
    if (count == 0) return;
    const bool packs = aligned_to_packs(args.dy, args.y, args.mask, args.dx);
    with_fit_and_packs<T>(args.kind, packs, [&](auto fit, auto pack) {
        constexpr int V = decltype(pack)::value, kTiles = kBackwardTiles<T, V>;
        launch_kernel("inplace_gelu_backward", inplace_gelu_backward_kernel<decltype(fit), T, V>,
                      (blocks_for(count) + kTiles - 1) / kTiles, kBlockThreads, stream, args,
                      count);
    });
}

KERNELS_LAUNCH(InplaceGeluForwardArgs)
KERNELS_LAUNCH(InplaceGeluBackwardArgs)

}  // namespace kernels
