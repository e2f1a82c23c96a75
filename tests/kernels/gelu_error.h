#pragma once

#include "kernels/reference/inplace_gelu_reference.h"
#include "tests/kernels/kernel_test_support.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

// The error of a GELU backward that has the stored output only, and the smallest error it can have.
//
// Storing o = gelu(x) in T loses information, most near x*, where gelu' moves like sqrt(o - o_min).
// The floor is what a perfect inversion would still get wrong: max over x of
// |gelu'(invert(round_T(gelu(x)))) - gelu'(x)|. A backward is judged against 1.05 times that floor
// plus half an ulp of its result.

namespace kernels::test {

struct GeluError {
    double floor = 0;  // max error of exact inversion of the rounded output
    double excess =
        0;  // max over x of (error - half an ulp of the result), to be compared with the floor
    double rms = 0;  // error weighted with the density of N(0, 1)
    double worst_x = 0;
};

/// Half the distance between `value` and its neighbours in T.
template <typename T>
double half_ulp(double value) {
    if (value == 0) return kTiny<T> / 2;
    return std::max(std::ldexp(kRoundoff<T>, std::ilogb(value)), kTiny<T> / 2);
}

/// The x to test: all finite values of a 16-bit type up to 30; for other types a grid on [-8, 8],
/// numbers that approach x* and the ends of pieces from both sides down to the neighbours, and
/// random numbers.
template <typename T>
std::vector<T> gelu_points(GeluKind kind) {
    std::vector<T> points;
    if constexpr (sizeof(T) == 2) {
        for (uint32_t bits = 0; bits < 65536; ++bits) {
            const T x{static_cast<uint16_t>(bits)};
            if (std::abs(to_double(x)) <= 30) points.push_back(x);
        }
    } else {
        for (int i = -16000; i <= 16000; ++i) points.push_back(from_double<T>(i / 2000.0));
        const double x_min = reference::gelu_minimum_x(kind);
        for (int i = 0; i < 1200; ++i) {
            const double distance = std::exp2(-i / 1200.0 * (sizeof(T) == 4 ? 24 : 50));
            points.push_back(from_double<T>(x_min + distance));
            points.push_back(from_double<T>(x_min - distance));
        }
        // The ends of the fits' pieces down to their neighbours, and numbers off the grid.
        for (int i = 0; i < 20 * 50; ++i) {
            const double end = i / 50 / 2.0, distance = std::exp2(-i % 50);
            for (const double x : {end - distance, end + distance}) {
                points.push_back(from_double<T>(x));
                points.push_back(from_double<T>(-x));
            }
        }
        const auto random = normal<T>(20000, 1, 0, 2);
        points.insert(points.end(), random.begin(), random.end());
    }
    return points;
}

/// derivative(x) for each of `points`, from the backward under test.
template <typename T>
GeluError measure_gelu_error(GeluKind kind, const std::vector<T>& points,
                             const std::vector<T>& derivative) {
    GeluError error;
    const double x_min = reference::gelu_minimum_x(kind);
    double weight_sum = 0, weighted = 0;
    for (size_t i = 0; i < points.size(); ++i) {
        const double x = to_double(points[i]);
        const double truth = reference::gelu_derivative(kind, x);
        const double stored = to_double(from_double<T>(reference::gelu(kind, x)));
        const double inverted = reference::gelu_derivative_from_output(kind, stored, x >= x_min);
        error.floor = std::max(error.floor, std::abs(inverted - truth));
        const double miss = std::abs(to_double(derivative[i]) - truth);
        if (!(miss - half_ulp<T>(truth) <= error.excess)) {  // NaN counts
            error.excess = miss - half_ulp<T>(truth);
            error.worst_x = x;
        }
        // 16-bit values lie denser near zero: each stands for the width of its ulp.
        const double width = sizeof(T) == 2 ? half_ulp<T>(x) : (i <= 32000 ? 1.0 : 0.0);
        weight_sum += width * std::exp(-x * x / 2);
        weighted += width * std::exp(-x * x / 2) * miss * miss;
    }
    error.rms = std::sqrt(weighted / weight_sum);
    return error;
}

}  // namespace kernels::test
