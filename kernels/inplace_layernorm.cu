// LayerNorm on CUDA. Bytes per element: forward e read, e written; backward 2e read, e written (e =
// size of T), plus 16 H bytes of partial sums per partial. Bound: those bytes over the bandwidth.
// A row of whole units lies in the registers of a few warps (layernorm_rows.cuh): one read of every
// tensor, no scratch. Rows longer than 8192, of another length or at unaligned addresses are walked
// one element a thread and read again from cache.

#include "kernels/cuda_tile.cuh"
#include "kernels/inplace_layernorm.h"
#include "kernels/layernorm_rows.cuh"

#include <algorithm>

namespace kernels {
namespace {

using namespace cuda;

// --- forward -----------------------------------------------------------------------------------

/// One row per threadIdx.y.
template <typename T, int kTiles, bool kBesideFloat>
__global__ void __launch_bounds__(kForwardThreads<kTiles>, kForwardBlocks<kTiles>)
    layer_norm_forward_kernel(LayerNormForwardArgs<T> a, RowFactors<StatOf<T>> factors,
                              int64_t num_rows) {
    if constexpr (!kBesideFloat) take_as_narrow(a.x, a.gamma, a.beta);
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const auto tiles = row_tiles<kTiles>(row, num_rows, a.hidden_size);
    S x[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) load_tile(a.x, tiles.at(t), S{0}, x[t]);
    Channels<T, kTiles> channels(a.gamma, a.beta, channel_tiles<kTiles>(a.hidden_size));
    const RowStatistics<S> stats =
        normalize_row<T, kTiles>(x, tiles, factors, shared, nullptr, a.subtract_mean);
    if (row >= num_rows) return;
    if (threadIdx.x == 0) {
        if (a.mean) a.mean[row] = stats.mean;
        a.rstd[row] = stats.rstd;
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        if (a.normalized) store_tile(a.normalized, tiles.at(t), x[t]);
    }
    channels.store(x, tiles, a.y);
}

inline constexpr int kAnyRowThreads = 512;

/// Rows of any length: one block per row, x read three times (twice from cache).
template <typename T>
__global__ void __launch_bounds__(kAnyRowThreads)
    layer_norm_forward_any_kernel(LayerNormForwardArgs<T> a, RowFactors<StatOf<T>> factors) {
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const int64_t row = blockIdx.x;
    const int64_t size = a.hidden_size;
    const Source<T> x = a.x + row * size;
    S sum = 0;
    for (int64_t h = threadIdx.x; h < size; h += blockDim.x) sum += element(x, h);
    const S row_mean = sum_over_row(sum, shared) * factors.inverse_size;
    const S mean = a.subtract_mean ? row_mean : S{0};
    S squares = 0;
    for (int64_t h = threadIdx.x; h < size; h += blockDim.x) {
        const S difference = element(x, h) - mean;
        squares += difference * difference;
    }
    const S variance = sum_over_row(squares, shared) * factors.inverse_size;
    const S rstd = inverse_sqrt(variance + factors.eps);
    if (threadIdx.x == 0) {
        if (a.mean) a.mean[row] = mean;
        a.rstd[row] = rstd;
    }
    for (int64_t h = threadIdx.x; h < size; h += blockDim.x) {
        const S normalized = (element(x, h) - mean) * rstd;
        const S gamma = a.gamma ? element(a.gamma, h) : S{1};
        const S beta = a.beta ? element(a.beta, h) : S{0};
        if (a.normalized) a.normalized[row * size + h] = from_compute<T>(normalized);
        a.y[row * size + h] = from_compute<T>(normalized * gamma + beta);
    }
}

// --- backward ----------------------------------------------------------------------------------

/// Block b of B takes rows b R + y, (b + B) R + y, ... (R = blockDim.y rows at once), keeps the
/// sums of its columns in registers and writes its partial.
template <typename T, LayerNormSave kSave, bool kLongRow, bool kBesideFloat>
__global__ void __launch_bounds__(kBackwardThreads<kLongRow>, kBackwardBlocks<T, kLongRow>)
    layer_norm_backward_kernel(LayerNormBackwardArgs<T> a, BackwardGrid grid,
                               StatOf<T> inverse_size, int num_rows) {
    if constexpr (!kBesideFloat) take_as_narrow(a.gamma, a.beta, a.dx);
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const Tile channels = backward_channels(a.hidden_size);
    ChannelSums<S> sums;
    for (int first = first_row_of_block(); first < num_rows; first += rows_of_grid()) {
        const int row = first + static_cast<int>(threadIdx.y);
        const Tile tile = backward_tile(row, num_rows, a.hidden_size);
        BackwardRow<T> work(a, row, num_rows, tile);
        prefetch_next_row(a, row, num_rows);
        work.template differentiate<kSave>(a, channels, inverse_size, sums, shared,
                                           a.subtract_mean);
        if (a.dx) store_tile(a.dx, tile, work.dy);
    }
    if (a.partials) store_partial<T>(a.partials, grid, a.hidden_size, sums);
}

/// Rows of any length: block p takes rows p, p + P, ..., first a column a thread for its partial,
/// then row by row for dx, which may take the place of dy.
template <typename T, LayerNormSave kSave>
__global__ void __launch_bounds__(kAnyRowThreads)
    layer_norm_backward_any_kernel(LayerNormBackwardArgs<T> a, StatOf<T> inverse_size,
                                   int64_t num_rows) {
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const int64_t size = a.hidden_size;
    const auto gamma_at = [&](int64_t h) { return a.gamma ? element(a.gamma, h) : S{1}; };
    const auto normalized_at = [&](int64_t row, int64_t h) {
        const S saved = to_compute(a.saved[row * size + h]);
        if (kSave == LayerNormSave::kNormalized) return saved;
        return (saved - (a.beta ? element(a.beta, h) : S{0})) / gamma_at(h);
    };
    for (int64_t h = threadIdx.x; a.partials && h < size; h += blockDim.x) {
        S dgamma = 0, dbeta = 0;
        for (int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
            const S dy = to_compute(a.dy[row * size + h]);
            dgamma += dy * normalized_at(row, h);
            dbeta += dy;
        }
        S* partial = a.partials + int64_t{blockIdx.x} * 2 * size;
        partial[h] = dgamma;
        partial[size + h] = dbeta;
    }
    if (!a.dx) return;
    __syncthreads();  // all of dy has been read for the partial
    for (int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
        S sums[2] = {0, 0};
        for (int64_t h = threadIdx.x; h < size; h += blockDim.x) {
            const S g = to_compute(a.dy[row * size + h]) * gamma_at(h);
            sums[0] += g;
            sums[1] += g * normalized_at(row, h);
        }
        sum_over_row(sums, shared);
        if (!a.subtract_mean) sums[0] = 0;
        for (int64_t h = threadIdx.x; h < size; h += blockDim.x) {
            const S g = to_compute(a.dy[row * size + h]) * gamma_at(h);
            const S inner = g - (sums[0] + normalized_at(row, h) * sums[1]) * inverse_size;
            store_element(a.dx, row * size + h, a.rstd[row] * inner);
        }
    }
}

/// 32 columns and 8 shares of the partials per block; the shares are added in a fixed order.
template <typename T>
__global__ void layer_norm_reduce_kernel(const StatOf<T>* partials, int64_t num_partials,
                                         int64_t size, T* dgamma, T* dbeta) {
    using S = StatOf<T>;
    __shared__ S shares[2][8][33];
    const int64_t h = int64_t{blockIdx.x} * 32 + threadIdx.x;
    S sums[2] = {};
    for (int64_t p = threadIdx.y; h < size && p < num_partials; p += 8) {
        sums[0] += partials[p * 2 * size + h];
        sums[1] += partials[p * 2 * size + size + h];
    }
    shares[0][threadIdx.y][threadIdx.x] = sums[0];
    shares[1][threadIdx.y][threadIdx.x] = sums[1];
    __syncthreads();
    if (threadIdx.y > 1 || h >= size) return;
    S sum = 0;
    for (int share = 0; share < 8; ++share) sum += shares[threadIdx.y][share][threadIdx.x];
    T* to = threadIdx.y == 0 ? dgamma : dbeta;
    if (to) to[h] = from_compute<T>(sum);
}

/// Number of threads for one row of any length.
unsigned threads_of_any_row(int64_t size) {
    return static_cast<unsigned>(std::min<int64_t>((size + 31) / 32 * 32, kAnyRowThreads));
}

template <typename T, LayerNormSave kSave>
void launch_backward(const LayerNormBackwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    const StatOf<T> inverse_size = row_factors<StatOf<T>>(a.hidden_size).inverse_size;
    if constexpr (sizeof(T) < 8) {
        if (fits_registers<T>(a.hidden_size, a.dy, a.saved, a.gamma, a.beta, a.dx)) {
            const char* const name = "layer_norm_backward";
            const bool has_float = any_is_float(a.gamma, a.beta, a.dx);
            const int rows = counted_rows(num_rows);
            const RowShape shape(a.hidden_size, kBackwardTiles);
            const BackwardGrid grid = backward_grid<T>(name, num_rows, shape);
            clear_shared_partials(name, grid, a.partials, a.hidden_size, stream);
            return with_float_tensors<T>(has_float, [&](auto beside_float) {
                with_row_length<T>(a.hidden_size, [&](auto long_row) {
                    launch_kernel(name,
                                  layer_norm_backward_kernel<T, kSave, decltype(long_row)::value,
                                                             decltype(beside_float)::value>,
                                  grid.blocks, shape.block(), stream, a, grid, inverse_size, rows);
                });
            });
        }
    }
    launch_kernel("layer_norm_backward_any", layer_norm_backward_any_kernel<T, kSave>,
                  static_cast<unsigned>(layer_norm_cuda_num_partials(num_rows)),
                  threads_of_any_row(a.hidden_size), stream, a, inverse_size, num_rows);
}

}  // namespace

template <typename T>
void launch(const LayerNormForwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    check_row_size(a.hidden_size);
    if (num_rows == 0) return;
    const auto factors = row_factors<StatOf<T>>(a.hidden_size, a.eps);
    if constexpr (sizeof(T) < 8) {
        if (fits_registers<T>(a.hidden_size, a.x, a.gamma, a.beta, a.y, a.normalized)) {
            const RowShape shape(a.hidden_size, kMaxForwardTiles<T>);
            const bool has_float = any_is_float(a.x, a.gamma, a.beta);
            return with_float_tensors<T>(has_float, [&](auto beside_float) {
                shape.with_tiles<kMaxForwardTiles<T>>([&](auto tiles) {
                    launch_kernel("layer_norm_forward",
                                  layer_norm_forward_kernel<T, decltype(tiles)::value,
                                                            decltype(beside_float)::value>,
                                  blocks_of_rows(num_rows, shape.block().y), shape.block(), stream,
                                  a, factors, num_rows);
                });
            });
        }
    }
    launch_kernel("layer_norm_forward_any", layer_norm_forward_any_kernel<T>,
                  blocks_of_rows(num_rows, 1), threads_of_any_row(a.hidden_size), stream, a,
                  factors);
}

template <typename T>
void launch(const LayerNormBackwardArgs<T>& args, int64_t num_rows, CudaStream stream) {
    check_row_size(args.hidden_size);
    switch (args.save) {
        case LayerNormSave::kOutput:
            return launch_backward<T, LayerNormSave::kOutput>(args, num_rows, stream);
        case LayerNormSave::kNormalized:
            return launch_backward<T, LayerNormSave::kNormalized>(args, num_rows, stream);
        case LayerNormSave::kCentered:  // only residual_layer_norm keeps x - mean
            throw std::invalid_argument("layer_norm on CUDA: it does not take x - mean");
    }
}

template <typename T>
void launch(const LayerNormReduceArgs<T>& a, int64_t hidden_size, CudaStream stream) {
    const auto blocks = static_cast<unsigned>((hidden_size + 31) / 32);
    launch_kernel("layer_norm_reduce", layer_norm_reduce_kernel<T>, blocks, dim3(32, 8), stream,
                  a.partials, a.num_partials, hidden_size, a.dgamma, a.dbeta);
}

KERNELS_LAUNCH(LayerNormForwardArgs)
KERNELS_LAUNCH(LayerNormBackwardArgs)
KERNELS_LAUNCH(LayerNormReduceArgs)

}  // namespace kernels
