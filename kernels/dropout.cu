// Dropout on CUDA. Bytes per element: forward e read, e + m written; backward e + m read, e written
// (e = size of T; m = 1, 1/8 or 0). Elements per second at most, the lower of:
//     bytes    bandwidth / (2e + m)
//     Philox   multiprocessors * clock * lanes / 2.5: 10 rounds of 2 wide multiplications and 2
//              three-way xors per eight elements are 2.5 integer operations an element in each of
//              two pipes, `lanes` 32-bit results a clock wide (64 for compute capability 7 to 9)
// so 6.7e12 by Philox and, in half with bits, 1.2e12 by bytes on 132 multiprocessors at 1.98 GHz
// with 4.8 TB/s. Comparing, packing and scaling come on top; the bound leaves them out.
// scripts/lib/goals.py computes both.
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

template <typename T>
__device__ __forceinline__ void scale_kept_unit(const T* from, T* to, const Unit& unit,
                                                uint32_t bits, StatOf<T> scale) {
#pragma unroll 1
    for (int j = 0; j < unit.count; ++j) {
        const StatOf<T> value = to_compute(from[unit.begin + j]);
        to[unit.begin + j] = from_compute<T>(bits >> j & 1 ? value * scale : StatOf<T>{0});
    }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_forward_kernel(const T* x, T* y, uint8_t* mask, MaskKind kind,
                           Drawing<StatOf<T>> drawing, int64_t count, bool aligned) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    if (!takes_packs(tile, aligned)) {
        const Unit unit = unit_of(tile);
        const uint32_t bits = draw_unit(drawing, unit);
        if (kind != MaskKind::kNone) store_unit_as<T>(kind, mask, unit, bits);
        return scale_kept_unit(x, y, unit, bits, drawing.scale);
    }
    StatOf<T> values[8];
    load_tile(x, tile, StatOf<T>{0}, values);
    const uint32_t bits = draw_bits<T>(drawing, tile);
    if (kind != MaskKind::kNone) store_bits<T>(kind, mask, tile, bits);
    scale_kept<T>(values, bits, drawing.scale);
    store_tile(y, tile, values);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_backward_kernel(const T* dy, T* dx, const uint8_t* mask, MaskKind kind,
                            Drawing<StatOf<T>> drawing, int64_t count, bool aligned) {
    const Tile tile = flat_tile(count);
    if (tile.room == 0) return;
    if (!takes_packs(tile, aligned)) {
        const Unit unit = unit_of(tile);
        const uint32_t bits =
            kind == MaskKind::kNone ? draw_unit(drawing, unit) : load_unit_as<T>(kind, mask, unit);
        return scale_kept_unit(dy, dx, unit, bits, drawing.scale);
    }
    StatOf<T> values[8];
    load_tile(dy, tile, StatOf<T>{0}, values);
    const uint32_t bits =
        kind == MaskKind::kNone ? draw_bits<T>(drawing, tile) : load_bits<T>(kind, mask, tile);
    scale_kept<T>(values, bits, drawing.scale);
    store_tile(dx, tile, values);
}

}  // namespace

template <typename T>
void launch_dropout_forward(const DropoutForwardArgs<T>& a, int64_t count, CudaStream stream) {
    if (count == 0) return;
    launch("dropout_forward", dropout_forward_kernel<T>, blocks_for(count), kBlockThreads, stream,
           a.x, a.y, a.mask, a.mask_kind, make_drawing<StatOf<T>>(a.key, a.dropout_p), count,
           aligned_to_packs(a.x, a.y, a.mask));
}

template <typename T>
void launch_dropout_backward(const DropoutBackwardArgs<T>& a, int64_t count, CudaStream stream) {
    if (count == 0) return;
    launch("dropout_backward", dropout_backward_kernel<T>, blocks_for(count), kBlockThreads, stream,
           a.dy, a.dx, a.mask, a.mask_kind, make_drawing<StatOf<T>>(a.key, a.dropout_p), count,
           aligned_to_packs(a.dy, a.dx, a.mask));
}

#define KERNELS_INSTANTIATE(T)                                                                  \
    template void launch_dropout_forward<T>(const DropoutForwardArgs<T>&, int64_t, CudaStream); \
    template void launch_dropout_backward<T>(const DropoutBackwardArgs<T>&, int64_t, CudaStream);
KERNELS_INSTANTIATE(float)
KERNELS_INSTANTIATE(double)
KERNELS_INSTANTIATE(Half)
KERNELS_INSTANTIATE(BFloat16)
#undef KERNELS_INSTANTIATE

}  // namespace kernels
