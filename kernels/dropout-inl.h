// Dropout of a range of elements for the vector width being compiled; softmax_dropout.cpp uses it
// too.
// Included once per Highway target.

#if defined(KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_DROPOUT_INL_H_
#undef KERNELS_DROPOUT_INL_H_
#else
#define KERNELS_DROPOUT_INL_H_
#endif

#include "kernels/dropout.h"
#include "kernels/philox-inl.h"
#include "kernels/simd-inl.h"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// to[j] = bit j ? from[j] * scale : 0, for 64 elements.
template <typename T>
HWY_INLINE void scale_kept_64(const T* from, T* to, uint64_t bits, StatOf<T> scale) {
    const ComputeTag<T> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    const auto factor = hn::Set(d, scale);
    for (int j = 0; j < 64; j += lanes) {
        const auto keep = lanes_from_bits(d, bits >> j);
        store_as(d, hn::IfThenElseZero(keep, hn::Mul(load_as(d, from + j), factor)), to + j);
    }
}

template <typename T>
HWY_INLINE void scale_kept(const T* from, T* to, int64_t count, uint64_t bits, StatOf<T> scale) {
    if (count == 64) return scale_kept_64(from, to, bits, scale);
    T padded[64] = {};
    std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(T));
    scale_kept_64(padded, padded, bits, scale);
    std::memcpy(to, padded, static_cast<size_t>(count) * sizeof(T));
}

template <typename T>
void dropout_forward_range(const DropoutForwardArgs<T>& args, int64_t begin, int64_t end) {
    const PhiloxSchedule schedule = make_philox_schedule(args.key);
    const uint32_t threshold = keep_threshold(args.dropout_p);
    const auto scale = static_cast<StatOf<T>>(keep_scale(threshold));
    for (int64_t i = begin; i < end; i += 64) {
        const int64_t count = std::min<int64_t>(64, end - i);
        const uint64_t bits = keep_bits_64(schedule, threshold, static_cast<uint32_t>(i / 64));
        store_mask(args.mask_kind, args.mask, i, count, bits);
        scale_kept(args.x + i, args.y + i, count, bits, scale);
    }
}

template <typename T>
void dropout_backward_range(const DropoutBackwardArgs<T>& args, int64_t begin, int64_t end) {
    const PhiloxSchedule schedule = make_philox_schedule(args.key);
    const uint32_t threshold = keep_threshold(args.dropout_p);
    const auto scale = static_cast<StatOf<T>>(keep_scale(threshold));
    for (int64_t i = begin; i < end; i += 64) {
        const int64_t count = std::min<int64_t>(64, end - i);
        const uint64_t bits = args.mask_kind == MaskKind::kNone
                                  ? keep_bits_64(schedule, threshold, static_cast<uint32_t>(i / 64))
                                  : load_mask(args.mask_kind, args.mask, i, count);
        scale_kept(args.dy + i, args.dx + i, count, bits, scale);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
