#pragma once

#include "kernels/cuda_tile.cuh"

#include <algorithm>
#include <cstdint>

// Passes over a matrix that may add up its columns. A warp owns 256 columns, eight a lane in packs
// (cuda_tile.cuh), and walks down the rows of its block's share; the sums wait in registers.
//
//     block (x, y)   x: a share of the rows, and the partial that gets its sums; y: 256 columns
//     warp w         rows x W + w, (x + X) W + w, ...   (W warps a block, X shares)
//
// A pass is a struct with two functions, which do the same to the eight elements of a lane and to
// one element:
//
//     tile(row, elements, columns, sums)    Tile of the row's elements, and of the columns alone
//     element(row, i, column, sums)         element i of the tensor
//
// Rows that are no whole units, unaligned addresses and double take the second: one thread per
// column.

namespace kernels::cuda {

inline constexpr int kPassWarps = kBlockThreads / 32;

/// Writes sums 0 to kSums - 1 of a partial [2, C]: the warps of a block hand theirs to warp 0 one
/// after another, in a fixed order.
template <int kSums, typename S>
__device__ __forceinline__ void add_warps(S (&sums)[kSums][8]) {
    __shared__ S handed[32];
    for (int warp = 1; warp < kPassWarps; ++warp) {
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                __syncthreads();
                if (static_cast<int>(threadIdx.y) == warp) handed[threadIdx.x] = sums[s][j];
                __syncthreads();
                if (threadIdx.y == 0) sums[s][j] += handed[threadIdx.x];
            }
        }
    }
}

template <typename T, int kSums, class Pass>
__global__ void __launch_bounds__(kBlockThreads, 2)
    column_pass_kernel(Pass pass, int64_t num_rows, int64_t size) {
    using S = StatOf<T>;
    const int64_t column = int64_t{blockIdx.y} * kTile;
    const int room = static_cast<int>(size - column);
    const int lane = static_cast<int>(threadIdx.x);
    const Tile columns = {column, room, lane};
    S sums[kSums > 0 ? kSums : 1][8] = {};
    for (int64_t row = int64_t{blockIdx.x} * kPassWarps + threadIdx.y; row < num_rows;
         row += int64_t{gridDim.x} * kPassWarps) {
        pass.tile(row, Tile{row * size + column, room, lane}, columns, sums);
    }
    if constexpr (kSums > 0) {
        add_warps(sums);
        if (threadIdx.y != 0) return;
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
            S* const to = pass.sums_of(s, blockIdx.x);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int64_t at = columns.pack_begin<T>(j / kPackSize<T>) + j % kPackSize<T>;
                if (to && at < size) to[at] = sums[s][j];
            }
        }
    }
}

template <typename T, int kSums, class Pass>
__global__ void __launch_bounds__(kBlockThreads)
    column_pass_any_kernel(Pass pass, int64_t num_rows, int64_t size) {
    using S = StatOf<T>;
    const int64_t column = int64_t{blockIdx.y} * kBlockThreads + threadIdx.x;
    if (column >= size) return;
    S sums[kSums > 0 ? kSums : 1] = {};
    for (int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
        pass.element(row, row * size + column, column, sums);
    }
    if constexpr (kSums > 0) {
        for (int s = 0; s < kSums; ++s) {
            S* const to = pass.sums_of(s, blockIdx.x);
            if (to) to[column] = sums[s];
        }
    }
}

/// `num_shares` shares of the rows: as many as there are partials, if there are sums.
/// `in_packs`: every tensor starts at a pack, and every row is whole units.
template <typename T, int kSums, class Pass>
void launch_column_pass(const char* name, const Pass& pass, int64_t num_rows, int64_t size,
                        int64_t num_shares, bool in_packs, CudaStream stream) {
    if (size == 0) return;
    const auto grid = [&](int columns) {
        return dim3(static_cast<unsigned>(std::max<int64_t>(1, num_shares)),
                    static_cast<unsigned>((size + columns - 1) / columns));
    };
    if constexpr (sizeof(T) < 8) {
        if (in_packs && size % 8 == 0) {
            return launch(name, column_pass_kernel<T, kSums, Pass>, grid(kTile),
                          dim3(32, kPassWarps), stream, pass, num_rows, size);
        }
    }
    launch(name, column_pass_any_kernel<T, kSums, Pass>, grid(kBlockThreads), kBlockThreads, stream,
           pass, num_rows, size);
}

/// Shares of a pass without sums: four rows a warp, so that many blocks are there to hide latency.
inline int64_t shares_without_sums(int64_t num_rows) {
    return (num_rows + 4 * kPassWarps - 1) / (4 * kPassWarps);
}

}  // namespace kernels::cuda
