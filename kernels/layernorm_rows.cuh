#pragma once

#include "kernels/cuda_tile.cuh"
#include "kernels/inplace_layernorm.h"

// Rows of LayerNorm in registers: a row of whole units is held by ceil(H / 256) warps, eight
// elements a thread, so every tensor is read once. Threads (x) belong to one row, y counts the rows
// that a block works on at once.
// Used by inplace_layernorm.cu and residual_layernorm.cu.

namespace kernels::cuda {

inline constexpr int kMaxRowThreads = 512;
// Blocks of backward that an SM holds at once. This bounds registers to 64 per thread.
inline constexpr int kBackwardBlocks = 2;
inline constexpr int64_t kMaxRegisterRow = 8 * kMaxRowThreads;

/// True if rows are held in registers: whole units at aligned addresses. double, which only tests
/// use, takes the kernels for rows of any length.
template <typename T, typename... Pointers>
bool fits_registers(int64_t size, const Pointers*... pointers) {
    return sizeof(T) < 8 && size % 8 == 0 && size <= kMaxRegisterRow &&
           aligned_to_packs(pointers...);
}

/// Threads of one row: whole warps, eight elements each.
inline int threads_per_row(int64_t size) {
    return static_cast<int>((size + kTile - 1) / kTile) * 32;
}

inline void check_row_size(int64_t hidden_size) {
    if (hidden_size < 1) throw std::invalid_argument("layer_norm on CUDA: hidden_size is 0");
}

/// A block of about `threads` threads with whole rows.
inline dim3 block_of_rows(int64_t size, int threads) {
    const int row_threads = threads_per_row(size);
    const int rows = threads > row_threads ? threads / row_threads : 1;
    return {static_cast<unsigned>(row_threads), static_cast<unsigned>(rows), 1};
}

// Backward counts rows in 32 bits: its 64 registers have no room for 64-bit counters.

/// Errors   std::runtime_error if the rows, with the grid beyond them, are too many for an int.
inline int counted_rows(int64_t num_rows) {
    if (num_rows > 0x7FFF0000) throw std::runtime_error("too many rows for one CUDA launch");
    return static_cast<int>(num_rows);
}
__device__ __forceinline__ int first_row_of_block() {
    return static_cast<int>(blockIdx.x * blockDim.y);
}
__device__ __forceinline__ int rows_of_grid() { return static_cast<int>(gridDim.x * blockDim.y); }

/// This thread's elements of a row: a warp holds one tile of the row. Empty for rows past the last;
/// their threads stay for __syncthreads.
__device__ __forceinline__ Tile row_tile(int64_t row, int64_t num_rows, int64_t size) {
    const int offset = static_cast<int>(threadIdx.x / 32) * kTile;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (row >= num_rows) return {0, 0, lane};
    return {row * size + offset, static_cast<int>(size) - offset, lane};
}

/// The same elements of a vector of channels.
__device__ __forceinline__ Tile channel_tile(int64_t size) { return row_tile(0, 1, size); }

/// Pack k of gamma or beta; `absent` without the tensor.
template <typename T>
__device__ __forceinline__ void load_channels(const T* from, const Tile& tile, int k,
                                              StatOf<T> absent, StatOf<T>* out) {
    if (from) return load_pack(from, tile, k, absent, out);
#pragma unroll
    for (int j = 0; j < kPackSize<T>; ++j) out[j] = absent;
}

/// True if register j of this lane lies inside the row.
template <typename T>
__device__ __forceinline__ bool inside(const Tile& tile, int j) {
    return tile.holds<T>(j / kPackSize<T>);  // packs are inside or outside as a whole
}

/// c / gamma to 2 ulp in two instructions; the exact division calls a subroutine.
__device__ __forceinline__ float quotient(float c, float gamma) { return __fdividef(c, gamma); }
__device__ __forceinline__ double quotient(double c, double gamma) { return c / gamma; }

template <typename S>
struct Pair {
    S a, b;
};

/// Sums both values over the threads (x) of a row. All threads of the block must call it; `shared`
/// has 32 entries for each row.
template <typename S>
__device__ __forceinline__ Pair<S> sum_over_row(Pair<S> value, Pair<S>* shared) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value.a += __shfl_xor_sync(kWholeWarp, value.a, distance);
        value.b += __shfl_xor_sync(kWholeWarp, value.b, distance);
    }
    const int warps = static_cast<int>(blockDim.x / 32);
    if (warps == 1) return value;
    Pair<S>* row = shared + threadIdx.y * 32;
    __syncthreads();  // the previous sum has been read
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = value;
    __syncthreads();
    value = row[0];
    for (int warp = 1; warp < warps; ++warp) {
        value.a += row[warp].a;
        value.b += row[warp].b;
    }
    return value;
}

/// Turns x into x̂: first the mean (0 without `subtract_mean`), then the squares around it, both
/// from registers. `centered` gets x - mean, unless it is null.
template <typename T>
__device__ __forceinline__ Pair<StatOf<T>> normalize_row(StatOf<T> (&x)[8], const Tile& tile,
                                                         int64_t size, double eps,
                                                         Pair<StatOf<T>>* shared,
                                                         T* centered = nullptr,
                                                         bool subtract_mean = true) {
    using S = StatOf<T>;
    S mean = 0;
    if (subtract_mean) {  // the same for all threads of the block
        S sum = 0;
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += x[j];
        mean = sum_over_row<S>({sum, 0}, shared).a / static_cast<S>(size);
    }
    S squares = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        x[j] -= mean;
        squares += inside<T>(tile, j) ? x[j] * x[j] : S{0};
    }
    const S variance = sum_over_row<S>({squares, 0}, shared).a / static_cast<S>(size);
    const S rstd = S{1} / sqrt(variance + static_cast<S>(eps));
    if (centered) store_tile(centered, tile, x);
#pragma unroll
    for (int j = 0; j < 8; ++j) x[j] *= rstd;
    return {mean, rstd};
}

/// y = gamma x̂ + beta.
template <typename T>
__device__ __forceinline__ void store_affine(const T* gamma, const T* beta, T* y, const Tile& tile,
                                             const Tile& channels,
                                             const StatOf<T> (&normalized)[8]) {
    using S = StatOf<T>;
    constexpr int V = kPackSize<T>;
    S result[8];
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        S g[V], b[V];
        load_channels(gamma, channels, k, S{1}, g);
        load_channels(beta, channels, k, S{0}, b);
#pragma unroll
        for (int j = 0; j < V; ++j) result[k * V + j] = normalized[k * V + j] * g[j] + b[j];
    }
    store_tile(y, tile, result);
}

/// Sums of dgamma and dbeta for this thread's channels, over the rows so far.
template <typename S>
struct ChannelSums {
    S dgamma[8] = {};
    S dbeta[8] = {};
};

/// Turns dy into dx. `args` has dy, saved, gamma, beta and rstd. Without `subtract_mean`: RMSNorm.
template <LayerNormSave kSave, typename T, class Args>
__device__ __forceinline__ void backward_row(const Args& args, int64_t row, int64_t num_rows,
                                             const Tile& tile, const Tile& channels,
                                             StatOf<T> (&dy)[8], ChannelSums<StatOf<T>>& sums,
                                             Pair<StatOf<T>>* shared, bool subtract_mean = true) {
    using S = StatOf<T>;
    const auto size = static_cast<S>(args.hidden_size);
    constexpr int V = kPackSize<T>;
    const auto load_rstd = [&] { return row < num_rows ? args.rstd[row] : S{0}; };
    S centered_rstd = 0;  // read twice rather than held: 64 registers are few
    if constexpr (kSave == LayerNormSave::kCentered) centered_rstd = load_rstd();
    S normalized[8];
    Pair<S> means = {0, 0};
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {  // gamma and beta live for one pack: 64 registers are few
        S* x = normalized + k * V;
        S* g = dy + k * V;
        S gamma[V];
        load_pack(args.saved, tile, k, S{0}, x);
        if constexpr (kSave == LayerNormSave::kOutput) {
            S beta[V];
            load_channels(args.beta, channels, k, S{0}, beta);
#pragma unroll
            for (int j = 0; j < V; ++j) x[j] -= beta[j];
        }
        load_channels(args.gamma, channels, k, S{1}, gamma);
        load_pack(args.dy, tile, k, S{0}, g);
#pragma unroll
        for (int j = 0; j < V; ++j) {  // dy is 0 outside the row
            if constexpr (kSave == LayerNormSave::kOutput) x[j] = quotient(x[j], gamma[j]);
            if constexpr (kSave == LayerNormSave::kCentered) x[j] *= centered_rstd;
            sums.dgamma[k * V + j] += g[j] * x[j];
            sums.dbeta[k * V + j] += g[j];
            g[j] *= gamma[j];
            means.a += g[j];
            means.b += g[j] * x[j];
        }
    }
    means = sum_over_row(means, shared);
    if (!subtract_mean) means.a = 0;
    const S rstd = load_rstd();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        dy[j] = rstd * (dy[j] - means.a / size - normalized[j] * (means.b / size));
    }
}

/// Writes this block's partial: rows y = 1, 2, ... hand their sums to y = 0 one after another, in a
/// fixed order.
template <typename T>
__device__ __forceinline__ void store_partial(StatOf<T>* partials, int64_t size,
                                              ChannelSums<StatOf<T>>& sums) {
    __shared__ Pair<StatOf<T>> handed[kMaxRowThreads];
    for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            __syncthreads();
            if (static_cast<int>(threadIdx.y) == y) {
                handed[threadIdx.x] = {sums.dgamma[j], sums.dbeta[j]};
            }
            __syncthreads();
            if (threadIdx.y == 0) {
                sums.dgamma[j] += handed[threadIdx.x].a;
                sums.dbeta[j] += handed[threadIdx.x].b;
            }
        }
    }
    if (threadIdx.y != 0) return;
    const Tile channels = channel_tile(size);
    StatOf<T>* to = partials + int64_t{blockIdx.x} * 2 * size;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int64_t h = channels.pack_begin<T>(j / kPackSize<T>) + j % kPackSize<T>;
        if (h >= size) continue;
        to[h] = sums.dgamma[j];
        to[size + h] = sums.dbeta[j];
    }
}

}  // namespace kernels::cuda
