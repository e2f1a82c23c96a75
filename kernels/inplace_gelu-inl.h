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

/// row[index % 8] per lane: one permute if a register holds the eight values. They are loaded
/// separately: a permute that reads its values from memory takes twice the time (Zen 3).
template <class D, class VI>
HWY_INLINE hn::Vec<D> lookup_8(D d, const float* row, VI index) {
#if HWY_TARGET == HWY_AVX2 || (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86)
    auto values = hn::LoadU(d, row);
    __asm__("" : "+x"(values.raw));
    return hn::TableLookupLanes(values, hn::IndicesFromVec(d, index));
#else
    return hn::GatherIndex(d, row, index);
#endif
}

/// Evaluates each lane's own polynomial of the table at t. Horner's rule in u^2 on pairs of terms
/// makes the dependency chain half as long as in u. The last two terms go one by one, since the
/// final addition to the constant term decides the error.
template <class D, class VI, int kDegree>
HWY_INLINE hn::Vec<D> evaluate_lanes(D d, const gelu_fit::LaneTable<kDegree>& table, VI index,
                                     hn::Vec<D> t) {
    static_assert(kDegree % 2 == 1);
    const auto u = hn::Sub(t, lookup_8(d, table.centre, index));
    const auto u2 = hn::Mul(u, u);
    const auto c = [&](int k) HWY_ATTR { return lookup_8(d, table.c[k], index); };
    auto value = hn::MulAdd(c(kDegree), u, c(kDegree - 1));
    for (int k = kDegree - 3; k >= 2; k -= 2) {
        value = hn::MulAdd(value, u2, hn::MulAdd(c(k + 1), u, c(k)));
    }
    return hn::MulAdd(hn::MulAdd(value, u, c(1)), u, c(0));
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

/// -gelu(-a) for a >= 4 with a small relative error; the table has only a small absolute error.
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

/// int(2 t) + first for small t >= 0, modulo 8. Adding 1.5 2^22 rounds to halves, so the last bits
/// of the mantissa count the halves. Subtracting exactly 1/4 from t first makes this round down;
/// with less, a t just below 4 would count as 8. Only a multiple of 1/2 itself may count as one
/// less: two pieces meet there and both fit. Converting to integers costs more, since it also
/// handles overflow.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> count_halves(D d, hn::Vec<D> t, int first) {
    const hn::RebindToSigned<D> di;
    const auto lowered = hn::Sub(t, hn::Set(d, 0.25f));
    const auto sum = hn::Add(lowered, hn::Set(d, 0x1.8p22f + 0.5f * static_cast<float>(first)));
    return hn::And(hn::BitCast(di, sum), hn::Set(di, 7));
}

/// gelu(x) = max(x, 0) - g(|x|), g from eight polynomials on [0, 4) and the tail beyond.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> gelu_vector(D d, hn::Vec<D> x) {
    const auto a = hn::Abs(x);
    auto g = evaluate_lanes(d, Fit::kForward, count_halves(d, a, 0), a);
    const auto tail = hn::Ge(a, hn::Set(d, 4.0f));
    if (HWY_UNLIKELY(!hn::AllFalse(d, tail))) {
        g = hn::IfThenElse(tail, negative_tail<Fit>(d, a), g);
    }
    return hn::Sub(hn::Max(x, hn::Zero(d)), g);
}

/// gelu'(x) / o as a function of v = sqrt(log2(o_min / o)), for lanes of the left branch near 0.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> far_left_derivative(D d, hn::Vec<D> o) {
    const auto size = hn::Max(hn::Abs(o), hn::Set(d, 1e-30f));
    const auto ratio = hn::Mul(size, hn::Set(d, 1.0f / -Fit::kOMinHigh));
    const auto v = hn::Sqrt(hn::Neg(hn::Log2(d, hn::Min(ratio, hn::Set(d, 1.0f)))));
    return hn::Mul(o, evaluate_poly(d, Fit::kLeftFar, hn::Min(v, hn::Set(d, kLeftEnd))));
}

/// gelu'(x) on the left branch where |o| < 1/32: a polynomial for each binade, down to 2^-13.
template <class Fit, class D>
HWY_INLINE hn::Vec<D> left_derivative(D d, hn::Vec<D> o) {
    const hn::RebindToSigned<D> di;
    const auto size = hn::Abs(o);
    const auto bits = hn::BitCast(di, size);
    const auto binade = hn::And(hn::ShiftRight<23>(bits), hn::Set(di, 7));
    const auto mantissa = hn::Or(hn::And(bits, hn::Set(di, 0x7FFFFF)), hn::Set(di, 0x3F800000));
    auto value = hn::Mul(o, evaluate_lanes(d, Fit::kLeftBinades, binade, hn::BitCast(d, mantissa)));
    const auto far = hn::Lt(size, hn::Set(d, 0x1p-13f));
    if (HWY_UNLIKELY(!hn::AllFalse(d, far))) {
        value = hn::IfThenElse(far, far_left_derivative<Fit>(d, o), value);
    }
    return value;
}

/// Which polynomial gives gelu'(x), and its argument.
template <class D>
struct BackwardPlace {
    hn::Vec<D> s;
    hn::Vec<hn::RebindToSigned<D>> lane;
    hn::Mask<D> tail;  // left_derivative() instead
};

/// Chooses the polynomial from o = gelu(x) and the branch. Its lane in the table: right of x*,
/// int(2 s) + 5, modulo 8; left of x*, the exponent of o, modulo 8, which is 4, 3 or 2 down to |o|
/// = 1/32.
template <class Fit, class D>
HWY_INLINE BackwardPlace<D> place_output(D d, hn::Vec<D> o, hn::Mask<D> right) {
    const hn::RebindToSigned<D> di;
    const auto rise = hn::Sub(hn::Sub(o, hn::Set(d, Fit::kOMinHigh)), hn::Set(d, Fit::kOMinLow));
    const auto s = hn::Sqrt(hn::Max(hn::Zero(d), rise));  // a stored o may be rounded below o_min
    const auto held = hn::Min(hn::Set(d, Fit::kBackwardEnd), s);
    const auto size = hn::Abs(o);
    const auto exponent = hn::And(hn::ShiftRight<23>(hn::BitCast(di, size)), hn::Set(di, 7));
    return {.s = held,
            .lane = hn::IfThenElse(hn::RebindMask(di, right), count_halves(d, held, 5), exponent),
            .tail = hn::AndNot(right, hn::Lt(size, hn::Set(d, 1.0f / 32)))};
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
