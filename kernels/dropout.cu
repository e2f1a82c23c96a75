// Dropout on CUDA. Bytes per element: forward e read, e + m written; backward e + m read, e written
// (e = size of T; m = 1, e, 1/8 or 0). Elements per second at most, the lower of:
//     bytes    bandwidth / (2e + m)
//     Philox   multiprocessors * clock * lanes / 2.5: 10 rounds of 2 wide multiplications and 2
//              three-way xors per eight elements are 2.5 integer operations an element in each of
//              two pipes, `lanes` 32-bit results a clock wide (64 for compute capability 7 to 9)
// so 6.7e12 by Philox and, in half with bits, 1.2e12 by bytes on 132 multiprocessors at 1.98 GHz
// with 4.8 TB/s. Comparing, packing and scaling come on top; the bound leaves them out.
// tools/gpu_check/goals.py computes both.
// One warp per tile of 256 elements, one Philox counter per lane (cuda_tile.cuh).

#include "kernels/cuda_tile.cuh"
#include "kernels/dropout.h"

namespace kernels {
namespace {

using namespace cuda;

template <typename T>
__device__ __forceinline__ void scale_kept(StatOf<T> (&values)[8], uint32_t bits, StatOf<T> scale) {
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = bits >> j & 1 ? values[j] * scale : StatOf<T>{0};
}

/// One element of each lane at a time.
template <typename T>
__device__ __forceinline__ void scale_kept_elements(const T* from, T* to, const Tile& tile,
                                                    uint32_t bits, StatOf<T> scale) {
#pragma unroll 1
    for (int k = 0; k < 8; ++k) {
        if (!tile.holds<T, 1>(k)) continue;
        const int64_t i = tile.pack_begin<T, 1>(k);
        to[i] = from_compute<T>(bits >> k & 1 ? to_compute(from[i]) * scale : StatOf<T>{0});
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_forward_kernel(const T* x, T* y, uint8_t* mask, MaskKind kind,
                           Drawing<StatOf<T>> drawing, int64_t count) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    if (!takes_packs<V>(tile)) {
        const uint32_t bits = draw_bits<T, 1>(drawing, tile);
        if (kind != MaskKind::kNone) store_bits<T, 1>(kind, mask, tile, bits);
        return scale_kept_elements(x, y, tile, bits, drawing.scale);
    }
    StatOf<T> values[8];
    load_tile<T, V>(x, tile, StatOf<T>{0}, values);
    const uint32_t bits = draw_bits<T, V>(drawing, tile);
    if (kind != MaskKind::kNone) store_bits<T, V>(kind, mask, tile, bits);
    scale_kept<T>(values, bits, drawing.scale);
    store_tile<T, V>(y, tile, values);
}

template <typename T, int V>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_backward_kernel(const T* dy, T* dx, const uint8_t* mask, MaskKind kind,
                            Drawing<StatOf<T>> drawing, int64_t count) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    if (!takes_packs<V>(tile)) {
        const uint32_t bits = kept_bits<T, 1>(kind, mask, drawing, tile);
        return scale_kept_elements(dy, dx, tile, bits, drawing.scale);
    }
    const StoredTile<T, V> stored(dy, tile);
    const uint32_t bits = kept_bits<T, V>(kind, mask, drawing, tile);
    StatOf<T> values[8];
    stored.convert(values);
    scale_kept<T>(values, bits, drawing.scale);
    store_tile<T, V>(dx, tile, values);
}

}  // namespace

template <typename T>
void launch(const DropoutForwardArgs<T>& a, int64_t count, CudaStream stream) {
    if (count == 0) return;
    const auto kernel = aligned_to_packs(a.x, a.y, a.mask) ? dropout_forward_kernel<T, kPackSize<T>>
                                                           : dropout_forward_kernel<T, 1>;
    launch_kernel("dropout_forward", kernel, blocks_for(count), kBlockThreads, stream, a.x, a.y,
                  a.mask, a.mask_kind, make_drawing<StatOf<T>>(a.key, a.dropout_p), count);
}

template <typename T>
void launch(const DropoutBackwardArgs<T>& a, int64_t count, CudaStream stream) {
    if (count == 0) return;
    const auto kernel = aligned_to_packs(a.dy, a.dx, a.mask)
                            ? dropout_backward_kernel<T, kPackSize<T>>
                            : dropout_backward_kernel<T, 1>;
    launch_kernel("dropout_backward", kernel, blocks_for(count), kBlockThreads, stream, a.dy, a.dx,
                  a.mask, a.mask_kind, make_drawing<StatOf<T>>(a.key, a.dropout_p), count);
}

KERNELS_LAUNCH(DropoutForwardArgs)
KERNELS_LAUNCH(DropoutBackwardArgs)

}  // namespace kernels
