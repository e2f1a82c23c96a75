// Softmax and dropout of attention on CUDA. Bytes per element (e = size of T, m = mask): forward e
// read, 2e + m written; D' e + m read, e written; backward 2e + m read, e written. Bounds: those
// bytes over the bandwidth, and Philox as in dropout.cu.
// Rows of up to 2048 elements, a multiple of eight, at aligned addresses: a warp holds a row in
// registers as tiles (cuda_tile.cuh), half a warp up to 128 elements. Other rows: one block per
// row, values read again from cache, and dropout as a flat pass.

#include "kernels/cuda_tile.cuh"
#include "kernels/quick_math.h"
#include "kernels/softmax_dropout.h"

#include <algorithm>
#include <limits>

namespace kernels {
namespace {

using namespace cuda;

inline constexpr int kWarpsPerBlock = 4;
inline constexpr int kMaxTiles = 8;
inline constexpr int64_t kMaxWarpRow = int64_t{kMaxTiles} * kTile;

__device__ __forceinline__ float exp2_of(float v) { return quick_exp2(v); }
__device__ __forceinline__ double exp2_of(double v) { return exp2(v); }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }

template <int kLanes = 32, typename S>
__device__ __forceinline__ S sum_over_lanes(S value) {
#pragma unroll
    for (int d = kLanes / 2; d > 0; d /= 2) value += __shfl_xor_sync(kWholeWarp, value, d);
    return value;
}

template <int kLanes = 32, typename S>
__device__ __forceinline__ S max_over_lanes(S value) {
#pragma unroll
    for (int d = kLanes / 2; d > 0; d /= 2) {
        value = larger(value, __shfl_xor_sync(kWholeWarp, value, d));
    }
    return value;
}

template <typename S>
__device__ __forceinline__ S minus_infinity() {
    return -static_cast<S>(INFINITY);
}

/// exp(v - maximum) = 2^(slope (v - maximum)). The difference comes first: a mask of -1e9 leaves
/// nothing of a small difference in slope v - slope maximum, and the lowest float overflows there.
/// The maximum leaves out NaN, which then comes from the difference, as for a row of -inf.
template <typename S>
struct Exponential {
    S slope, maximum;

    __device__ __forceinline__ S of(S v) const { return exp2_of(slope * (v - maximum)); }
};

/// What the host computes once for all rows.
template <typename S>
struct SoftmaxFactors {
    S scale = 1;
    S log2_e = static_cast<S>(1.44269504088896340736);
    Divisor rows_per_mask;
    Divisor num_queries;
};
template <typename T>
SoftmaxFactors<StatOf<T>> softmax_factors(const SoftmaxDropoutForwardArgs<T>& a) {
    SoftmaxFactors<StatOf<T>> factors;
    factors.scale = static_cast<StatOf<T>>(a.scale);
    if (a.additive_mask) factors.rows_per_mask = divisor_of(a.rows_per_mask);
    if (a.causal) factors.num_queries = divisor_of(a.num_queries);
    return factors;
}

/// Keys that query `row` sees.
template <typename T>
__device__ __forceinline__ int64_t visible_keys(const SoftmaxDropoutForwardArgs<T>& a,
                                                const SoftmaxFactors<StatOf<T>>& factors,
                                                int64_t row) {
    if (!a.causal) return a.num_keys;
    const auto query = factors.num_queries.remainder(static_cast<uint32_t>(row));
    const int64_t last = int64_t{query} + 1 + a.num_keys - a.num_queries;
    return last < 0 ? 0 : (last > a.num_keys ? a.num_keys : last);
}

// --- a row in the registers of a warp, or of half a warp -----------------------------------------
// Keep bits of a row are one word, eight bits a tile, made in a loop that is not unrolled: Philox
// for eight tiles side by side would be most of the kernel.

/// Where a row lies.
template <int kLanes>
struct Row {
    static constexpr int kTileSize = 8 * kLanes;
    int64_t begin;
    int size;  // 0 for rows past the last, whose lanes stay for the shuffles of the warp

    __device__ __forceinline__ Tile tile(int t) const {
        const int offset = t * kTileSize;
        return {begin + offset, size - offset, static_cast<int>(threadIdx.x % kLanes), kLanes};
    }
};

template <int kLanes>
inline constexpr int kRowsPerBlock = kWarpsPerBlock * 32 / kLanes;
template <int kLanes>
__device__ __forceinline__ int row_of_lanes() {
    return static_cast<int>(blockIdx.x * kRowsPerBlock<kLanes> + threadIdx.x / kLanes);
}
template <int kLanes>
__device__ __forceinline__ Row<kLanes> row_at(int index, int num_rows, int64_t num_keys) {
    const bool exists = kLanes == 32 || index < num_rows;  // a whole warp may leave instead
    return {index * num_keys, exists ? static_cast<int>(num_keys) : 0};
}

__device__ __forceinline__ uint32_t bits_of_tile(uint64_t bits, int t) {
    return static_cast<uint32_t>(bits >> (8 * t)) & 0xFF;
}

/// v = scale v + mask. A few tiles of the mask are read at a time, all at once.
template <int kLanes, typename T, int kTiles>
__device__ __forceinline__ void scale_and_add_mask(const SoftmaxDropoutForwardArgs<T>& a,
                                                   const SoftmaxFactors<StatOf<T>>& factors,
                                                   int index, const Row<kLanes>& row,
                                                   StatOf<T> (&v)[kTiles][8]) {
    using S = StatOf<T>;
    constexpr int kAtOnce = std::min(kTiles, 4);
    const uint32_t mask_index = factors.rows_per_mask.quotient(static_cast<uint32_t>(index));
    const Row<kLanes> mask = {mask_index * a.num_keys, row.size};
#pragma unroll
    for (int first = 0; first < kTiles; first += kAtOnce) {
        S added[kAtOnce][8];
#pragma unroll
        for (int t = 0; t < kAtOnce; ++t) {
            load_tile(a.additive_mask, mask.tile(first + t), S{0}, added[t]);
        }
#pragma unroll
        for (int t = 0; t < kAtOnce; ++t) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                v[first + t][j] = std::fma(v[first + t][j], factors.scale, added[t][j]);
            }
        }
    }
}

/// -inf for keys from `visible` on; also lanes beyond the row must not win.
template <typename T, int kLanes, int kTiles>
__device__ __forceinline__ void hide_keys(const Row<kLanes>& row, int visible,
                                          StatOf<T> (&v)[kTiles][8]) {
    constexpr int V = kPackSize<T>;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        const int rest = visible - t * row.kTileSize;
        if (rest >= row.kTileSize) continue;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            if (row.tile(t).template offset<T>(j / V) + j % V >= rest) {
                v[t][j] = minus_infinity<StatOf<T>>();
            }
        }
    }
}

/// Draws the row's keep bits and stores them where they are kept.
template <typename T, int kLanes>
__device__ __forceinline__ uint64_t draw_row(const SoftmaxDropoutForwardArgs<T>& a,
                                             const Drawing<StatOf<T>>& drawing,
                                             const Row<kLanes>& row) {
    uint64_t bits = 0;
#pragma unroll 1
    for (int t = 0; t * row.kTileSize < a.num_keys; ++t) {
        const Tile tile = row.tile(t);
        const uint32_t drawn = draw_bits<T>(drawing, tile);
        if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, tile, drawn);
        bits |= uint64_t{drawn} << (8 * t);
    }
    return bits;
}

/// The same bits in backward.
template <typename T, int kLanes>
__device__ __forceinline__ uint64_t kept_in_row(const SoftmaxDropoutBackwardArgs<T>& a,
                                                const Drawing<StatOf<T>>& drawing,
                                                const Row<kLanes>& row) {
    if (a.dropout_p == 0) return ~uint64_t{0};
    uint64_t bits = 0;
#pragma unroll 1
    for (int t = 0; t * row.kTileSize < a.num_keys; ++t) {
        const Tile tile = row.tile(t);
        bits |= uint64_t{kept_bits<T>(a.mask_kind, a.mask, drawing, tile)} << (8 * t);
    }
    return bits;
}

template <typename T, int kTiles, int kLanes>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    softmax_dropout_forward_kernel(SoftmaxDropoutForwardArgs<T> a, Drawing<StatOf<T>> drawing,
                                   SoftmaxFactors<StatOf<T>> factors, int num_rows) {
    using S = StatOf<T>;
    const int index = row_of_lanes<kLanes>();
    if (kLanes == 32 && index >= num_rows) return;
    const auto row = row_at<kLanes>(index, num_rows, a.num_keys);
    S v[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {  // all of a row is on its way before anything is computed
        load_tile(a.scores, row.tile(t), minus_infinity<S>(), v[t]);
    }
    S slope = factors.log2_e;
    if (a.additive_mask) {
        scale_and_add_mask(a, factors, index, row, v);
    } else if (factors.scale > 0) {
        slope *= factors.scale;
    } else {  // the order of the keys changes, and 0 times -inf is NaN
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
#pragma unroll
            for (int j = 0; j < 8; ++j) v[t][j] *= factors.scale;
        }
    }
    hide_keys<T>(row, static_cast<int>(visible_keys(a, factors, index)), v);
    S maximum = minus_infinity<S>();
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) maximum = larger(maximum, v[t][j]);
    }
    const Exponential<S> exponential = {slope, max_over_lanes<kLanes>(maximum)};
    S sum = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += v[t][j] = exponential.of(v[t][j]);
    }
    // Lanes beyond the row hold exp(-inf) = 0, or NaN in a row that sees nothing, as it should be.
    const S inverse = quick_reciprocal(sum_over_lanes<kLanes>(sum));
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        // Rounded, so that D is made from what backward will read.
#pragma unroll
        for (int j = 0; j < 8; ++j) v[t][j] = rounded<T>(v[t][j] * inverse);
        store_tile(a.probs, row.tile(t), v[t]);
    }
    if (a.dropped == nullptr) return;
    const uint64_t bits = draw_row(a, drawing, row);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        const uint32_t kept = bits_of_tile(bits, t);
#pragma unroll
        for (int j = 0; j < 8; ++j) v[t][j] = kept >> j & 1 ? v[t][j] * drawing.scale : S{0};
        store_tile(a.dropped, row.tile(t), v[t]);
    }
}

template <typename T, int kTiles, int kLanes>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    softmax_dropout_backward_kernel(SoftmaxDropoutBackwardArgs<T> a, Drawing<StatOf<T>> drawing,
                                    StatOf<T> scale, int num_rows) {
    using S = StatOf<T>;
    const int index = row_of_lanes<kLanes>();
    if (kLanes == 32 && index >= num_rows) return;
    const auto row = row_at<kLanes>(index, num_rows, a.num_keys);
    S dp[kTiles][8], p[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        load_tile(a.ddropped, row.tile(t), S{0}, dp[t]);
        load_tile(a.probs, row.tile(t), S{0}, p[t]);
    }
    const uint64_t bits = kept_in_row(a, drawing, row);
    S sum = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        const uint32_t kept = bits_of_tile(bits, t);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            dp[t][j] = kept >> j & 1 ? dp[t][j] * drawing.scale : S{0};
            sum += dp[t][j] * p[t][j];
        }
    }
    sum = sum_over_lanes<kLanes>(sum);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) dp[t][j] = scale * p[t][j] * (dp[t][j] - sum);
        store_tile(a.dscores, row.tile(t), dp[t]);
    }
}

// --- one block per row: any length, any address --------------------------------------------------

/// All threads of the block call it. `identity` changes nothing when combined.
template <typename S, class Combine>
__device__ __forceinline__ S block_reduce(S value, S identity, Combine combine) {
    constexpr int kWarps = kBlockThreads / 32;
    __shared__ S shared[kWarps];
    const int lane = static_cast<int>(threadIdx.x % 32);
    value = combine(value);
    __syncthreads();  // the previous result has been read
    if (lane == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    return combine(lane < kWarps ? shared[lane] : identity);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    softmax_any_row_kernel(SoftmaxDropoutForwardArgs<T> a, SoftmaxFactors<StatOf<T>> factors) {
    using S = StatOf<T>;
    const int64_t row = blockIdx.x;
    const int64_t size = a.num_keys;
    const int64_t visible = visible_keys(a, factors, row);
    const T* scores = a.scores + row * size;
    const uint32_t mask_row = factors.rows_per_mask.quotient(blockIdx.x);
    const T* added = a.additive_mask ? a.additive_mask + int64_t{mask_row} * size : nullptr;
    const auto logit = [&](int64_t key) {
        const S v = to_compute(scores[key]) * factors.scale;
        return added ? v + to_compute(added[key]) : v;
    };
    S maximum = minus_infinity<S>();
    for (int64_t key = threadIdx.x; key < visible; key += kBlockThreads) {
        maximum = larger(maximum, logit(key));
    }
    maximum = block_reduce(maximum, minus_infinity<S>(), [](S v) { return max_over_lanes(v); });
    const Exponential<S> exponential = {factors.log2_e, maximum};
    S sum = 0;
    for (int64_t key = threadIdx.x; key < visible; key += kBlockThreads) {
        sum += exponential.of(logit(key));
    }
    const S inverse = S{1} / block_reduce(sum, S{0}, [](S v) { return sum_over_lanes(v); });
    for (int64_t key = threadIdx.x; key < size; key += kBlockThreads) {
        const S p = key < visible ? exponential.of(logit(key)) * inverse : S{0} * inverse;
        a.probs[row * size + key] = from_compute<T>(p);
    }
}

/// Keep bit of one element of the flat tensor.
template <typename T>
__device__ __forceinline__ bool kept(const SoftmaxDropoutBackwardArgs<T>& a,
                                     const Drawing<StatOf<T>>& drawing, int64_t i) {
    if (a.dropout_p == 0) return true;
    return kept_element<T>(a.mask_kind, a.mask, drawing, i);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    softmax_backward_any_row_kernel(SoftmaxDropoutBackwardArgs<T> a, Drawing<StatOf<T>> drawing,
                                    StatOf<T> scale) {
    using S = StatOf<T>;
    const int64_t begin = int64_t{blockIdx.x} * a.num_keys;
    const int64_t end = begin + a.num_keys;
    const auto dprob = [&](int64_t i) {
        return kept(a, drawing, i) ? to_compute(a.ddropped[i]) * drawing.scale : S{0};
    };
    S sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
        sum += dprob(i) * to_compute(a.probs[i]);
    }
    sum = block_reduce(sum, S{0}, [](S v) { return sum_over_lanes(v); });
    for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
        a.dscores[i] = from_compute<T>(scale * to_compute(a.probs[i]) * (dprob(i) - sum));
    }
}

// --- launchers ---------------------------------------------------------------------------------

/// double serves tests: the kernel for rows of any length is enough.
template <typename T>
inline constexpr bool kHasWarpKernels = sizeof(T) < 8;

/// Rows that are whole units and start at packs.
template <typename T, typename... Pointers>
bool fits_a_warp(int64_t num_keys, const Pointers*... pointers) {
    return kHasWarpKernels<T> && num_keys % 8 == 0 && num_keys <= kMaxWarpRow &&
           aligned_to_packs(pointers...);
}

/// Calls `launch` with the lanes of a row and its tiles as constants; tiles are rounded up to what
/// is compiled: 1, 2, 4 or 8.
template <class Launch>
void with_row_shape(int64_t num_keys, const Launch& launch) {
    using Warp = std::integral_constant<int, 32>;
    using One = std::integral_constant<int, 1>;
    if (num_keys <= kTile / 2) return launch(std::integral_constant<int, 16>(), One());
    if (num_keys <= kTile) return launch(Warp(), One());
    if (num_keys <= 2 * kTile) return launch(Warp(), std::integral_constant<int, 2>());
    if (num_keys <= 4 * kTile) return launch(Warp(), std::integral_constant<int, 4>());
    return launch(Warp(), std::integral_constant<int, kMaxTiles>());
}

template <typename T>
void launch_forward_by_warps(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows,
                             CudaStream stream) {
    if constexpr (kHasWarpKernels<T>) {
        with_row_shape(args.num_keys, [&](auto lanes, auto tiles) {
            constexpr int kLanes = decltype(lanes)::value;
            launch_kernel("softmax_dropout_forward",
                          softmax_dropout_forward_kernel<T, decltype(tiles)::value, kLanes>,
                          blocks_of_rows(num_rows, kRowsPerBlock<kLanes>), kWarpsPerBlock * 32,
                          stream, args, make_drawing<StatOf<T>>(args.key, args.dropout_p),
                          softmax_factors(args), counted_rows(num_rows));
        });
    }
}

template <typename T>
void launch_backward_by_warps(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows,
                              CudaStream stream) {
    if constexpr (kHasWarpKernels<T>) {
        with_row_shape(args.num_keys, [&](auto lanes, auto tiles) {
            constexpr int kLanes = decltype(lanes)::value;
            launch_kernel("softmax_dropout_backward",
                          softmax_dropout_backward_kernel<T, decltype(tiles)::value, kLanes>,
                          blocks_of_rows(num_rows, kRowsPerBlock<kLanes>), kWarpsPerBlock * 32,
                          stream, args, make_drawing<StatOf<T>>(args.key, args.dropout_p),
                          static_cast<StatOf<T>>(args.scale), counted_rows(num_rows));
        });
    }
}

}  // namespace

template <typename T>
void launch(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows, CudaStream stream) {
    if (num_rows == 0 || args.num_keys == 0) return;
    if (fits_a_warp<T>(args.num_keys, args.scores, args.additive_mask, args.probs, args.dropped,
                       args.mask)) {
        return launch_forward_by_warps(args, num_rows, stream);
    }
    launch_kernel("softmax_any_row", softmax_any_row_kernel<T>, blocks_of_rows(num_rows, 1),
                  kBlockThreads, stream, args, softmax_factors(args));
    if (args.dropped == nullptr) return;
    launch(DropoutForwardArgs<T>{args.probs, args.dropped, args.mask, args.mask_kind,
                                 args.dropout_p, args.key},
           num_rows * args.num_keys, stream);
}

template <typename T>
void launch(const RecomputeDroppedArgs<T>& args, int64_t num_rows, CudaStream stream) {
    launch(DropoutBackwardArgs<T>{args.probs, args.dropped, args.mask, args.mask_kind,
                                  args.dropout_p, args.key},
           num_rows * args.num_keys, stream);
}

template <typename T>
void launch(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows, CudaStream stream) {
    if (num_rows == 0 || args.num_keys == 0) return;
    if (fits_a_warp<T>(args.num_keys, args.ddropped, args.probs, args.mask, args.dscores)) {
        return launch_backward_by_warps(args, num_rows, stream);
    }
    launch_kernel("softmax_backward_any_row", softmax_backward_any_row_kernel<T>,
                  blocks_of_rows(num_rows, 1), kBlockThreads, stream, args,
                  make_drawing<StatOf<T>>(args.key, args.dropout_p),
                  static_cast<StatOf<T>>(args.scale));
}

KERNELS_LAUNCH(SoftmaxDropoutForwardArgs)
KERNELS_LAUNCH(RecomputeDroppedArgs)
KERNELS_LAUNCH(SoftmaxDropoutBackwardArgs)

}  // namespace kernels
