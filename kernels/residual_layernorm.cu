// Dropout, residual and LayerNorm on CUDA. Bytes per element (e = size of T, m = mask): forward 2e
// read, e + m written (2e + m with the sum); backward 2e + m read (3e + m with dsum), 2e written.
// Bounds: those bytes over the bandwidth, and Philox as in dropout.cu.
// Rows are held in registers (layernorm_rows.cuh). A lane's eight elements of a tile are also one
// Philox counter.

#include "kernels/cuda_tile.cuh"
#include "kernels/layernorm_rows.cuh"
#include "kernels/residual_layernorm.h"

namespace kernels {
namespace {

using namespace cuda;

/// residual + dropout(x + bias) of one tile, in place of x.
template <typename T>
__device__ __forceinline__ void add_tile(const ResidualLayerNormForwardArgs<T>& a,
                                         const Drawing<StatOf<T>>& drawing, const Tile& tile,
                                         const Tile& channels, const StatOf<T> (&residual)[8],
                                         StatOf<T> (&x)[8]) {
    using S = StatOf<T>;
    if (a.bias) {
        S bias[8];
        load_tile(a.bias, channels, S{0}, bias);
#pragma unroll
        for (int j = 0; j < 8; ++j) x[j] = rounded<T>(x[j] + bias[j]);
        if (a.biased) store_tile(a.biased, tile, x);
    }
    const uint32_t bits = a.dropout_p == 0 ? 0xFF : draw_bits<T>(drawing, tile);
    if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, tile, bits);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const S dropped = bits >> j & 1 ? rounded<T>(x[j] * drawing.scale) : S{0};
        x[j] = residual[j] + dropped;
    }
    if (!a.residual.wide) {  // else the sum is float
#pragma unroll
        for (int j = 0; j < 8; ++j) x[j] = rounded<T>(x[j]);
    }
    if (a.sum) store_tile(a.sum, tile, x);
}

template <typename T, int kTiles, bool kBesideFloat>
__global__ void __launch_bounds__(kForwardThreads<kTiles>, kForwardBlocks<kTiles>)
    residual_layer_norm_forward_kernel(ResidualLayerNormForwardArgs<T> a,
                                       Drawing<StatOf<T>> drawing, RowFactors<StatOf<T>> factors,
                                       int64_t num_rows) {
    if constexpr (!kBesideFloat) take_as_narrow(a.residual, a.gamma, a.beta, a.sum);
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const auto tiles = row_tiles<kTiles>(row, num_rows, a.hidden_size);
    const auto channels = channel_tiles<kTiles>(a.hidden_size);
    S x[kTiles][8], residual[kTiles][8];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        load_tile(a.x, tiles.at(t), S{0}, x[t]);
        load_tile(a.residual, tiles.at(t), S{0}, residual[t]);
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        add_tile(a, drawing, tiles.at(t), channels.at(t), residual[t], x[t]);
    }
    Channels<T, kTiles> affine(a.gamma, a.beta, channels);
    const RowStatistics<S> stats = normalize_row<T, kTiles>(x, tiles, factors, shared, a.centered);
    if (row >= num_rows) return;
    if (threadIdx.x == 0) a.rstd[row] = stats.rstd;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
        if (a.normalized) store_tile(a.normalized, tiles.at(t), x[t]);
    }
    affine.store(x, tiles, a.y);
}

template <typename T, LayerNormSave kSave, bool kLongRow, bool kBesideFloat>
__global__ void __launch_bounds__(kBackwardThreads<kLongRow>, kBackwardBlocks<T, kLongRow>)
    residual_layer_norm_backward_kernel(ResidualLayerNormBackwardArgs<T> a, BackwardGrid grid,
                                        Drawing<StatOf<T>> drawing, StatOf<T> inverse_size,
                                        int num_rows) {
    if constexpr (!kBesideFloat) take_as_narrow(a.dsum, a.gamma, a.beta, a.dresidual);
    using S = StatOf<T>;
    __shared__ S shared[kSumEntries];
    const Tile channels = backward_channels(a.hidden_size);
    ChannelSums<S> sums;
    for (int first = first_row_of_block(); first < num_rows; first += rows_of_grid()) {
        const int row = first + static_cast<int>(threadIdx.y);
        const Tile tile = backward_tile(row, num_rows, a.hidden_size);
        BackwardRow<T> work(a, row, num_rows, tile);
        if constexpr (sizeof(T) == 2) prefetch_next_row(a, row, num_rows);  // fp32 did not gain
        const uint32_t bits =
            a.dropout_p == 0 ? 0xFF : kept_bits<T>(a.mask_kind, a.mask, drawing, tile);
        work.template differentiate<kSave>(a, channels, inverse_size, sums, shared);
        S(&gradient)[8] = work.dy;
        if (a.dsum) {
            S dsum[8];
            load_tile(a.dsum, tile, S{0}, dsum);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const S own = a.dresidual.wide ? gradient[j] : rounded<T>(gradient[j]);
                gradient[j] = own + dsum[j];
            }
        }
        store_tile(a.dresidual, tile, gradient);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            gradient[j] = bits >> j & 1 ? rounded<T>(gradient[j]) * drawing.scale : S{0};
        }
        store_tile(a.dx, tile, gradient);
    }
    if (a.partials) store_partial<T>(a.partials, grid, a.hidden_size, sums);
}

template <typename T, bool kLongRow, bool kBesideFloat>
auto backward_kernel(LayerNormSave save) {
    using enum LayerNormSave;
    switch (save) {
        case kOutput:
            return residual_layer_norm_backward_kernel<T, kOutput, kLongRow, kBesideFloat>;
        case kNormalized:
            return residual_layer_norm_backward_kernel<T, kNormalized, kLongRow, kBesideFloat>;
        case kCentered:
            return residual_layer_norm_backward_kernel<T, kCentered, kLongRow, kBesideFloat>;
    }
    throw std::invalid_argument("residual_layer_norm on CUDA: not what LayerNorm saves");
}

template <typename T, typename... Tensors>
void check_arguments(int64_t hidden_size, const Tensors&... tensors) {
    check_row_size(hidden_size);
    if (fits_registers<T>(hidden_size, tensors...)) return;
    throw std::invalid_argument("residual_layer_norm on CUDA: hidden_size " +
                                std::to_string(hidden_size) + " is no multiple of 8 up to " +
                                std::to_string(kMaxRegisterRow<T>) +
                                ", or a tensor does not start at a multiple of 16 bytes; call "
                                "dropout, addition and layer_norm one after another");
}

}  // namespace

static_assert(kMaxFusedHiddenSize == kMaxRegisterRow<float>);

template <typename T>
void launch(const ResidualLayerNormForwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    check_arguments<T>(a.hidden_size, a.x, a.bias, a.residual, a.gamma, a.beta, a.y, a.sum,
                       a.biased, a.normalized, a.centered, a.mask);
    if (num_rows == 0) return;
    const RowShape shape(a.hidden_size, kMaxForwardTiles<T>);
    const bool has_float = any_is_float(a.residual, a.gamma, a.beta, a.sum);
    with_float_tensors<T>(has_float, [&](auto beside_float) {
        shape.with_tiles<kMaxForwardTiles<T>>([&](auto tiles) {
            launch_kernel("residual_layer_norm_forward",
                          residual_layer_norm_forward_kernel<T, decltype(tiles)::value,
                                                             decltype(beside_float)::value>,
                          blocks_of_rows(num_rows, shape.block().y), shape.block(), stream, a,
                          make_drawing<StatOf<T>>(a.key, a.dropout_p),
                          row_factors<StatOf<T>>(a.hidden_size, a.eps), num_rows);
        });
    });
}

template <typename T>
void launch(const ResidualLayerNormBackwardArgs<T>& a, int64_t num_rows, CudaStream stream) {
    check_arguments<T>(a.hidden_size, a.dy, a.dsum, a.saved, a.gamma, a.beta, a.mask, a.dx,
                       a.dresidual);
    const char* const name = "residual_layer_norm_backward";
    const bool has_float = any_is_float(a.dsum, a.gamma, a.beta, a.dresidual);
    const int rows = counted_rows(num_rows);
    const RowShape shape(a.hidden_size, kBackwardTiles);
    const BackwardGrid grid = backward_grid<T>(name, num_rows, shape);
    clear_shared_partials(name, grid, a.partials, a.hidden_size, stream);
    with_float_tensors<T>(has_float, [&](auto beside_float) {
        with_row_length<T>(a.hidden_size, [&](auto long_row) {
            launch_kernel(
                name,
                backward_kernel<T, decltype(long_row)::value, decltype(beside_float)::value>(
                    a.save),
                grid.blocks, shape.block(), stream, a, grid,
                make_drawing<StatOf<T>>(a.key, a.dropout_p),
                row_factors<StatOf<T>>(a.hidden_size).inverse_size, rows);
        });
    });
}

KERNELS_LAUNCH(ResidualLayerNormForwardArgs)
KERNELS_LAUNCH(ResidualLayerNormBackwardArgs)

}  // namespace kernels
