// Softmax and dropout of attention on CUDA. Bytes per element (e = size of T, m = mask): forward e
// read, 2e + m written; D' e + m read, e written; backward 2e + m read, e written. Bounds: those
// bytes over the bandwidth, and Philox as in dropout.cu.
// Rows of up to 2048 elements, a multiple of eight, at aligned addresses: one warp per row, which
// it holds in registers as tiles (cuda_tile.cuh). Other rows: one block per row, values read again
// from cache, and dropout as a flat pass.

#include "kernels/cuda_tile.cuh"
#include "kernels/softmax_dropout.h"

#include <limits>

namespace kernels {
namespace {

using namespace cuda;

inline constexpr int kWarpsPerBlock = 4;
inline constexpr int kMaxTiles = 8;
inline constexpr int64_t kMaxWarpRow = int64_t{kMaxTiles} * kTile;

__device__ __forceinline__ float exp_of(float v) { return expf(v); }
__device__ __forceinline__ double exp_of(double v) { return exp(v); }

template <typename S>
__device__ __forceinline__ S warp_sum(S value) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(kWholeWarp, value, d);
    return value;
}

template <typename S>
__device__ __forceinline__ S warp_max(S value) {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const S other = __shfl_xor_sync(kWholeWarp, value, d);
        value = other > value || other != other ? other : value;  // NaN wins
    }
    return value;
}

template <typename S>
__device__ __forceinline__ S lowest() {
    return -static_cast<S>(INFINITY);
}

/// Keys that query `row` sees.
template <typename T>
__device__ __forceinline__ int64_t visible_keys(const SoftmaxDropoutForwardArgs<T>& a,
                                                int64_t row) {
    if (!a.causal) return a.num_keys;
    const int64_t last = row % a.num_queries + 1 + a.num_keys - a.num_queries;
    return last < 0 ? 0 : (last > a.num_keys ? a.num_keys : last);
}

/// Tile number t of a row that starts at element `begin` and has `size`.
__device__ __forceinline__ Tile row_tile(int64_t begin, int64_t size, int t) {
    const int offset = t * kTile;
    return {begin + offset, static_cast<int>(size) - offset, static_cast<int>(threadIdx.x % 32)};
}

__device__ __forceinline__ int64_t row_of_warp() {
    return int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
}

// --- one warp per row ---------------------------------------------------------------------------
// Keep bits of a row are one word, eight bits a tile, made in a loop that is not unrolled: Philox
// for eight tiles side by side would be most of the kernel.

__device__ __forceinline__ uint32_t bits_of_tile(uint64_t bits, int t) {
    return static_cast<uint32_t>(bits >> (8 * t)) & 0xFF;
}

/// Turns scores of one tile into scale * scores + mask; -inf where the query does not see.
template <typename T>
__device__ __forceinline__ void make_logits(const SoftmaxDropoutForwardArgs<T>& a, StatOf<T> scale,
                                            int64_t row, int t, StatOf<T> (&v)[8]) {
    using S = StatOf<T>;
    const Tile tile = row_tile(row * a.num_keys, a.num_keys, t);
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] *= scale;
    if (a.additive_mask) {
        const int64_t mask_begin = row / a.rows_per_mask * a.num_keys;
        S added[8];
        load_tile(a.additive_mask, row_tile(mask_begin, a.num_keys, t), S{0}, added);
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] += added[j];
    }
    // After the scale, which may be 0 or negative: also lanes beyond the row must not win.
    const int visible = static_cast<int>(a.causal ? visible_keys(a, row) : a.num_keys);
    constexpr int V = kPackSize<T>;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        if (t * kTile + tile.offset<T>(j / V) + j % V >= visible) v[j] = lowest<S>();
    }
}

/// Probability as it is stored, so that D is made from what backward will read.
template <typename T>
__device__ __forceinline__ StatOf<T> as_stored(StatOf<T> p) {
    return to_compute(from_compute<T>(p));
}

/// Draws the row's keep bits and stores them where they are kept.
template <typename T>
__device__ __forceinline__ uint64_t draw_row(const SoftmaxDropoutForwardArgs<T>& a,
                                             const Drawing<StatOf<T>>& drawing, int64_t row) {
    uint64_t bits = 0;
#pragma unroll 1
    for (int t = 0; t * kTile < a.num_keys; ++t) {
        const Tile tile = row_tile(row * a.num_keys, a.num_keys, t);
        const uint32_t drawn = draw_bits<T>(drawing, tile);
        if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, tile, drawn);
        bits |= uint64_t{drawn} << (8 * t);
    }
    return bits;
}

/// The same bits in backward.
template <typename T>
__device__ __forceinline__ uint64_t kept_in_row(const SoftmaxDropoutBackwardArgs<T>& a,
                                                const Drawing<StatOf<T>>& drawing, int64_t row) {
    if (a.dropout_p == 0) return ~uint64_t{0};
    uint64_t bits = 0;
#pragma unroll 1
    for (int t = 0; t * kTile < a.num_keys; ++t) {
        const Tile tile = row_tile(row * a.num_keys, a.num_keys, t);
        const uint32_t kept = a.mask_kind == MaskKind::kNone
                                  ? draw_bits<T>(drawing, tile)
                                  : load_bits<T>(a.mask_kind, a.mask, tile);
        bits |= uint64_t{kept} << (8 * t);
    }
    return bits;
}

template <typename T, int kTiles>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    softmax_dropout_forward_kernel(SoftmaxDropoutForwardArgs<T> a, Drawing<StatOf<T>> drawing,
                                   StatOf<T> scale, int64_t num_rows) {
    using S = StatOf<T>;
    const int64_t row = row_of_warp();
    if (row >= num_rows) return;
    S v[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {  // all of a row is on its way before anything is computed
        load_tile(a.scores, row_tile(row * a.num_keys, a.num_keys, t), lowest<S>(), v[t]);
    }
    S maximum = lowest<S>();
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        make_logits(a, scale, row, t, v[t]);
#pragma unroll
        for (int j = 0; j < 8; ++j) maximum = v[t][j] > maximum ? v[t][j] : maximum;
    }
    maximum = warp_max(maximum);
    S sum = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += v[t][j] = exp_of(v[t][j] - maximum);
    }
    // Lanes beyond the row hold exp(-inf) = 0, or NaN in a row that sees nothing, as it should be.
    const S inverse = S{1} / warp_sum(sum);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) v[t][j] = as_stored<T>(v[t][j] * inverse);
        store_tile(a.probs, row_tile(row * a.num_keys, a.num_keys, t), v[t]);
    }
    if (a.dropped == nullptr) return;
    const uint64_t bits = draw_row(a, drawing, row);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        const uint32_t kept = bits_of_tile(bits, t);
#pragma unroll
        for (int j = 0; j < 8; ++j) v[t][j] = kept >> j & 1 ? v[t][j] * drawing.scale : S{0};
        store_tile(a.dropped, row_tile(row * a.num_keys, a.num_keys, t), v[t]);
    }
}

template <typename T, int kTiles>
__global__ void __launch_bounds__(kWarpsPerBlock * 32)
    softmax_dropout_backward_kernel(SoftmaxDropoutBackwardArgs<T> a, Drawing<StatOf<T>> drawing,
                                    StatOf<T> scale, int64_t num_rows) {
    using S = StatOf<T>;
    const int64_t row = row_of_warp();
    if (row >= num_rows) return;
    S dp[kTiles][8], p[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        const Tile tile = row_tile(row * a.num_keys, a.num_keys, t);
        load_tile(a.ddropped, tile, S{0}, dp[t]);
        load_tile(a.probs, tile, S{0}, p[t]);
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
    sum = warp_sum(sum);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            dp[t][j] = scale * p[t][j] * (dp[t][j] - sum);
        }
        store_tile(a.dscores, row_tile(row * a.num_keys, a.num_keys, t), dp[t]);
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
    softmax_any_row_kernel(SoftmaxDropoutForwardArgs<T> a, StatOf<T> scale) {
    using S = StatOf<T>;
    const int64_t row = blockIdx.x;
    const int64_t size = a.num_keys;
    const int64_t visible = visible_keys(a, row);
    const T* scores = a.scores + row * size;
    const Source<T> added =
        a.additive_mask ? a.additive_mask + row / a.rows_per_mask * size : nullptr;
    const auto logit = [&](int64_t key) {
        const S v = to_compute(scores[key]) * scale;
        return added ? v + element(added, key) : v;
    };
    S maximum = lowest<S>();
    for (int64_t key = threadIdx.x; key < visible; key += kBlockThreads) {
        const S v = logit(key);
        maximum = v > maximum ? v : maximum;
    }
    maximum = block_reduce(maximum, lowest<S>(), [](S v) { return warp_max(v); });
    S sum = 0;
    for (int64_t key = threadIdx.x; key < visible; key += kBlockThreads) {
        sum += exp_of(logit(key) - maximum);
    }
    const S inverse = S{1} / block_reduce(sum, S{0}, [](S v) { return warp_sum(v); });
    for (int64_t key = threadIdx.x; key < size; key += kBlockThreads) {
        const S p = key < visible ? exp_of(logit(key) - maximum) * inverse : S{0} * inverse;
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
    sum = block_reduce(sum, S{0}, [](S v) { return warp_sum(v); });
    for (int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
        const S scaled = scale * to_compute(a.probs[i]);
        a.dscores[i] = from_compute<T>(scaled * (dprob(i) - sum));
    }
}

// --- launchers ---------------------------------------------------------------------------------

/// double serves tests: the kernel for rows of any length is enough.
template <typename T>
inline constexpr bool kHasWarpKernels = sizeof(T) < 8;

/// Rows that are whole units and start at packs.
template <typename T, typename... Tensors>
bool fits_a_warp(int64_t num_keys, const Tensors&... tensors) {
    return kHasWarpKernels<T> && num_keys % 8 == 0 && num_keys <= kMaxWarpRow &&
           aligned_to_packs(tensors...);
}

/// Tiles of a row, rounded up to what is compiled: 1, 2, 4 or 8.
template <class Launch>
void with_tiles(int64_t num_keys, const Launch& launch) {
    if (num_keys <= kTile) return launch(std::integral_constant<int, 1>());
    if (num_keys <= 2 * kTile) return launch(std::integral_constant<int, 2>());
    if (num_keys <= 4 * kTile) return launch(std::integral_constant<int, 4>());
    return launch(std::integral_constant<int, kMaxTiles>());
}

template <typename T>
void launch_forward_by_warps(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows,
                             CudaStream stream) {
    if constexpr (kHasWarpKernels<T>) {
        with_tiles(args.num_keys, [&](auto tiles) {
            launch("softmax_dropout_forward",
                   softmax_dropout_forward_kernel<T, decltype(tiles)::value>,
                   blocks_of_rows(num_rows, kWarpsPerBlock), kWarpsPerBlock * 32, stream, args,
                   make_drawing<StatOf<T>>(args.key, args.dropout_p),
                   static_cast<StatOf<T>>(args.scale), num_rows);
        });
    }
}

template <typename T>
void launch_backward_by_warps(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows,
                              CudaStream stream) {
    if constexpr (kHasWarpKernels<T>) {
        with_tiles(args.num_keys, [&](auto tiles) {
            launch("softmax_dropout_backward",
                   softmax_dropout_backward_kernel<T, decltype(tiles)::value>,
                   blocks_of_rows(num_rows, kWarpsPerBlock), kWarpsPerBlock * 32, stream, args,
                   make_drawing<StatOf<T>>(args.key, args.dropout_p),
                   static_cast<StatOf<T>>(args.scale), num_rows);
        });
    }
}

}  // namespace

template <typename T>
void launch_softmax_dropout_forward(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows,
                                    CudaStream stream) {
    if (num_rows == 0 || args.num_keys == 0) return;
    if (fits_a_warp<T>(args.num_keys, args.scores, args.additive_mask, args.probs, args.dropped,
                       args.mask)) {
        return launch_forward_by_warps(args, num_rows, stream);
    }
    launch("softmax_any_row", softmax_any_row_kernel<T>, blocks_of_rows(num_rows, 1), kBlockThreads,
           stream, args, static_cast<StatOf<T>>(args.scale));
    if (args.dropped == nullptr) return;
    launch_dropout_forward<T>(
        {args.probs, args.dropped, args.mask, args.mask_kind, args.dropout_p, args.key},
        num_rows * args.num_keys, stream);
}

template <typename T>
void launch_recompute_dropped_probs(const RecomputeDroppedArgs<T>& args, int64_t num_rows,
                                    CudaStream stream) {
    launch_dropout_backward<T>(
        {args.probs, args.dropped, args.mask, args.mask_kind, args.dropout_p, args.key},
        num_rows * args.num_keys, stream);
}

template <typename T>
void launch_softmax_dropout_backward(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows,
                                     CudaStream stream) {
    if (num_rows == 0 || args.num_keys == 0) return;
    if (fits_a_warp<T>(args.num_keys, args.ddropped, args.probs, args.mask, args.dscores)) {
        return launch_backward_by_warps(args, num_rows, stream);
    }
    launch("softmax_backward_any_row", softmax_backward_any_row_kernel<T>,
           blocks_of_rows(num_rows, 1), kBlockThreads, stream, args,
           make_drawing<StatOf<T>>(args.key, args.dropout_p), static_cast<StatOf<T>>(args.scale));
}

#define KERNELS_INSTANTIATE(T)                                                                    \
    template void launch_softmax_dropout_forward<T>(const SoftmaxDropoutForwardArgs<T>&, int64_t, \
                                                    CudaStream);                                  \
    template void launch_recompute_dropped_probs<T>(const RecomputeDroppedArgs<T>&, int64_t,      \
                                                    CudaStream);                                  \
    template void launch_softmax_dropout_backward<T>(const SoftmaxDropoutBackwardArgs<T>&,        \
                                                     int64_t, CudaStream);
KERNELS_INSTANTIATE(float)
KERNELS_INSTANTIATE(double)
KERNELS_INSTANTIATE(Half)
KERNELS_INSTANTIATE(BFloat16)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
