#pragma once

#include "kernels/cuda_tile.cuh"

#include <algorithm>
#include <cstdint>

// Passes over a matrix that may add up its columns. A warp owns 256 columns, eight a lane in packs
// (cuda_tile.cuh), and walks down the rows of its block's share; the sums wait in registers.
//
//     block b   256 columns from b / X on; share x = b % X of the rows, whose sums are partial x
//     warp w    rows x W + w, (x + X) W + w, ...   (W warps a block, X shares)
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

/// The block's sum of register threadIdx.y of each lane: with as many warps as registers, every
/// warp adds up one of them, in a fixed order.
template <typename S>
__device__ __forceinline__ S sum_over_warps(const S (&sums)[8]) {
    static_assert(kPassWarps == 8);
    __shared__ S handed[kPassWarps][8][32];
    __syncthreads();  // the previous sums have been read
#pragma unroll
    for (int j = 0; j < 8; ++j) handed[threadIdx.y][j][threadIdx.x] = sums[j];
    __syncthreads();
    S total = 0;
#pragma unroll
    for (int warp = 0; warp < kPassWarps; ++warp) {
        total += handed[warp][threadIdx.y][threadIdx.x];
    }
    return total;
}

template <typename T, int kSums, class Pass>
__global__ void __launch_bounds__(kBlockThreads, 2)
    column_pass_kernel(Pass pass, int64_t num_rows, int64_t size, unsigned num_shares) {
    using S = StatOf<T>;
    const int64_t share = blockIdx.x % num_shares;
    const int64_t column = int64_t{blockIdx.x / num_shares} * kTile;
    const int room = static_cast<int>(size - column);
    const int lane = static_cast<int>(threadIdx.x);
    const Tile columns = {column, room, lane};
    S sums[kSums > 0 ? kSums : 1][8] = {};
    for (int64_t row = share * kPassWarps + threadIdx.y; row < num_rows;
         row += int64_t{num_shares} * kPassWarps) {
        pass.tile(row, Tile{row * size + column, room, lane}, columns, sums);
    }
    if constexpr (kSums > 0) {
        constexpr int V = kPackSize<T>;
        const int j = static_cast<int>(threadIdx.y);
        const int64_t at = columns.pack_begin<T>(j / V) + j % V;
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
            const S total = sum_over_warps(sums[s]);
            S* const to = pass.sums_of(s, share);
            if (to && at < size) to[at] = total;
        }
    }
}

template <typename T, int kSums, class Pass>
__global__ void __launch_bounds__(kBlockThreads)
    column_pass_any_kernel(Pass pass, int64_t num_rows, int64_t size, unsigned num_shares) {
    using S = StatOf<T>;
    const int64_t share = blockIdx.x % num_shares;
    const int64_t column = int64_t{blockIdx.x / num_shares} * kBlockThreads + threadIdx.x;
    if (column >= size) return;
    S sums[kSums > 0 ? kSums : 1] = {};
    for (int64_t row = share; row < num_rows; row += num_shares) {
        pass.element(row, row * size + column, column, sums);
    }
    if constexpr (kSums > 0) {
        for (int s = 0; s < kSums; ++s) {
            S* const to = pass.sums_of(s, share);
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
    const auto shares = static_cast<unsigned>(std::max<int64_t>(1, num_shares));
    const auto blocks = [&](int columns) {
        const int64_t count = (size + columns - 1) / columns * int64_t{shares};
        if (count > kMaxBlocks) throw std::runtime_error("tensor too large for one CUDA launch");
        return static_cast<unsigned>(count);
    };
    if constexpr (sizeof(T) < 8) {
        if (in_packs && size % 8 == 0) {
            return launch_kernel(name, column_pass_kernel<T, kSums, Pass>, blocks(kTile),
                                 dim3(32, kPassWarps), stream, pass, num_rows, size, shares);
        }
    }
    launch_kernel(name, column_pass_any_kernel<T, kSums, Pass>, blocks(kBlockThreads),
                  kBlockThreads, stream, pass, num_rows, size, shares);
}

/// Shares of a pass without sums: four rows a warp, so that many blocks are there to hide latency.
inline int64_t shares_without_sums(int64_t num_rows) {
    return (num_rows + 4 * kPassWarps - 1) / (4 * kPassWarps);
}

}  // namespace kernels::cuda
