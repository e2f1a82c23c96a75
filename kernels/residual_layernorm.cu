// Dropout, residual and LayerNorm on CUDA. Bytes per element (e = size of T, m = mask): forward 2e
// read, e + m written (2e + m with the sum); backward 2e + m read (3e + m with dsum), 2e written.
// Bounds: those bytes over the bandwidth, and Philox as in dropout.cu.
// Rows are held in registers (layernorm_rows.cuh). A lane's eight elements are also one Philox
// counter.

#include "kernels/cuda_tile.cuh"
#include "kernels/layernorm_rows.cuh"
#include "kernels/residual_layernorm.h"

namespace kernels {
namespace {

using namespace cuda;

/// Rounded to the type in memory, as separate steps would store it.
template <typename T>
__device__ __forceinline__ StatOf<T> rounded(StatOf<T> value) {
    return to_compute(from_compute<T>(value));
}

template <typename T>
__global__ void __launch_bounds__(kMaxRowThreads)
    residual_layer_norm_forward_kernel(ResidualLayerNormForwardArgs<T> a,
                                       Drawing<StatOf<T>> drawing, int64_t num_rows) {
    using S = StatOf<T>;
    __shared__ Pair<S> shared[kMaxRowThreads];
    const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const Tile tile = row_tile(row, num_rows, a.hidden_size);
    S x[8], residual[8];
    load_tile(a.x, tile, S{0}, x);
    load_tile(a.residual, tile, S{0}, residual);
    if (a.bias) {
        S bias[8];
        load_tile(a.bias, row_tile(0, 1, a.hidden_size), S{0}, bias);
#pragma unroll
        for (int j = 0; j < 8; ++j) x[j] = rounded<T>(x[j] + bias[j]);
        if (a.biased) store_tile(a.biased, tile, x);
    }
    const uint32_t bits = a.dropout_p == 0 ? 0xFF : draw_bits<T>(drawing, tile);
    if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, tile, bits);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const S dropped = bits >> j & 1 ? rounded<T>(x[j] * drawing.scale) : S{0};
        x[j] = rounded<T>(residual[j] + dropped);
    }
    if (a.sum) store_tile(a.sum, tile, x);
    const Pair<S> stats = normalize_row<T>(x, tile, a.hidden_size, a.eps, shared, a.centered);
    if (row >= num_rows) return;
    if (threadIdx.x == 0) a.rstd[row] = stats.b;
    if (a.normalized) store_tile(a.normalized, tile, x);
    store_affine(a.gamma, a.beta, a.y, tile, channel_tile(a.hidden_size), x);
}

template <typename T>
__device__ __forceinline__ uint32_t kept_bits(const ResidualLayerNormBackwardArgs<T>& a,
                                              const Drawing<StatOf<T>>& drawing, const Tile& tile) {
    if (a.dropout_p == 0) return 0xFF;
    if (a.mask_kind == MaskKind::kNone) return draw_bits<T>(drawing, tile);
    return load_bits<T>(a.mask_kind, a.mask, tile);
}

template <typename T, LayerNormSave kSave>
__global__ void __launch_bounds__(kMaxRowThreads, kBackwardBlocks)
    residual_layer_norm_backward_kernel(ResidualLayerNormBackwardArgs<T> a,
                                        Drawing<StatOf<T>> drawing, int num_rows) {
    using S = StatOf<T>;
    __shared__ Pair<S> shared[kMaxRowThreads];
    const Tile channels = channel_tile(a.hidden_size);
    ChannelSums<S> sums;
    for (int first = first_row_of_block(); first < num_rows; first += rows_of_grid()) {
        const int row = first + static_cast<int>(threadIdx.y);
        const Tile tile = row_tile(row, num_rows, a.hidden_size);
        S gradient[8];
        backward_row<kSave, T>(a, row, num_rows, tile, channels, gradient, sums, shared);
        if (a.dsum) {
            S dsum[8];
            load_tile(a.dsum, tile, S{0}, dsum);
#pragma unroll
            for (int j = 0; j < 8; ++j) gradient[j] = rounded<T>(gradient[j]) + dsum[j];
        }
        store_tile(a.dresidual, tile, gradient);
        const uint32_t bits = kept_bits(a, drawing, tile);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            gradient[j] = bits >> j & 1 ? rounded<T>(gradient[j]) * drawing.scale : S{0};
        }
        store_tile(a.dx, tile, gradient);
    }
    if (a.partials) store_partial<T>(a.partials, a.hidden_size, sums);
}

template <typename T>
auto backward_kernel(LayerNormSave save) {
    switch (save) {
        case LayerNormSave::kOutput:
            return residual_layer_norm_backward_kernel<T, LayerNormSave::kOutput>;
        case LayerNormSave::kNormalized:
            return residual_layer_norm_backward_kernel<T, LayerNormSave::kNormalized>;
        case LayerNormSave::kCentered:
            return residual_layer_norm_backward_kernel<T, LayerNormSave::kCentered>;
    }
    throw std::invalid_argument("residual_layer_norm on CUDA: not what LayerNorm saves");
}

template <typename T, typename... Pointers>
void check_arguments(int64_t hidden_size, const Pointers*... pointers) {
    check_row_size(hidden_size);
    if (fits_registers<T>(hidden_size, pointers...)) return;
    throw std::invalid_argument("residual_layer_norm on CUDA: hidden_size " +
                                std::to_string(hidden_size) + " is no multiple of 8 up to " +
                                std::to_string(kMaxFusedHiddenSize) +
                                ", or a tensor does not start at a multiple of 16 bytes; call "
                                "dropout, addition and layer_norm one after another");
}

}  // namespace

static_assert(kMaxFusedHiddenSize == kMaxRegisterRow);

template <typename T>
void launch_residual_layer_norm_forward(const ResidualLayerNormForwardArgs<T>& a, int64_t num_rows,
                                        CudaStream stream) {
    check_arguments<T>(a.hidden_size, a.x, a.bias, a.residual, a.gamma, a.beta, a.y, a.sum,
                       a.biased, a.normalized, a.centered, a.mask);
    if (num_rows == 0) return;
    const dim3 block = block_of_rows(a.hidden_size, 128);
    launch("residual_layer_norm_forward", residual_layer_norm_forward_kernel<T>,
           blocks_of_rows(num_rows, block.y), block, stream, a,
           make_drawing<StatOf<T>>(a.key, a.dropout_p), num_rows);
}

template <typename T>
void launch_residual_layer_norm_backward(const ResidualLayerNormBackwardArgs<T>& a,
                                         int64_t num_rows, CudaStream stream) {
    check_arguments<T>(a.hidden_size, a.dy, a.dsum, a.saved, a.gamma, a.beta, a.mask, a.dx,
                       a.dresidual);
    const auto kernel = backward_kernel<T>(a.save);
    launch("residual_layer_norm_backward", kernel,
           static_cast<unsigned>(layer_norm_cuda_num_partials(num_rows)),
           block_of_rows(a.hidden_size, kMaxRowThreads), stream, a,
           make_drawing<StatOf<T>>(a.key, a.dropout_p), counted_rows(num_rows));
}

#define KERNELS_INSTANTIATE(T)                                                                    \
    template void launch_residual_layer_norm_forward<T>(const ResidualLayerNormForwardArgs<T>&,   \
                                                        int64_t, CudaStream);                     \
    template void launch_residual_layer_norm_backward<T>(const ResidualLayerNormBackwardArgs<T>&, \
                                                         int64_t, CudaStream);
KERNELS_INSTANTIATE(float)
KERNELS_INSTANTIATE(Half)
KERNELS_INSTANTIATE(BFloat16)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
