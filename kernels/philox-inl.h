// Dropout's keep bits from Philox4x32-10, 64 elements (8 counters) at a time, for the vector width being
// compiled. Included once per Highway target. The scalar twin is philox.h.

#if defined(KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_PHILOX_INL_H_
#undef KERNELS_PHILOX_INL_H_
#else
#define KERNELS_PHILOX_INL_H_
#endif

#include "kernels/philox.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

/// The 64 16-bit numbers of elements [64 block, 64 block + 64), in element order.
HWY_INLINE void draw_64(const PhiloxKey& key, uint32_t block, uint16_t* HWY_RESTRICT numbers) {
    for (uint32_t i = 0; i < 8; ++i) {
        const PhiloxWords words = philox4x32_10(key, block * 8 + i);
        std::memcpy(numbers + 8 * i, &words, sizeof(words));
    }
}

#else

/// One Philox state per 64-bit lane, its four words in the low halves of four vectors: a 32 x 32 -> 64
/// multiplication then needs no shuffle. The high halves hold garbage, which multiplications ignore.
template <class V>
struct PhiloxLanes {
    V x0, x1, x2, x3;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE PhiloxLanes<V> philox_rounds(D d, PhiloxLanes<V> s, const PhiloxKey& key) {
    const hn::Repartition<uint32_t, D> d32;
    const auto m0 = hn::Set(d32, kPhiloxM0);
    const auto m1 = hn::Set(d32, kPhiloxM1);
    for (int round = 0; round < kPhiloxRounds; ++round) {
        const auto k0 = hn::Set(d, uint64_t{key.k0 + static_cast<uint32_t>(round) * kPhiloxW0});
        const auto k1 = hn::Set(d, uint64_t{key.k1 + static_cast<uint32_t>(round) * kPhiloxW1});
        const auto p0 = hn::MulEven(hn::BitCast(d32, s.x0), m0);
        const auto p1 = hn::MulEven(hn::BitCast(d32, s.x2), m1);
        s.x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), s.x1), k0);
        s.x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), s.x3), k1);
        s.x1 = p1;
        s.x3 = p0;
    }
    return s;
}

/// The 64 16-bit numbers of elements [64 block, 64 block + 64), in element order.
HWY_INLINE void draw_64(const PhiloxKey& key, uint32_t block, uint16_t* HWY_RESTRICT numbers) {
    const hn::CappedTag<uint64_t, 8> d;
    using V = hn::Vec<decltype(d)>;
    const int lanes = static_cast<int>(hn::Lanes(d));
    const auto low = hn::Set(d, uint64_t{0xFFFFFFFFu});
    uint64_t* to = reinterpret_cast<uint64_t*>(numbers);
    for (int first = 0; first < 8; first += lanes) {
        const uint64_t counter = uint64_t{block} * 8 + static_cast<uint64_t>(first);
        PhiloxLanes<V> s = {hn::Iota(d, counter), hn::Set(d, uint64_t{key.c1}),
                            hn::Set(d, uint64_t{key.c2}), hn::Set(d, uint64_t{key.c3})};
        s = philox_rounds(d, s, key);
        const auto words01 = hn::Or(hn::And(s.x0, low), hn::ShiftLeft<32>(s.x1));
        const auto words23 = hn::Or(hn::And(s.x2, low), hn::ShiftLeft<32>(s.x3));
        hn::StoreInterleaved2(words01, words23, d, to + 2 * first);
    }
}

#endif

/// Keep bits of elements [64 block, 64 block + 64).
HWY_INLINE uint64_t keep_bits_64(const PhiloxKey& key, uint32_t threshold, uint32_t block) {
    if (threshold == 0) return 0;
    if (threshold == kPhiloxRange) return ~uint64_t{0};
    alignas(64) uint16_t numbers[64];
    draw_64(key, block, numbers);
    const hn::CappedTag<uint16_t, 64> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    const auto limit = hn::Set(d, static_cast<uint16_t>(threshold));
    uint64_t bits = 0;
    for (int j = 0; j < 64; j += lanes) {
        bits |= bits_from_lanes(d, hn::Lt(hn::Load(d, numbers + j), limit)) << j;
    }
    return bits;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
