// Walking along one row of a matrix in vectors, its last part included, for the vector width being
// compiled. Included once per Highway target.

#if defined(KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_ROW_INL_H_
#undef KERNELS_ROW_INL_H_
#else
#define KERNELS_ROW_INL_H_
#endif

#include "kernels/simd-inl.h"

// After a lambda's parameters: compiled for the target, and inlined at each of its several uses.
// Undefined and defined again, since this file is included once per target.
#undef KERNELS_INLINE_LAMBDA
#define KERNELS_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// How a step of the walk reads and writes: a whole vector, or the first `count` lanes of one.
/// `fill` is what the missing lanes hold.
struct WholeVector {
    template <class D, typename T>
    HWY_INLINE hn::Vec<D> load(D d, const T* from, hn::TFromD<D> /*fill*/) const {
        return load_as(d, from);
    }
    template <class D>
    HWY_INLINE hn::Vec<D> present(D /*d*/, hn::Vec<D> v, hn::TFromD<D> /*fill*/) const {
        return v;
    }
    template <class D, typename T>
    HWY_INLINE void store(D d, hn::Vec<D> v, T* to) const {
        store_as(d, v, to);
    }
};

struct PartVector {
    int64_t count;
    template <class D, typename T>
    HWY_INLINE hn::Vec<D> load(D d, const T* from, hn::TFromD<D> fill) const {
        return load_part(d, from, count, fill);
    }
    /// v with the missing lanes set to `fill`.
    template <class D>
    HWY_INLINE hn::Vec<D> present(D d, hn::Vec<D> v, hn::TFromD<D> fill) const {
        return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), v, hn::Set(d, fill));
    }
    template <class D, typename T>
    HWY_INLINE void store(D d, hn::Vec<D> v, T* to) const {
        store_part(d, v, to, count);
    }
};

/// A channel's gamma or beta: `fill` where the tensor is absent, and in missing lanes.
template <class Access, class D, typename T>
HWY_INLINE hn::Vec<D> load_channel(const Access& access, D d, const T* base, int64_t j,
                                   hn::TFromD<D> fill) {
    return base ? access.load(d, base + j, fill) : hn::Set(d, fill);
}

/// body(j, access) for j = 0, lanes, 2 lanes, ... < size.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t size, const Body& body) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= size; j += lanes) body(j, WholeVector{});
    if (j < size) body(j, PartVector{size - j});
}

/// Sum over the row of what value(j, access) returns; missing lanes must give 0. Four sums run side
/// by side: one chain of additions would wait for each.
template <class D, class Value>
HWY_INLINE hn::TFromD<D> sum_row(D d, int64_t size, const Value& value) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    int64_t j = 0;
    for (; j + 4 * lanes <= size; j += 4 * lanes) {
        s0 = hn::Add(s0, value(j, WholeVector{}));
        s1 = hn::Add(s1, value(j + lanes, WholeVector{}));
        s2 = hn::Add(s2, value(j + 2 * lanes, WholeVector{}));
        s3 = hn::Add(s3, value(j + 3 * lanes, WholeVector{}));
    }
    for (; j + lanes <= size; j += lanes) s0 = hn::Add(s0, value(j, WholeVector{}));
    if (j < size) s1 = hn::Add(s1, value(j, PartVector{size - j}));
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
