#pragma once

#include "kernels/types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Storage types to and from double, one value at a time: exact to_double, and from_double with a
// single rounding to nearest even. For references and tests; kernels convert whole vectors
// (simd-inl.h).

namespace kernels {

inline double to_double(float value) { return value; }
inline double to_double(double value) { return value; }
inline double to_double(BFloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
inline double to_double(Half value) {
    const int sign = value.bits >> 15;
    const int exponent = value.bits >> 10 & 0x1F;
    const int fraction = value.bits & 0x3FF;
    double size;
    if (exponent == 31) {
        size = fraction ? std::numeric_limits<double>::quiet_NaN()
                        : std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
        size = std::ldexp(fraction, -24);  // subnormal
    } else {
        size = std::ldexp(1024 + fraction, exponent - 25);
    }
    return sign ? -size : size;
}

/// |value| rounded to a multiple of 2^(its exponent - fraction_bits), or of 2^min_exponent when
/// tiny.
inline double round_to_grid(double value, int fraction_bits, int min_exponent) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int grid = std::max(std::ilogb(value) - fraction_bits, min_exponent);
    return std::ldexp(std::nearbyint(std::ldexp(value, -grid)), grid);
}

template <typename T>
T from_double(double value);

template <>
inline double from_double<double>(double value) {
    return value;
}
template <>
inline float from_double<float>(double value) {
    return static_cast<float>(value);
}
template <>
inline BFloat16 from_double<BFloat16>(double value) {
    if (std::isnan(value)) return {0x7FC0};
    const float rounded = static_cast<float>(round_to_grid(value, 7, -133));
    return {static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16)};
}
template <>
inline Half from_double<Half>(double value) {
    if (std::isnan(value)) return {0x7E00};
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::abs(round_to_grid(value, 10, -24));
    if (size >= 65520.0) return {static_cast<uint16_t>(sign | 0x7C00)};
    if (size < 0x1p-14) return {static_cast<uint16_t>(sign | static_cast<int>(size * 0x1p24))};
    const int exponent = std::ilogb(size);
    const int fraction = static_cast<int>(std::ldexp(size, 10 - exponent)) - 1024;
    return {static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction)};
}

}  // namespace kernels
