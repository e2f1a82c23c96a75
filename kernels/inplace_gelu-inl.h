// In-place GELU for vectors of float, for the vector width being compiled. Included once per
// Highway target.

#if defined(KERNELS_INPLACE_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_INPLACE_GELU_INL_H_
#undef KERNELS_INPLACE_GELU_INL_H_
#else
#define KERNELS_INPLACE_GELU_INL_H_
#endif

#include "kernels/gelu_math.h"
#include "kernels/simd-inl.h"

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// row[index] per lane, index in 0..7: one permute where a register holds the eight values.
template <class D, class VI>
HWY_INLINE hn::Vec<D> lookup_8(D d, const float* row, VI index) {
#if HWY_TARGET == HWY_AVX2 || (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86)
    return hn::TableLookupLanes(hn::LoadU(d, row), hn::IndicesFromVec(d, index));
#else
    return hn::GatherIndex(d, row, index);
#endif
}

/// Each lane's own polynomial of the table at t.
template <class D, class VI, int kDegree>
HWY_INLINE hn::Vec<D> evaluate_lanes(D d, const gelu_fit::LaneTable<kDegree>& table, VI index,
                                     hn::Vec<D> t) {
    const auto offset = hn::Sub(t, lookup_8(d, table.centre, index));
    auto value = lookup_8(d, table.c[kDegree], index);
    for (int k = kDegree - 1; k >= 0; --k) {
        value = hn::MulAdd(value, offset, lookup_8(d, table.c[k], index));
    }
    return value;
}

template <class D, int kDegree>
HWY_INLINE hn::Vec<D> evaluate_poly(D d, const gelu_fit::Poly<kDegree>& p, hn::Vec<D> t) {
    const auto offset = hn::Sub(t, hn::Set(d, p.centre));
    auto value = hn::Set(d, p.c[kDegree]);
    for (int k = kDegree - 1; k >= 0; --k) {
        value = hn::MulAdd(value, offset, hn::Set(d, p.c[k]));
    }
    return value;
}

/// -gelu(-a) for a >= 4 with a small relative error, where the table's error is only small in
/// itself.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> negative_tail(D d, hn::Vec<D> a) {
    const auto one = hn::Set(d, 1.0f);
    a = hn::Min(a, hn::Set(d, 15.0f));  // the result underflows before; inf would give inf * 0
    const auto square = hn::Mul(a, a);
    if constexpr (kIsErf<Fit>) {
        const auto decay = hn::Exp(d, hn::Mul(square, hn::Set(d, -0.5f)));
        return hn::Mul(decay, evaluate_poly(d, Fit::kTail, hn::Div(one, square)));
    } else {
        const auto cubic = hn::MulAdd(square, hn::Set(d, static_cast<float>(kTanhCubic)), one);
        const auto z = hn::Mul(hn::Mul(a, cubic), hn::Set(d, static_cast<float>(kTanhScale)));
        const auto decay = hn::Exp(d, hn::Neg(z));
        return hn::Div(hn::Mul(a, decay), hn::Add(one, decay));
    }
}

/// gelu(x) = max(x, 0) - g(|x|), g from eight polynomials on [0, 4) and the tail beyond.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> gelu_vector(D d, hn::Vec<D> x) {
    const hn::RebindToSigned<D> di;
    const auto a = hn::Abs(x);
    const auto piece = hn::ConvertTo(di, hn::Add(a, a));
    auto g = evaluate_lanes(d, Fit::kForward, hn::And(piece, hn::Set(di, 7)), a);
    const auto tail = hn::Ge(a, hn::Set(d, 4.0f));
    if (HWY_UNLIKELY(!hn::AllFalse(d, tail))) {
        g = hn::IfThenElse(tail, negative_tail<Fit>(d, a), g);
    }
    return hn::Sub(hn::Max(x, hn::Zero(d)), g);
}

/// gelu'(x) / o in v = sqrt(log(o_min / o)), for lanes of the left branch near 0.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> left_tail_derivative(D d, hn::Vec<D> o) {
    const auto size = hn::Max(hn::Abs(o), hn::Set(d, 1e-30f));
    const auto ratio = hn::Mul(size, hn::Set(d, 1.0f / -Fit::kOMinHigh));
    const auto v = hn::Sqrt(hn::Neg(hn::Log(d, hn::Min(ratio, hn::Set(d, 1.0f)))));
    return hn::Mul(o, evaluate_poly(d, Fit::kLeft, hn::Min(v, hn::Set(d, kLeftEnd))));
}

/// gelu'(x) from o = gelu(x) and the branch. Lane of the table: right of x* int(2 s); left of it by
/// the binade of o, (1/8, 1/4) -> 5, (1/16, 1/8) -> 6, (1/32, 1/16) -> 7; smaller |o| take the
/// tail.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> gelu_derivative_vector(D d, hn::Vec<D> o, hn::Mask<D> right) {
    const hn::RebindToSigned<D> di;
    const auto rise = hn::Sub(hn::Sub(o, hn::Set(d, Fit::kOMinHigh)), hn::Set(d, Fit::kOMinLow));
    const auto s = hn::Sqrt(hn::Max(hn::Zero(d), rise));  // a stored o may be rounded below o_min
    const auto right_lane = hn::Min(hn::ConvertTo(di, hn::Add(s, s)), hn::Set(di, 4));
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(di, hn::Abs(o)));
    const auto left_lane = hn::Min(hn::Sub(hn::Set(di, 129), exponent), hn::Set(di, 7));
    const auto lane = hn::IfThenElse(hn::RebindMask(di, right), right_lane, left_lane);
    auto value = evaluate_lanes(d, Fit::kBackward, hn::And(lane, hn::Set(di, 7)), s);
    const auto beyond = hn::And(right, hn::Ge(s, hn::Set(d, kRightEnd)));
    value = hn::IfThenElse(beyond, hn::Set(d, 1.0f), value);
    const auto tail = hn::AndNot(right, hn::Lt(hn::Abs(o), hn::Set(d, 1.0f / 32)));
    if (HWY_UNLIKELY(!hn::AllFalse(d, tail))) {
        value = hn::IfThenElse(tail, left_tail_derivative<Fit>(d, o), value);
    }
    return value;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
