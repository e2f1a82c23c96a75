// Dropout on CUDA. Bytes per element: forward e read, e + m written; backward e + m read, e written
// (e = size of T; m = 1, 1/8 or 0). Bounds, the lower of: those bytes over the bandwidth, and
// Philox: 20 wide multiplications and 20 three-way xors per eight elements.
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

template <typename T, MaskKind kKind>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_forward_kernel(const T* x, T* y, uint8_t* mask, Drawing<StatOf<T>> drawing,
                           int64_t count, bool vectors) {
    const Tile tile = flat_tile(count, vectors);
    if (tile.begin >= count) return;
    StatOf<T> values[8];
    load_tile(x, tile, StatOf<T>{0}, values);
    const uint32_t bits = draw_bits<T>(drawing, tile);
    if constexpr (kKind != MaskKind::kNone) store_bits<T>(kKind, mask, tile, bits);
    scale_kept<T>(values, bits, drawing.scale);
    store_tile(y, tile, values);
}

template <typename T, MaskKind kKind>
__global__ void __launch_bounds__(kBlockThreads)
    dropout_backward_kernel(const T* dy, T* dx, const uint8_t* mask, Drawing<StatOf<T>> drawing,
                            int64_t count, bool vectors) {
    const Tile tile = flat_tile(count, vectors);
    if (tile.begin >= count) return;
    StatOf<T> values[8];
    load_tile(dy, tile, StatOf<T>{0}, values);
    uint32_t bits;
    if constexpr (kKind == MaskKind::kNone) {
        bits = draw_bits<T>(drawing, tile);
    } else {
        bits = load_bits<T>(kKind, mask, tile);
    }
    scale_kept<T>(values, bits, drawing.scale);
    store_tile(dx, tile, values);
}

template <typename T, MaskKind kKind>
void launch_forward(const DropoutForwardArgs<T>& a, int64_t count, CudaStream stream) {
    const auto drawing = make_drawing<StatOf<T>>(a.key, a.dropout_p);
    dropout_forward_kernel<T, kKind><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        a.x, a.y, a.mask, drawing, count, aligned_to_packs(a.x, a.y, a.mask));
}

template <typename T, MaskKind kKind>
void launch_backward(const DropoutBackwardArgs<T>& a, int64_t count, CudaStream stream) {
    const auto drawing = make_drawing<StatOf<T>>(a.key, a.dropout_p);
    dropout_backward_kernel<T, kKind><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        a.dy, a.dx, a.mask, drawing, count, aligned_to_packs(a.dy, a.dx, a.mask));
}

}  // namespace

template <typename T>
void launch_dropout_forward(const DropoutForwardArgs<T>& args, int64_t count, CudaStream stream) {
    if (count == 0) return;
    switch (args.mask_kind) {
        case MaskKind::kByte:
            launch_forward<T, MaskKind::kByte>(args, count, stream);
            break;
        case MaskKind::kBit:
            launch_forward<T, MaskKind::kBit>(args, count, stream);
            break;
        case MaskKind::kNone:
            launch_forward<T, MaskKind::kNone>(args, count, stream);
            break;
    }
    check_launch("dropout_forward");
}

template <typename T>
void launch_dropout_backward(const DropoutBackwardArgs<T>& args, int64_t count, CudaStream stream) {
    if (count == 0) return;
    switch (args.mask_kind) {
        case MaskKind::kByte:
            launch_backward<T, MaskKind::kByte>(args, count, stream);
            break;
        case MaskKind::kBit:
            launch_backward<T, MaskKind::kBit>(args, count, stream);
            break;
        case MaskKind::kNone:
            launch_backward<T, MaskKind::kNone>(args, count, stream);
            break;
    }
    check_launch("dropout_backward");
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
