// Loads, stores and masks that every CPU kernel needs, for the vector width being compiled.
// Included once per Highway target (hwy/foreach_target.h), hence no #pragma once.

#if defined(KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_SIMD_INL_H_
#undef KERNELS_SIMD_INL_H_
#else
#define KERNELS_SIMD_INL_H_
#endif

#include "kernels/convert.h"
#include "kernels/types.h"

#include <hwy/highway.h>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes of float (double for T = double), the type that T is computed in.
template <typename T>
using ComputeTag = hn::ScalableTag<StatOf<T>>;

// --- load_as, store_as: T in memory, the compute type in registers -------------------------------

template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const hn::TFromD<D>* from) {
    return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const BFloat16* from) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::LoadU(d16, &from->bits);
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const Half* from) {
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
    hn::StoreU(v, d, to);
}

/// Round to nearest even: add half an ulp less one, plus one when the kept part is odd. NaN would
/// turn into another number that way.
template <class D>
HWY_INLINE void store_as(D /*d*/, hn::Vec<D> v, BFloat16* to) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint16_t, D> d16;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
    const auto nan = hn::RebindMask(du, hn::IsNaN(v));
    const auto result = hn::IfThenElse(nan, hn::Set(du, 0x7FC00000u), rounded);
    const auto high = hn::BitCast(di, hn::ShiftRight<16>(result));
    hn::StoreU(hn::DemoteTo(d16, high), d16, &to->bits);
}

template <class D>
HWY_INLINE void store_as(D /*d*/, hn::Vec<D> v, Half* to) {
#if HWY_TARGET == HWY_SCALAR  // Highway's own conversion rounds towards zero here
    *to = from_double<Half>(hn::GetLane(v));
#else
    const hn::Rebind<hwy::float16_t, D> d16;
    hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(to));
#endif
}

/// Beside 16-bit types a tensor may be float.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_as(D d, Source<T> from) {
    if constexpr (sizeof(T) == 2) {
        if (from.wide) return load_as(d, from.wide);
    }
    return load_as(d, from.narrow);
}

template <class D, typename T>
HWY_INLINE void store_as(D d, hn::Vec<D> v, Target<T> to) {
    if constexpr (sizeof(T) == 2) {
        if (to.wide) return store_as(d, v, to.wide);
    }
    store_as(d, v, to.narrow);
}

/// The first `count` < Lanes(d) values, the others `fill`.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_part(D d, const T* from, int64_t count, hn::TFromD<D> fill) {
    HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(T)] = {};
    std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(T));
    const auto inside = hn::FirstN(d, static_cast<size_t>(count));
    return hn::IfThenElse(inside, load_as(d, padded), hn::Set(d, fill));
}

template <class D, typename T>
HWY_INLINE void store_part(D d, hn::Vec<D> v, T* to, int64_t count) {
    HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(T)];
    store_as(d, v, padded);
    std::memcpy(to, padded, static_cast<size_t>(count) * sizeof(T));
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> load_part(D d, Source<T> from, int64_t count, hn::TFromD<D> fill) {
    if constexpr (sizeof(T) == 2) {
        if (from.wide) return load_part(d, from.wide, count, fill);
    }
    return load_part(d, from.narrow, count, fill);
}

template <class D, typename T>
HWY_INLINE void store_part(D d, hn::Vec<D> v, Target<T> to, int64_t count) {
    if constexpr (sizeof(T) == 2) {
        if (to.wide) return store_part(d, v, to.wide, count);
    }
    store_part(d, v, to.narrow, count);
}

// --- masks: 64 elements are 64 bits of a word, element i its bit i -----------------------------

template <class D>
HWY_INLINE hn::Mask<D> lanes_from_bits(D d, uint64_t bits) {
    return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
}

template <class D>
HWY_INLINE uint64_t bits_from_lanes(D d, hn::Mask<D> mask) {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, mask, bytes);
    uint64_t bits;
    std::memcpy(&bits, bytes, 8);
    return bits;
}

HWY_INLINE void store_mask_bytes(uint64_t bits, uint8_t* to) {
    const hn::ScalableTag<uint8_t> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    for (int j = 0; j < 64; j += lanes) {
        const auto keep = lanes_from_bits(d, bits >> j);
        hn::StoreU(hn::IfThenElseZero(keep, hn::Set(d, uint8_t{1})), d, to + j);
    }
}

HWY_INLINE uint64_t load_mask_bytes(const uint8_t* from) {
    const hn::ScalableTag<uint8_t> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    uint64_t bits = 0;
    for (int j = 0; j < 64; j += lanes) {
        bits |= bits_from_lanes(d, hn::Ne(hn::LoadU(d, from + j), hn::Zero(d))) << j;
    }
    return bits;
}

/// Writes the mask of elements [begin, begin + count), count <= 64, begin a multiple of 64.
HWY_INLINE void store_mask(MaskKind kind, uint8_t* mask, int64_t begin, int64_t count,
                           uint64_t bits) {
    if (kind == MaskKind::kNone) return;
    if (count < 64) bits &= (uint64_t{1} << count) - 1;
    if (kind == MaskKind::kBit) {
        std::memcpy(mask + begin / 8, &bits, static_cast<size_t>(packed_bytes(count)));
    } else if (count == 64) {
        store_mask_bytes(bits, mask + begin);
    } else {
        uint8_t bytes[64];
        store_mask_bytes(bits, bytes);
        std::memcpy(mask + begin, bytes, static_cast<size_t>(count));
    }
}

/// Reads what store_mask wrote; bits past `count` are 0.
HWY_INLINE uint64_t load_mask(MaskKind kind, const uint8_t* mask, int64_t begin, int64_t count) {
    uint64_t bits = 0;
    if (kind == MaskKind::kBit) {
        std::memcpy(&bits, mask + begin / 8, static_cast<size_t>(packed_bytes(count)));
        return bits;
    }
    if (count == 64) return load_mask_bytes(mask + begin);
    uint8_t bytes[64] = {};
    std::memcpy(bytes, mask + begin, static_cast<size_t>(count));
    return load_mask_bytes(bytes);
}

/// store_mask of a tensor of T, whose mask may be stored as T.
template <typename T>
HWY_INLINE void store_mask_as(MaskKind kind, uint8_t* mask, int64_t begin, int64_t count,
                              uint64_t bits) {
    if (kind != MaskKind::kElement) return store_mask(kind, mask, begin, count, bits);
    const ComputeTag<T> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    T values[64];
    for (int j = 0; j < 64; j += lanes) {
        const auto keep = lanes_from_bits(d, bits >> j);
        store_as(d, hn::IfThenElseZero(keep, hn::Set(d, 1)), values + j);
    }
    std::memcpy(reinterpret_cast<T*>(mask) + begin, values, static_cast<size_t>(count) * sizeof(T));
}

/// Reads what store_mask_as wrote; bits past `count` are 0.
template <typename T>
HWY_INLINE uint64_t load_mask_as(MaskKind kind, const uint8_t* mask, int64_t begin, int64_t count) {
    if (kind != MaskKind::kElement) return load_mask(kind, mask, begin, count);
    const ComputeTag<T> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    T values[64] = {};
    std::memcpy(values, reinterpret_cast<const T*>(mask) + begin,
                static_cast<size_t>(count) * sizeof(T));
    uint64_t bits = 0;
    for (int j = 0; j < 64; j += lanes) {
        bits |= bits_from_lanes(d, hn::Ne(load_as(d, values + j), hn::Zero(d))) << j;
    }
    return bits;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
