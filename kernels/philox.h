#pragma once

#include "kernels/dropout.h"

#include <cstdint>

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011,
// §4.3), one counter at a time. CPU tails, references and CUDA kernels use these functions;
// philox-inl.h is the vectorized twin. Known answers of the paper's library are in
// tests/kernels/dropout_test.cpp.

#ifdef __CUDACC__
#define KERNELS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define KERNELS_HOST_DEVICE inline
#endif

namespace kernels {

inline constexpr uint32_t kPhiloxM0 = 0xD2511F53;  // multipliers
inline constexpr uint32_t kPhiloxM1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9;  // key increments per round
inline constexpr uint32_t kPhiloxW1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxRange = 1u << 16;  // values of one 16-bit number

/// The words of key and counter that are constant in a tensor.
struct PhiloxKey {
    uint32_t k0 = 0, k1 = 0;          // seed, rank
    uint32_t c1 = 0, c2 = 0, c3 = 0;  // step, layer, site
};

struct PhiloxWords {
    uint32_t x0 = 0, x1 = 0, x2 = 0, x3 = 0;
};

KERNELS_HOST_DEVICE PhiloxKey make_philox_key(const DropoutKey& key) {
    return {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32) ^ key.rank,
            key.step, key.layer, key.site};
}

/// With the round keys, each in the low half of a 64-bit lane, for vectors.
struct PhiloxSchedule {
    PhiloxKey key;
    uint64_t k0[kPhiloxRounds];
    uint64_t k1[kPhiloxRounds];
};

inline PhiloxSchedule make_philox_schedule(const DropoutKey& dropout_key) {
    PhiloxSchedule schedule = {make_philox_key(dropout_key), {}, {}};
    for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
        schedule.k0[round] = static_cast<uint32_t>(schedule.key.k0 + round * kPhiloxW0);
        schedule.k1[round] = static_cast<uint32_t>(schedule.key.k1 + round * kPhiloxW1);
    }
    return schedule;
}

KERNELS_HOST_DEVICE PhiloxWords philox4x32_10(PhiloxKey key, uint32_t c0) {
    PhiloxWords s = {c0, key.c1, key.c2, key.c3};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int round = 0; round < kPhiloxRounds; ++round) {
        const uint64_t p0 = uint64_t{kPhiloxM0} * s.x0;
        const uint64_t p1 = uint64_t{kPhiloxM1} * s.x2;
        s = {static_cast<uint32_t>(p1 >> 32) ^ s.x1 ^ key.k0, static_cast<uint32_t>(p1),
             static_cast<uint32_t>(p0 >> 32) ^ s.x3 ^ key.k1, static_cast<uint32_t>(p0)};
        key.k0 += kPhiloxW0;
        key.k1 += kPhiloxW1;
    }
    return s;
}

/// Keep bits of the eight elements of one counter: bit j is element 8 c0 + j.
KERNELS_HOST_DEVICE uint32_t keep_bits_8(PhiloxWords r, uint32_t threshold) {
    uint32_t bits = 0;
    bits |= static_cast<uint32_t>((r.x0 & 0xFFFF) < threshold) << 0;
    bits |= static_cast<uint32_t>((r.x0 >> 16) < threshold) << 1;
    bits |= static_cast<uint32_t>((r.x1 & 0xFFFF) < threshold) << 2;
    bits |= static_cast<uint32_t>((r.x1 >> 16) < threshold) << 3;
    bits |= static_cast<uint32_t>((r.x2 & 0xFFFF) < threshold) << 4;
    bits |= static_cast<uint32_t>((r.x2 >> 16) < threshold) << 5;
    bits |= static_cast<uint32_t>((r.x3 & 0xFFFF) < threshold) << 6;
    bits |= static_cast<uint32_t>((r.x3 >> 16) < threshold) << 7;
    return bits;
}

}  // namespace kernels
