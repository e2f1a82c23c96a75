// Dropout, residual and LayerNorm on CUDA. Bytes per element (e = size of T, m = mask): forward 2e
// read, e + m written (2e + m with the sum); backward 2e + m read (3e + m with dsum), 2e written.
// Bounds: those bytes over the bandwidth, and Philox as in dropout.cu.
// Rows in registers (layernorm_rows.cuh); a tile's eight elements a lane are also its share of
// Philox.

#include "kernels/cuda_tile.cuh"
#include "kernels/layernorm_rows.cuh"
#include "kernels/residual_layernorm.h"

namespace kernels {
namespace {

using namespace cuda;

/// As memory holds it: the steps one after another would have stored it.
template <typename T>
__device__ __forceinline__ StatOf<T> rounded(StatOf<T> value) {
    return to_compute(from_compute<T>(value));
}

template <typename T>
__global__ void __launch_bounds__(kMaxRowThreads)
    residual_layer_norm_forward_kernel(ResidualLayerNormForwardArgs<T> a,
                                       Drawing<StatOf<T>> drawing, int64_t num_rows, bool vectors) {
    using S = StatOf<T>;
    __shared__ Pair<S> shared[kMaxRowThreads];
    const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const Tile tile = row_tile(row, num_rows, a.hidden_size, vectors);
    S x[8], residual[8];
    load_tile(a.x, tile, S{0}, x);
    load_tile(a.residual, tile, S{0}, residual);
    const uint32_t bits = draw_bits<T>(drawing, tile);
    if (a.mask_kind != MaskKind::kNone) store_bits<T>(a.mask_kind, a.mask, tile, bits);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const S dropped = bits >> j & 1 ? rounded<T>(x[j] * drawing.scale) : S{0};
        x[j] = rounded<T>(residual[j] + dropped);
    }
    if (a.sum) store_tile(a.sum, tile, x);
    const Pair<S> stats = normalize_row<T>(x, tile, a.hidden_size, a.eps, shared);
    if (row >= num_rows) return;
    if (threadIdx.x == 0) a.rstd[row] = stats.b;
    if (a.normalized) store_tile(a.normalized, tile, x);
    store_affine(a.gamma, a.beta, a.y, tile, channel_tile(a.hidden_size, vectors), x);
}

template <typename T, LayerNormSave kSave>
__global__ void __launch_bounds__(kMaxRowThreads, kBackwardBlocks<T>)
    residual_layer_norm_backward_kernel(ResidualLayerNormBackwardArgs<T> a,
                                        Drawing<StatOf<T>> drawing, int64_t num_rows,
                                        bool vectors) {
    using S = StatOf<T>;
    __shared__ Pair<S> shared[kMaxRowThreads];
    const Tile channels = channel_tile(a.hidden_size, vectors);
    ChannelSums<S> sums;
    for (int64_t first = int64_t{blockIdx.x} * blockDim.y; first < num_rows;
         first += int64_t{gridDim.x} * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const Tile tile = row_tile(row, num_rows, a.hidden_size, vectors);
        S gradient[8];
        backward_row<kSave, T>(a, row, num_rows, tile, channels, gradient, sums, shared);
        if (a.dsum) {
            S dsum[8];
            load_tile(a.dsum, tile, S{0}, dsum);
#pragma unroll
            for (int j = 0; j < 8; ++j) gradient[j] = rounded<T>(gradient[j]) + dsum[j];
        }
        store_tile(a.dresidual, tile, gradient);
        const uint32_t bits = a.mask_kind == MaskKind::kNone
                                  ? draw_bits<T>(drawing, tile)
                                  : load_bits<T>(a.mask_kind, a.mask, tile);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            gradient[j] = bits >> j & 1 ? rounded<T>(gradient[j]) * drawing.scale : S{0};
        }
        store_tile(a.dx, tile, gradient);
    }
    if (a.partials) store_partial<T>(a.partials, a.hidden_size, sums);
}

void check_hidden_size(int64_t hidden_size) {
    check_row_size(hidden_size);
    if (hidden_size % 8 == 0 && hidden_size <= kMaxFusedHiddenSize) return;
    throw std::invalid_argument("residual_layer_norm on CUDA: hidden_size " +
                                std::to_string(hidden_size) + " is no multiple of 8 up to " +
                                std::to_string(kMaxFusedHiddenSize) +
                                "; call dropout, addition and layer_norm one after another");
}

}  // namespace

static_assert(kMaxFusedHiddenSize == kMaxRegisterRow);

template <typename T>
void launch_residual_layer_norm_forward(const ResidualLayerNormForwardArgs<T>& args,
                                        int64_t num_rows, CudaStream stream) {
    check_hidden_size(args.hidden_size);
    if (num_rows == 0) return;
    const dim3 block = block_of_rows(args.hidden_size, 128);
    const unsigned blocks = blocks_of_rows(num_rows, block.y);
    const bool vectors = aligned_to_packs(args.x, args.residual, args.gamma, args.beta, args.y,
                                          args.sum, args.normalized, args.mask);
    residual_layer_norm_forward_kernel<T><<<blocks, block, 0, stream>>>(
        args, make_drawing<StatOf<T>>(args.key, args.dropout_p), num_rows, vectors);
    check_launch("residual_layer_norm_forward");
}

template <typename T>
void launch_residual_layer_norm_backward(const ResidualLayerNormBackwardArgs<T>& args,
                                         int64_t num_rows, CudaStream stream) {
    check_hidden_size(args.hidden_size);
    const auto partials = static_cast<unsigned>(layer_norm_cuda_num_partials(num_rows));
    const dim3 block = block_of_rows(args.hidden_size, kMaxRowThreads);
    const auto drawing = make_drawing<StatOf<T>>(args.key, args.dropout_p);
    const bool vectors = aligned_to_packs(args.dy, args.dsum, args.saved, args.gamma, args.beta,
                                          args.mask, args.dx, args.dresidual);
    if (args.save == LayerNormSave::kOutput) {
        residual_layer_norm_backward_kernel<T, LayerNormSave::kOutput>
            <<<partials, block, 0, stream>>>(args, drawing, num_rows, vectors);
    } else {
        residual_layer_norm_backward_kernel<T, LayerNormSave::kNormalized>
            <<<partials, block, 0, stream>>>(args, drawing, num_rows, vectors);
    }
    check_launch("residual_layer_norm_backward");
}

#define KERNELS_INSTANTIATE(T)                                                                    \
    template void launch_residual_layer_norm_forward<T>(const ResidualLayerNormForwardArgs<T>&,   \
                                                        int64_t, CudaStream);                     \
    template void launch_residual_layer_norm_backward<T>(const ResidualLayerNormBackwardArgs<T>&, \
                                                         int64_t, CudaStream);
KERNELS_INSTANTIATE(float)
KERNELS_INSTANTIATE(double)
KERNELS_INSTANTIATE(Half)
KERNELS_INSTANTIATE(BFloat16)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
