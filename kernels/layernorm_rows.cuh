#pragma once

#include "kernels/cuda_tile.cuh"
#include "kernels/inplace_layernorm.h"

#include <algorithm>

// Rows of LayerNorm in registers, so that every tensor is read once. In forward a warp holds up to
// four tiles of a row: up to 1024 elements a row is one warp, which waits for no other. In backward
// it holds one tile, because the sums of dgamma and dbeta stay in registers too, and more tiles
// would leave few warps to an SM. Threads (x) belong to one row, y counts the rows that a block
// works on at once. Used by inplace_layernorm.cu and residual_layernorm.cu.

namespace kernels::cuda {

inline constexpr int kForwardTiles = 4;  // of a warp, at most
inline constexpr int kBackwardTiles = 1;
inline constexpr int kBlockTiles = 16;   // of a block with several rows
inline constexpr int kMaxRowTiles = 32;  // of a row, which then has a block to itself

/// The largest block, whose threads have 128 registers in forward and 64 in backward. Rows of more
/// than kBlockTiles have kForwardTiles in a warp. double serves tests: 128 registers in backward
/// too, one tile a warp, and no longer rows.
template <int kTiles>
inline constexpr int kForwardThreads =
    (kTiles == kForwardTiles ? kMaxRowTiles : kBlockTiles) / kTiles * 32;
template <int kTiles>
inline constexpr int kForwardBlocks = kTiles == kForwardTiles ? 2 : 1;  // of an SM at once
template <bool kLongRow>                                                // more than kBlockTiles
inline constexpr int kBackwardThreads =
    (kLongRow ? kMaxRowTiles : kBlockTiles) / kBackwardTiles * 32;
template <typename T, bool kLongRow>
inline constexpr int kBackwardBlocks = kLongRow || sizeof(T) == 8 ? 1 : 2;
template <typename T>
inline constexpr int kMaxForwardTiles = sizeof(T) == 8 ? 1 : kForwardTiles;
template <typename T>
inline constexpr int64_t kMaxRegisterRow =
    int64_t{sizeof(T) == 8 ? kBlockTiles : kMaxRowTiles} * kTile;

/// True if rows are held in registers: whole units at aligned addresses.
template <typename T, typename... Tensors>
bool fits_registers(int64_t size, const Tensors&... tensors) {
    return size % 8 == 0 && size <= kMaxRegisterRow<T> && aligned_to_packs(tensors...);
}

inline void check_row_size(int64_t hidden_size) {
    if (hidden_size < 1) throw std::invalid_argument("layer_norm on CUDA: hidden_size is 0");
}

/// How a row of `size` elements lies in warps that hold up to `max_tiles` tiles.
struct RowShape {
    RowShape(int64_t size, int max_tiles) {
        const auto all_tiles = static_cast<int>((size + kTile - 1) / kTile);
        warps = (all_tiles + max_tiles - 1) / max_tiles;
        tiles = (all_tiles + warps - 1) / warps;
    }
    dim3 block() const {
        const int rows = std::max(1, kBlockTiles / tiles / warps);
        return {static_cast<unsigned>(32 * warps), static_cast<unsigned>(rows), 1};
    }

    int warps;  // of a row
    int tiles;  // of a warp

    /// Calls `launch` with the number of tiles, 1 to kMaxTiles, as a constant.
    template <int kMaxTiles, class Launch>
    void with_tiles(const Launch& launch) const {
        if constexpr (kMaxTiles > 1) {
            if (tiles < kMaxTiles) return with_tiles<kMaxTiles - 1>(launch);
        }
        launch(std::integral_constant<int, kMaxTiles>());
    }
};

/// Calls `launch` with a constant: whether a tensor is float beside 16-bit T. Kernels without such
/// tensors have no branches for them.
template <typename T, class Launch>
void with_float_tensors(bool has_float, const Launch& launch) {
    if constexpr (sizeof(T) == 2) {
        if (has_float) return launch(std::true_type());
    }
    launch(std::false_type());
}

/// Calls `launch` with a constant: whether a row has a block of the largest size to itself.
template <typename T, class Launch>
void with_row_length(int64_t size, const Launch& launch) {
    if constexpr (sizeof(T) < 8) {
        if (size > int64_t{kBlockTiles} * kTile) return launch(std::true_type());
    }
    launch(std::false_type());
}

/// The blocks of a backward kernel, and the partials that they write. Each has one of its own, but
/// where there are more blocks, block P + p also adds to partial p of P. Both add to zeros, and
/// a + b = b + a: the sum does not depend on who comes first.
struct BackwardGrid {
    unsigned blocks;
    unsigned partials;

    __device__ __forceinline__ unsigned partial() const {
        unsigned block = blockIdx.x;
#ifdef __CUDA_ARCH__  // read again: nvcc would compute with it early, and spill registers for that
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
#endif
        return block < partials ? block : block - partials;
    }
    __device__ __forceinline__ bool is_shared() const { return partial() + partials < blocks; }
};

/// In 16 bits two blocks for each multiprocessor, as many as run at once (kBackwardBlocks), where
/// that is more than there are partials and all of them get rows. On an H200 a build with 264
/// blocks and as many partials brought LayerNorm from 0.51 to 0.61 of a copy's speed and residual
/// LayerNorm from 0.64 to 0.73, but fp32 residual LayerNorm from 0.84 to 0.77. The additions to
/// shared partials are not timed (docs/dev/kernels.md).
template <typename T>
BackwardGrid backward_grid(const char* name, int64_t num_rows, const RowShape& shape) {
    const int64_t partials = layer_norm_cuda_num_partials(num_rows);
    int64_t blocks = partials;
    if constexpr (sizeof(T) == 2) {
        int device = 0, multiprocessors = 0;
        check_launch(name, cudaGetDevice(&device));
        check_launch(
            name, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
        const int64_t with_rows = blocks_of_rows(num_rows, shape.block().y);
        blocks =
            std::clamp(std::min<int64_t>(2 * multiprocessors, with_rows), partials, 2 * partials);
    }
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(partials)};
}

/// Zeros in the partials [P, 2, size] that two blocks share; `partials` may be null.
template <typename S>
void clear_shared_partials(const char* name, const BackwardGrid& grid, S* partials, int64_t size,
                           CudaStream stream) {
    const size_t shared = grid.blocks - grid.partials;
    if (partials == nullptr || shared == 0) return;
    check_launch(name, cudaMemsetAsync(partials, 0,
                                       shared * 2 * static_cast<size_t>(size) * sizeof(S), stream));
}

// Backward counts rows in 32 bits: its 64 registers have no room for 64-bit counters.

__device__ __forceinline__ int first_row_of_block() {
    return static_cast<int>(blockIdx.x * blockDim.y);
}
__device__ __forceinline__ int rows_of_grid() { return static_cast<int>(gridDim.x * blockDim.y); }

/// This warp's part of a row, as tiles. Empty for rows past the last; their threads stay for
/// __syncthreads.
template <int kTiles>
struct RowTiles {
    Tile first;

    __device__ __forceinline__ Tile at(int t) const {
        return {first.begin + t * kTile, first.room - t * kTile, first.lane};
    }
};
template <int kTiles>
__device__ __forceinline__ RowTiles<kTiles> row_tiles(int64_t row, int64_t num_rows, int64_t size) {
    const int offset = static_cast<int>(threadIdx.x / 32) * kTiles * kTile;
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (row >= num_rows) return {{0, 0, lane}};
    return {{row * size + offset, static_cast<int>(size) - offset, lane}};
}

/// The same elements of a vector of channels.
template <int kTiles>
__device__ __forceinline__ RowTiles<kTiles> channel_tiles(int64_t size) {
    return row_tiles<kTiles>(0, 1, size);
}

/// Pack k of gamma or beta; `absent` without the tensor.
template <typename T>
__device__ __forceinline__ void load_channels(const Source<T>& from, const Tile& tile, int k,
                                              StatOf<T> absent, StatOf<T>* out) {
    if (from) return load_pack(from, tile, k, absent, out);
#pragma unroll
    for (int j = 0; j < kPackSize<T>; ++j) out[j] = absent;
}
template <typename T>
__device__ __forceinline__ void load_channels(const Source<T>& from, const Tile& tile,
                                              StatOf<T> absent, StatOf<T> (&out)[8]) {
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        load_channels(from, tile, k, absent, out + k * kPackSize<T>);
    }
}

/// True if register j of this lane lies inside the row.
template <typename T>
__device__ __forceinline__ bool inside(const Tile& tile, int j) {
    return tile.holds<T>(j / kPackSize<T>);  // packs are inside or outside as a whole
}

// --- arithmetic of a row -----------------------------------------------------------------------

/// c / gamma to 2 ulp in two instructions; the exact division calls a subroutine.
__device__ __forceinline__ float quotient(float c, float gamma) { return __fdividef(c, gamma); }
__device__ __forceinline__ double quotient(double c, double gamma) { return c / gamma; }

/// 1 / sqrt(v), to 2 ulp in float.
__device__ __forceinline__ float inverse_sqrt(float v) { return rsqrtf(v); }
__device__ __forceinline__ double inverse_sqrt(double v) { return 1.0 / sqrt(v); }

/// What the host computes once for all rows.
template <typename S>
struct RowFactors {
    S inverse_size;
    S eps;
};
template <typename S>
RowFactors<S> row_factors(int64_t size, double eps = 0) {
    return {static_cast<S>(1.0 / static_cast<double>(size)), static_cast<S>(eps)};
}

/// Entries of `shared` below: the largest block, two values a warp.
inline constexpr int kSumEntries = 2 * kMaxRowTiles;

/// Sums each value over the threads (x) of a row. All threads of the block must call it.
template <int kValues, typename S>
__device__ __forceinline__ void sum_over_row(S (&values)[kValues], S* shared) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            values[i] += __shfl_xor_sync(kWholeWarp, values[i], distance);
        }
    }
    const int warps = static_cast<int>(blockDim.x / 32);
    if (warps == 1) return;
    S* row = shared + threadIdx.y * warps * kValues;
    __syncthreads();  // the previous sum has been read
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        if (threadIdx.x % 32 == 0) row[threadIdx.x / 32 * kValues + i] = values[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        values[i] = row[i];
        for (int warp = 1; warp < warps; ++warp) values[i] += row[warp * kValues + i];
    }
}
template <typename S>
__device__ __forceinline__ S sum_over_row(S value, S* shared) {
    S values[1] = {value};
    sum_over_row(values, shared);
    return values[0];
}

template <typename S>
struct RowStatistics {
    S mean, rstd;
};

/// Turns x into x̂: first the mean (0 without `subtract_mean`), then the squares around it, both
/// from registers. `centered` gets x - mean, unless it is null.
template <typename T, int kTiles>
__device__ __forceinline__ RowStatistics<StatOf<T>> normalize_row(
    StatOf<T> (&x)[kTiles][8], const RowTiles<kTiles>& tiles, const RowFactors<StatOf<T>>& factors,
    StatOf<T>* shared, T* centered = nullptr, bool subtract_mean = true) {
    using S = StatOf<T>;
    S mean = 0;
    if (subtract_mean) {  // the same for all threads of the block
        S sum = 0;
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
#pragma unroll
            for (int j = 0; j < 8; ++j) sum += x[t][j];
        }
        mean = sum_over_row(sum, shared) * factors.inverse_size;
    }
    S squares = 0;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            x[t][j] -= mean;
            squares += inside<T>(tiles.at(t), j) ? x[t][j] * x[t][j] : S{0};
        }
    }
    const S variance = sum_over_row(squares, shared) * factors.inverse_size;
    const S rstd = inverse_sqrt(variance + factors.eps);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        if (centered) store_tile(centered, tiles.at(t), x[t]);
#pragma unroll
        for (int j = 0; j < 8; ++j) x[t][j] *= rstd;
    }
    return {mean, rstd};
}

/// gamma and beta of this warp's part of a row, read before the sums of the row are waited for.
/// Floats of four tiles would not fit in 128 registers: their beta is read from cache at the end.
template <typename T, int kTiles>
struct Channels {
    static constexpr bool kHoldsBeta = sizeof(T) == 2 || kTiles < kForwardTiles;
    Source<T> from_beta;
    RowTiles<kTiles> channels;
    StatOf<T> gamma[kTiles][8], beta[kHoldsBeta ? kTiles : 1][8];

    __device__ __forceinline__ Channels(const Source<T>& from_gamma, const Source<T>& beta_tensor,
                                        const RowTiles<kTiles>& of_warp)
        : from_beta(beta_tensor), channels(of_warp) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            load_channels(from_gamma, channels.at(t), StatOf<T>{1}, gamma[t]);
            if constexpr (kHoldsBeta) {
                load_channels(from_beta, channels.at(t), StatOf<T>{0}, beta[t]);
            }
        }
    }
    /// y = gamma x̂ + beta.
    __device__ __forceinline__ void store(StatOf<T> (&normalized)[kTiles][8],
                                          const RowTiles<kTiles>& tiles, T* y) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            auto& shift = beta[kHoldsBeta ? t : 0];
            if constexpr (!kHoldsBeta) {
                load_channels(from_beta, channels.at(t), StatOf<T>{0}, shift);
            }
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                normalized[t][j] = normalized[t][j] * gamma[t][j] + shift[j];
            }
            store_tile(y, tiles.at(t), normalized[t]);
        }
    }
};

// --- backward ----------------------------------------------------------------------------------

/// Sums of dgamma and dbeta for this thread's channels, over the rows so far.
template <typename S>
struct ChannelSums {
    S dgamma[8] = {};
    S dbeta[8] = {};
};

/// This thread's part of a row, and of the channels.
__device__ __forceinline__ Tile backward_tile(int64_t row, int64_t num_rows, int64_t size) {
    return row_tiles<kBackwardTiles>(row, num_rows, size).first;
}
__device__ __forceinline__ Tile backward_channels(int64_t size) {
    return backward_tile(0, 1, size);
}

/// Asks for this thread's part of a row to be brought into L2.
template <typename T>
__device__ __forceinline__ void prefetch_tile([[maybe_unused]] const T* from,
                                              [[maybe_unused]] const Tile& tile) {
#ifdef __CUDA_ARCH__
#pragma unroll
    for (int k = 0; k < kPacks<T>; ++k) {
        if (!tile.holds<T>(k)) continue;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(
            __cvta_generic_to_global(from + tile.pack_begin<T>(k))));
    }
#endif
}

/// Asks for what the block's next round reads, while this round computes: a block has one row a
/// thread on its way, which is less than the memory's latency needs.
template <class Args>
__device__ __forceinline__ void prefetch_next_row(const Args& args, int row, int num_rows) {
    const Tile next = backward_tile(row + rows_of_grid(), num_rows, args.hidden_size);
    prefetch_tile(args.saved, next);
    prefetch_tile(args.dy, next);
}

/// What backward reads of a row; all of it is read before anything is computed.
template <typename T>
struct BackwardRow {
    StatOf<T> saved[8], dy[8];
    StatOf<T> rstd;

    template <class Args>
    __device__ __forceinline__ BackwardRow(const Args& args, int64_t row, int64_t num_rows,
                                           const Tile& tile) {
        load_tile(args.saved, tile, StatOf<T>{0}, saved);
        load_tile(args.dy, tile, StatOf<T>{0}, dy);
        rstd = row < num_rows ? args.rstd[row] : StatOf<T>{0};
    }

    /// Turns dy into dx. Without `subtract_mean`: RMSNorm.
    template <LayerNormSave kSave, class Args>
    __device__ __forceinline__ void differentiate(const Args& args, const Tile& channels,
                                                  StatOf<T> inverse_size,
                                                  ChannelSums<StatOf<T>>& sums, StatOf<T>* shared,
                                                  bool subtract_mean = true) {
        using S = StatOf<T>;
        constexpr int V = kPackSize<T>;
        S means[2] = {0, 0};  // of g = dy gamma and of g x̂
#pragma unroll
        for (int k = 0; k < kPacks<T>; ++k) {  // gamma and beta live for one pack
            S* x = saved + k * V;
            S* g = dy + k * V;
            S gamma[V];
            load_channels(args.gamma, channels, k, S{1}, gamma);
            if constexpr (kSave == LayerNormSave::kOutput) {
                S beta[V];
                load_channels(args.beta, channels, k, S{0}, beta);
#pragma unroll
                for (int j = 0; j < V; ++j) x[j] = quotient(x[j] - beta[j], gamma[j]);
            }
#pragma unroll
            for (int j = 0; j < V; ++j) {  // dy is 0 outside the row
                if constexpr (kSave == LayerNormSave::kCentered) x[j] *= rstd;
                sums.dgamma[k * V + j] += g[j] * x[j];
                sums.dbeta[k * V + j] += g[j];
                g[j] *= gamma[j];
                means[0] += g[j];
                means[1] += g[j] * x[j];
            }
        }
        sum_over_row(means, shared);
        const S mean = subtract_mean ? means[0] * inverse_size : S{0};
        const S slope = means[1] * inverse_size;
#pragma unroll
        for (int j = 0; j < 8; ++j) dy[j] = rstd * (dy[j] - mean - saved[j] * slope);
    }
};

/// The channel of register j.
template <typename T>
__device__ __forceinline__ int64_t channel(const Tile& channels, int j) {
    return channels.pack_begin<T>(j / kPackSize<T>) + j % kPackSize<T>;
}

/// Writes float sums of this thread's channels.
template <typename T>
__device__ __forceinline__ void store_sums(StatOf<T>* to, const Tile& channels,
                                           const StatOf<T> (&values)[8]) {
    if constexpr (sizeof(T) == 2) {
        store_tile(Target<T>{to}, channels, values);
    } else {
        store_tile(to, channels, values);
    }
}

/// Adds them to what is there, and maybe to another block's at the same time.
template <typename T>
__device__ __forceinline__ void add_sums(StatOf<T>* to, const Tile& channels,
                                         const StatOf<T> (&values)[8]) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        if (inside<T>(channels, j)) atomicAdd(to + channel<T>(channels, j), values[j]);
    }
}

/// Writes this block's partial, or adds to it: the sums of its rows, added in a fixed order. All
/// threads of the block must call it.
template <typename T>
__device__ __forceinline__ void store_partial(StatOf<T>* partials, const BackwardGrid& grid,
                                              int64_t size, const ChannelSums<StatOf<T>>& sums) {
    __shared__ StatOf<T> handed[kBlockTiles / kBackwardTiles][8][32];
    const int rows = static_cast<int>(blockDim.y), y = static_cast<int>(threadIdx.y);
    const int row_warps = static_cast<int>(blockDim.x / 32);
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const Tile channels = backward_channels(size);
    const bool is_shared = sizeof(T) == 2 && grid.is_shared();  // backward_grid
    StatOf<T>* to = partials + int64_t{grid.partial()} * 2 * size;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
        const auto& values = which == 0 ? sums.dgamma : sums.dbeta;
        if (rows == 1) {
            if (is_shared) {
                add_sums<T>(to + which * size, channels, values);
            } else {
                store_sums<T>(to + which * size, channels, values);
            }
            continue;
        }
        __syncthreads();  // the previous values have been read
#pragma unroll
        for (int j = 0; j < 8; ++j) handed[y * row_warps + warp][j][lane] = values[j];
        __syncthreads();
        for (int j = y; j < 8; j += rows) {
            StatOf<T> total = 0;
            for (int row = 0; row < rows; ++row) {
                total += handed[row * row_warps + warp][j][lane];
            }
            const int64_t h = channel<T>(channels, j);
            if (h >= size) continue;
            StatOf<T>* const entry = to + which * size + h;
            if (is_shared) {
                atomicAdd(entry, total);
            } else {
                *entry = total;
            }
        }
    }
}

}  // namespace kernels::cuda
