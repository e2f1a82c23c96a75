#pragma once

#include "kernels/convert.h"
#include "kernels/types.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

// Shared parts of the kernel tests: tensors of any type made from doubles, and the size of an ulp.

namespace kernels::test {

/// Unit roundoff: half the distance between 1 and the next number.
template <typename T>
inline constexpr double kRoundoff = 0x1p-24;
template <>
inline constexpr double kRoundoff<double> = 0x1p-53;
template <>
inline constexpr double kRoundoff<Half> = 0x1p-11;
template <>
inline constexpr double kRoundoff<BFloat16> = 0x1p-8;

/// Smallest positive number: the largest error of rounding near zero.
template <typename T>
inline constexpr double kTiny = 0x1p-149;
template <>
inline constexpr double kTiny<double> = 0x1p-1074;
template <>
inline constexpr double kTiny<Half> = 0x1p-24;
template <>
inline constexpr double kTiny<BFloat16> = 0x1p-133;

/// Unit roundoff of the type that computes T.
template <typename T>
inline constexpr double kComputeRoundoff = kRoundoff<StatOf<T>>;

template <typename T>
std::vector<T> store(const std::vector<double>& values) {
    std::vector<T> stored(values.size());
    for (size_t i = 0; i < values.size(); ++i) stored[i] = from_double<T>(values[i]);
    return stored;
}

template <typename T>
std::vector<double> load(const std::vector<T>& stored) {
    std::vector<double> values(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) values[i] = to_double(stored[i]);
    return values;
}

/// Normal numbers as T stores them.
template <typename T>
std::vector<T> normal(int64_t count, uint32_t seed, double mean = 0, double deviation = 1) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> draw(mean, deviation);
    std::vector<T> values(static_cast<size_t>(count));
    for (T& value : values) value = from_double<T>(draw(generator));
    return values;
}

/// True if two tensors hold the same bytes.
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Element `index` of a mask of either kind.
inline bool mask_at(const std::vector<uint8_t>& mask, MaskKind kind, int64_t index) {
    if (kind == MaskKind::kByte) return mask[static_cast<size_t>(index)] == 1;
    return (mask[static_cast<size_t>(index / 8)] >> (index % 8) & 1) != 0;
}

/// Lengths around every boundary: vectors of 4, 8 and 16, mask bytes, blocks of 64.
inline const std::vector<int64_t> kLengths = {1,  2,  3,  7,   8,   9,   15,  16,  17,  31,   63,
                                              64, 65, 71, 100, 127, 128, 129, 191, 511, 1000, 4099};

}  // namespace kernels::test
