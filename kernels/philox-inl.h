// Dropout's keep bits from Philox4x32-10, 64 elements (8 counters) at a time, for the vector width
// being compiled. Included once per Highway target. The scalar twin is philox.h.

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
HWY_INLINE void draw_64(const PhiloxSchedule& schedule, uint32_t block,
                        uint16_t* HWY_RESTRICT numbers) {
    for (uint32_t i = 0; i < 8; ++i) {
        const PhiloxWords words = philox4x32_10(schedule.key, block * 8 + i);
        std::memcpy(numbers + 8 * i, &words, sizeof(words));
    }
}

#else

/// One Philox state per 64-bit lane, with its four words in the low halves of four vectors: a 32 x
/// 32 -> 64 multiplication then needs no shuffle. Multiplications ignore the high halves, which
/// hold garbage.
template <class V>
struct PhiloxLanes {
    V x0, x1, x2, x3;
};

template <class D, class V>
HWY_INLINE void philox_round(D, PhiloxLanes<V>& s, V k0, V k1) {
    const hn::Repartition<uint32_t, D> d32;
    const auto p0 = hn::MulEven(hn::BitCast(d32, s.x0), hn::Set(d32, kPhiloxM0));
    const auto p1 = hn::MulEven(hn::BitCast(d32, s.x2), hn::Set(d32, kPhiloxM1));
    s.x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), s.x1), k0);
    s.x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), s.x3), k1);
    s.x1 = p1;
    s.x3 = p0;
}

template <class D, class V>
HWY_INLINE void store_words(D d, const PhiloxLanes<V>& s, uint64_t* to) {
    const auto low = hn::Set(d, uint64_t{0xFFFFFFFFu});
    const auto words01 = hn::Or(hn::And(s.x0, low), hn::ShiftLeft<32>(s.x1));
    const auto words23 = hn::Or(hn::And(s.x2, low), hn::ShiftLeft<32>(s.x3));
    hn::StoreInterleaved2(words01, words23, d, to);
}

/// The 64 16-bit numbers of elements [64 block, 64 block + 64), in element order. It advances two
/// states at once, since one alone would wait for its multiplications.
HWY_INLINE void draw_64(const PhiloxSchedule& schedule, uint32_t block,
                        uint16_t* HWY_RESTRICT numbers) {
    const hn::CappedTag<uint64_t, 4> d;
    using V = hn::Vec<decltype(d)>;
    const int lanes = static_cast<int>(hn::Lanes(d));
    uint64_t* to = reinterpret_cast<uint64_t*>(numbers);
    const V c1 = hn::Set(d, uint64_t{schedule.key.c1});
    const V c2 = hn::Set(d, uint64_t{schedule.key.c2});
    const V c3 = hn::Set(d, uint64_t{schedule.key.c3});
    for (int first = 0; first < 8; first += 2 * lanes) {
        const uint64_t counter = uint64_t{block} * 8 + static_cast<uint64_t>(first);
        PhiloxLanes<V> s = {hn::Iota(d, counter), c1, c2, c3};
        PhiloxLanes<V> t = {hn::Iota(d, counter + static_cast<uint64_t>(lanes)), c1, c2, c3};
        for (int round = 0; round < kPhiloxRounds; ++round) {
            const V k0 = hn::Set(d, schedule.k0[round]);
            const V k1 = hn::Set(d, schedule.k1[round]);
            philox_round(d, s, k0, k1);
            philox_round(d, t, k0, k1);
        }
        store_words(d, s, to + 2 * first);
        store_words(d, t, to + 2 * (first + lanes));
    }
}

#endif

/// Keep bits of elements [64 block, 64 block + 64).
HWY_INLINE uint64_t keep_bits_64(const PhiloxSchedule& schedule, uint32_t threshold,
                                 uint32_t block) {
    if (threshold == 0) return 0;
    if (threshold == kPhiloxRange) return ~uint64_t{0};
    alignas(64) uint16_t numbers[64];
    draw_64(schedule, block, numbers);
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
