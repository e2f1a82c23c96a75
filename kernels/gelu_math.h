#pragma once

#include "kernels/inplace_gelu.h"
#include "kernels/inplace_gelu_constants.h"
#include "kernels/quick_math.h"

#include <cmath>

// GELU and its inverse, one value at a time: the arithmetic of the CUDA kernels, and the
// double-precision path of the CPU. It compiles for the host too, so that tests reach it without a
// GPU. Equations: inplace_gelu.h. Fit is gelu_fit::ErfFit or gelu_fit::TanhFit.

namespace kernels {

// --- pieces ------------------------------------------------------------------------------------

/// The polynomial in t by Horner's rule. The degree is a constant, so coefficients become
/// immediates.
template <int kDegree>
KERNELS_HOST_DEVICE float evaluate(const gelu_fit::Poly<kDegree>& p, float t) {
    const float d = t - p.centre;
    float value = p.c[kDegree];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int k = kDegree - 1; k >= 0; --k) value = fmaf(value, d, p.c[k]);
    return value;
}

template <int kDegree>
KERNELS_HOST_DEVICE double evaluate(const gelu_fit::Series<kDegree>& p, double t) {
    double value = p.c[kDegree];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int k = kDegree - 1; k >= 0; --k) value = fma(value, t, p.c[k]);
    return value;
}

template <class Fit>
inline constexpr bool kIsErf = false;
template <>
inline constexpr bool kIsErf<gelu_fit::ErfFit> = true;

inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kTanhScale =
    1.5957691216057307117;  // 2 sqrt(2 / pi): tanh(u) = 2 sigmoid(2u) - 1
inline constexpr double kTanhCubic = 0.044715;
inline constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
inline constexpr double kLn2 = 0.69314718055994530942;

/// s from where the right branch and the neighbourhood of x* have other polynomials, and from where
/// gelu' is 1: s = 2.5 is o = 6.08, where it differs by less than 3e-8.
inline constexpr float kNearLeft = 0.125f;
inline constexpr float kNearRight = 1.5f;
inline constexpr float kRightEnd = 2.5f;
inline constexpr float kLeftEnd = 5.5f;  // v of o = -1.3e-10

// --- float -------------------------------------------------------------------------------------

/// x Phi(x) = max(x, 0) - |x| Phi(-|x|). From |x| = 16 on Phi(-|x|) is below every float.
template <int kDegree>
KERNELS_HOST_DEVICE float erf_gelu(float x, const gelu_fit::Poly<kDegree>& mills) {
    constexpr float kHalfLog2E = static_cast<float>(0.5 / kLn2);
    const float size = fminf(fabsf(x), 16.0f);
    const float t = quick_reciprocal(fmaf(gelu_fit::ErfFit::kMillsSlope, size, 1.0f));
    const float tail = evaluate(mills, t) * quick_exp2(-kHalfLog2E * size * size);
    return fmaf(-size, tail, max_or_nan(x, 0.0f));
}

/// x sigmoid(z).
KERNELS_HOST_DEVICE float tanh_gelu(float x) {
    constexpr auto kLinear = static_cast<float>(-kTanhScale / kLn2);
    constexpr auto kCubic = static_cast<float>(-kTanhScale * kTanhCubic / kLn2);
    const float held = max_or_nan(x, -40.0f);  // also -inf, where x sigmoid would be inf * 0
    const float decay = quick_exp2(held * fmaf(kCubic * held, held, kLinear));
    return held * quick_reciprocal(1.0f + decay);
}

/// gelu(x). Near x* the error of o is multiplied by 1 / sqrt(o - o_min) in backward, so there
/// o = o_min + d^2 P(d) with o_min in two floats, which leaves only the last rounding. Every warp
/// holds numbers of both kinds, so both are computed.
template <class Fit>
KERNELS_HOST_DEVICE float gelu_value(float x) {
    constexpr auto minimum = Fit::kNearMinimum;
    const float d = (x - Fit::kXMinHigh) - Fit::kXMinLow;
    const float near = fmaf(d * d, evaluate(minimum, d), Fit::kOMinLow) + Fit::kOMinHigh;
    float far;
    if constexpr (kIsErf<Fit>) {
        constexpr auto mills = Fit::kMillsFloat;
        far = erf_gelu(x, mills);
    } else {
        far = tanh_gelu(x);
    }
    return fabsf(d) < 0.25f ? near : far;
}

/// gelu'(x) where x itself is kept.
template <class Fit>
KERNELS_HOST_DEVICE float gelu_derivative(float x) {
    constexpr float kEnd = kIsErf<Fit> ? 40.0f : 9.0f;  // from there on 0 or 1, and exp overflows
    if (x < -kEnd) return -0.0f;
    if (x > kEnd) return 1.0f;
    if constexpr (kIsErf<Fit>) {
        return fmaf(x * static_cast<float>(kInvSqrtTwoPi), expf(-0.5f * x * x),
                    0.5f * erfcf(-x * static_cast<float>(kSqrtHalf)));
    } else {
        const float square = x * x;
        const float z =
            static_cast<float>(kTanhScale) * x * fmaf(static_cast<float>(kTanhCubic), square, 1.0f);
        const float decay = expf(-z);
        const float sigmoid = 1.0f / (1.0f + decay);  // and 1 - sigmoid = decay sigmoid
        const float slope =
            static_cast<float>(kTanhScale) * fmaf(static_cast<float>(3 * kTanhCubic), square, 1.0f);
        return sigmoid * fmaf(x * slope, decay * sigmoid, 1.0f);
    }
}

/// gelu'(x) from o = gelu(x) and the branch (not 0: right), for float. A warp nearly always holds
/// numbers of every piece, so all three are computed.
template <class Fit>
KERNELS_HOST_DEVICE float gelu_derivative_from_output(float o, uint32_t right) {
    constexpr auto near = Fit::kNear;
    constexpr auto right_far = Fit::kRightFar;
    constexpr auto left_far = Fit::kLeftFar;
    // A stored o may be rounded below o_min.
    const float above = max_or_nan((o - Fit::kOMinHigh) - Fit::kOMinLow, 0.0f);
    const float size = quick_sqrt(above);
    const float s = select(right, size, -size);
    const float beyond = select(s >= kRightEnd, 1.0f, evaluate(right_far, s));
    const float value = select(s >= kNearRight, beyond, evaluate(near, s));
    // In the far tail the factor o makes any finite value right.
    const float v = quick_sqrt(-quick_log2(o * (1.0f / Fit::kOMinHigh)));
    const float tail = o * evaluate(left_far, min_or_nan(v, kLeftEnd));
    return select(s < -kNearLeft, tail, value);
}

// --- 16-bit types: float arithmetic without branches --------------------------------------------
// A warp nearly always holds both sides of x*, so a branch would run both. Errors are small against
// half an ulp of fp16, 2.4e-4 of the result.

/// gelu(x) to 3e-6 of its size.
template <class Fit>
KERNELS_HOST_DEVICE float gelu_value_16bit(float x) {
    if constexpr (kIsErf<Fit>) {
        constexpr auto mills = Fit::kMillsHalf;
        return erf_gelu(x, mills);
    } else {
        return tanh_gelu(x);
    }
}

/// gelu'(x) from o = gelu(x) and the branch (not 0: right), to 2e-4.
template <class Fit>
KERNELS_HOST_DEVICE float gelu_derivative_from_output_16bit(float o, uint32_t right) {
    constexpr auto right_fit = Fit::kRightHalf;
    constexpr auto left_fit = Fit::kLeftHalf;
    // log2(o_min / o) in the unit in which both branches end at kHalfEnd.
    constexpr float kUnit = Fit::kHalfEnd / kLeftEnd * (Fit::kHalfEnd / kLeftEnd);
    constexpr float kStart = kUnit * Fit::kLog2OMin;
    const float fall = fmaf(-kUnit, quick_log2(fabsf(o)), kStart);
    const float rise = o - Fit::kOMinHigh;
    // A stored o may be rounded below o_min.
    const float square = max_or_nan(select(right, rise, fall), 0.0f);
    const float t = min_or_nan(quick_sqrt(square), Fit::kHalfEnd);
    return select(right, evaluate(right_fit, t), o * evaluate(left_fit, t));
}

// --- double ------------------------------------------------------------------------------------

template <class Fit>
KERNELS_HOST_DEVICE double gelu_value(double x) {
    if (x < -40.0) return -0.0;
    const double d = (x - Fit::kXMin) - Fit::kXMinRest;
    if (fabs(d) < 1.0 / 32) {
        constexpr auto series = Fit::kForwardDouble;
        return fma(d * d, evaluate(series, d), Fit::kOMinRest) + Fit::kOMin;
    }
    if constexpr (kIsErf<Fit>) return 0.5 * x * erfc(-x * kSqrtHalf);
    return x / (1.0 + exp(-kTanhScale * x * (1.0 + kTanhCubic * x * x)));
}

template <class Fit>
KERNELS_HOST_DEVICE double gelu_derivative(double x) {
    if (x < -40.0) return -0.0;
    if constexpr (kIsErf<Fit>) {
        return 0.5 * erfc(-x * kSqrtHalf) + x * kInvSqrtTwoPi * exp(-0.5 * x * x);
    } else {
        const double e = exp(-kTanhScale * x * (1.0 + kTanhCubic * x * x));
        if (e > 1e300) return -0.0;
        const double sigmoid = 1.0 / (1.0 + e);
        const double slope = kTanhScale * (1.0 + 3.0 * kTanhCubic * x * x);
        return sigmoid * (1.0 + x * slope * e * sigmoid);
    }
}

/// x with gelu(x) = o on the branch: Newton steps inside a bracket. Left of x* they use the
/// logarithm, since o spans many orders of magnitude there.
template <class Fit>
KERNELS_HOST_DEVICE double invert_gelu(double o, bool right) {
    double low = right ? Fit::kXMin : -40.0;
    double high = right ? (o > 0.0 ? o + 1.0 : 1.0) : Fit::kXMin;
    double x = right ? (o > 1.0 ? o : 0.5) : -2.0;
    for (int step = 0; step < 200; ++step) {
        const double value = gelu_value<Fit>(x);
        const double miss = right ? value - o : log(value / o);
        const double slope = right ? gelu_derivative<Fit>(x) : gelu_derivative<Fit>(x) / value;
        // Right of x* gelu rises; left of it |gelu| rises too, and so does log(value / o).
        (miss > 0.0 ? high : low) = x;
        double next = x - miss / slope;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (fabs(next - x) <= 1e-16 * fabs(x)) return next;
        x = next;
    }
    return x;
}

/// gelu'(x) from o and the branch, for double. Close to x*, where Newton loses half of the digits,
/// it uses the expansion in signed s.
template <class Fit>
KERNELS_HOST_DEVICE double gelu_derivative_from_output(double o, uint32_t right) {
    if (o != o) return o;
    const double above = (o - Fit::kOMin) - Fit::kOMinRest;
    if (above <= 0.0) return 0.0;
    if (right && o > 40.0) return 1.0;
    if (!right && o >= -1e-300) return 0.0;
    const double s = right ? sqrt(above) : -sqrt(above);
    if (fabs(s) < 0.02) {
        constexpr auto series = Fit::kBackwardDouble;
        return evaluate(series, s);
    }
    return gelu_derivative<Fit>(invert_gelu<Fit>(o, right != 0));
}

}  // namespace kernels
