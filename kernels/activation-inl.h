// ReLU and GELU with their derivatives, from the input, for the vector width being compiled.
// Included once per Highway target.

#if defined(KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_ACTIVATION_INL_H_
#undef KERNELS_ACTIVATION_INL_H_
#else
#define KERNELS_ACTIVATION_INL_H_
#endif

#include "kernels/column_passes.h"
#include "kernels/inplace_gelu-inl.h"

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// Calls function on each lane: double serves tests, and needs no speed.
template <class D, class Function>
HWY_INLINE hn::Vec<D> by_lanes(D d, hn::Vec<D> x, const Function& function) {
    HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
    return hn::Load(d, lanes);
}

/// gelu'(x) = Φ(x) + x φ(x). Φ(|x|) is gelu(|x|) / |x|, and near 0 its series, where the quotient
/// would enlarge the error of gelu; the series' next term is below 2e-8 at 1/2.
template <class D>
HWY_INLINE hn::Vec<D> erf_gelu_derivative(D d, hn::Vec<D> x) {
    const auto c = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
    const auto a = hn::Min(hn::Abs(x), c(15));  // beyond, φ underflows and inf · 0 is NaN
    const auto square = hn::Mul(a, a);
    auto series = hn::MulAdd(square, c(1.0 / 3456), c(-1.0 / 336));
    series = hn::MulAdd(series, square, c(1.0 / 40));
    series = hn::MulAdd(series, square, c(-1.0 / 6));
    series = hn::MulAdd(series, square, c(1));
    const auto near = hn::MulAdd(hn::Mul(series, a), c(kInvSqrtTwoPi), c(0.5));
    const auto is_near = hn::Lt(a, c(0.5));
    const auto safe = hn::IfThenElse(is_near, c(1), a);
    const auto far = hn::Div(gelu_vector<gelu_fit::ErfFit>(d, safe), safe);
    const auto phi = hn::Mul(hn::Exp(d, hn::Mul(square, c(-0.5))), c(kInvSqrtTwoPi));
    // For x < 0, Φ(x) + x φ(x) = 1 - (Φ(a) + a φ(a)).
    const auto right = hn::MulAdd(a, phi, hn::IfThenElse(is_near, near, far));
    const auto value = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(c(1), right), right);
    return hn::IfThenElse(hn::IsNaN(x), x, value);
}

/// σ (1 + x z' (1 - σ)) with z = 2 √(2/π) (x + 0.044715 x³) and σ = 1 / (1 + exp(-z)); 1 - σ is
/// exp(-z) σ, since the difference would cancel.
template <class D>
HWY_INLINE hn::Vec<D> tanh_gelu_derivative(D d, hn::Vec<D> x) {
    const auto c = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
    const auto held = hn::Clamp(x, c(-9), c(9));  // beyond, the derivative is 0 or 1 in float
    const auto square = hn::Mul(held, held);
    const auto z = hn::Mul(hn::Mul(held, c(kTanhScale)), hn::MulAdd(square, c(kTanhCubic), c(1)));
    const auto decay = hn::Exp(d, hn::Neg(z));
    const auto sigmoid = hn::Div(c(1), hn::Add(c(1), decay));
    const auto slope = hn::Mul(c(kTanhScale), hn::MulAdd(square, c(3 * kTanhCubic), c(1)));
    const auto inner = hn::Mul(hn::Mul(held, slope), hn::Mul(decay, sigmoid));
    const auto value = hn::Mul(sigmoid, hn::Add(c(1), inner));
    return hn::IfThenElse(hn::IsNaN(x), x, value);
}

template <Activation kActivation, class D>
HWY_INLINE hn::Vec<D> activated(D d, hn::Vec<D> x) {
    using Fit =
        std::conditional_t<kActivation == Activation::kGelu, gelu_fit::ErfFit, gelu_fit::TanhFit>;
    if constexpr (kActivation == Activation::kNone) {
        return x;
    } else if constexpr (kActivation == Activation::kRelu) {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays
    } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
        return by_lanes(d, x, [](double v) { return gelu_value<Fit>(v); });
    } else {
        return gelu_vector<Fit>(d, x);
    }
}

/// g act'(x).
template <Activation kActivation, class D>
HWY_INLINE hn::Vec<D> through_activation(D d, hn::Vec<D> g, hn::Vec<D> x) {
    using Fit =
        std::conditional_t<kActivation == Activation::kGelu, gelu_fit::ErfFit, gelu_fit::TanhFit>;
    if constexpr (kActivation == Activation::kNone) {
        return g;
    } else if constexpr (kActivation == Activation::kRelu) {
        return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), g);  // NaN lets g through, as in torch
    } else if constexpr (sizeof(hn::TFromD<D>) == 8) {
        return hn::Mul(g, by_lanes(d, x, [](double v) { return gelu_derivative<Fit>(v); }));
    } else if constexpr (kActivation == Activation::kGelu) {
        return hn::Mul(g, erf_gelu_derivative(d, x));
    } else {
        return hn::Mul(g, tanh_gelu_derivative(d, x));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
