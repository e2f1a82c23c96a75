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
        store_mask_as<T>(args.mask_kind, args.mask, i, count, bits);
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
                                  : load_mask_as<T>(args.mask_kind, args.mask, i, count);
        scale_kept(args.dy + i, args.dx + i, count, bits, scale);
    }
}

/// Keep bits of the flat mask from any element on, read forwards: one word of 64 elements is held.
template <typename T>
class KeepBits {
public:
    /// `args` has mask, mask_kind, dropout_p and key; elements up to `end` exist.
    template <class Args>
    HWY_INLINE KeepBits(const Args& args, int64_t end)
        : mask_(args.mask),
          kind_(args.mask_kind),
          keeps_all_(args.dropout_p == 0),
          schedule_(make_philox_schedule(args.key)),
          threshold_(keep_threshold(args.dropout_p)),
          end_(end) {}

    /// Bit j is element first + j, for j < count <= 64.
    HWY_INLINE uint64_t at(int64_t first, int64_t count) {
        if (keeps_all_) return ~uint64_t{0};
        const int64_t block = first / 64;
        const int64_t shift = first % 64;
        const uint64_t low = word(block) >> shift;
        if (shift + count <= 64) return low;
        return low | word(block + 1) << (64 - shift);
    }

private:
    HWY_INLINE uint64_t word(int64_t block) {
        if (block == block_) return word_;
        const int64_t count = std::min<int64_t>(64, end_ - block * 64);
        if (count <= 0) return 0;  // past the last row
        block_ = block;
        word_ = kind_ == MaskKind::kNone
                    ? keep_bits_64(schedule_, threshold_, static_cast<uint32_t>(block))
                    : load_mask_as<T>(kind_, mask_, block * 64, count);
        return word_;
    }

    const uint8_t* mask_;
    MaskKind kind_;
    bool keeps_all_;
    PhiloxSchedule schedule_;
    uint32_t threshold_;
    int64_t end_;
    int64_t block_ = -1;
    uint64_t word_ = 0;
};

/// body(first, count, bits) for each 64 elements of a row that begins at element `offset`.
template <typename T, class Body>
HWY_INLINE void for_each_64(int64_t offset, int64_t size, KeepBits<T>& keep, const Body& body) {
    for (int64_t first = 0; first < size; first += 64) {
        const int64_t count = std::min<int64_t>(64, size - first);
        body(first, count, keep.at(offset + first, count));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
