// Walking along one row of a matrix in vectors, its last part included, for the vector width being
// compiled. Included once per Highway target.

#if defined(KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_ROW_INL_H_
#undef KERNELS_ROW_INL_H_
#else
#define KERNELS_ROW_INL_H_
#endif

#include "kernels/simd-inl.h"

// Goes after a lambda's parameters: compiles it for the target, and inlines each of its uses.
// Defined again each time, since this file is included once per target.
#undef KERNELS_INLINE_LAMBDA
#define KERNELS_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// How one step reads and writes: a whole vector, or the first `count` lanes of one. `fill` is the
/// value of the missing lanes.
struct WholeVector {
    template <class D, class From>
    HWY_INLINE hn::Vec<D> load(D d, From from, hn::TFromD<D> /*fill*/) const {
        return load_as(d, from);
    }
    template <class D>
    HWY_INLINE hn::Vec<D> present(D /*d*/, hn::Vec<D> v, hn::TFromD<D> /*fill*/) const {
        return v;
    }
    template <class D, class To>
    HWY_INLINE void store(D d, hn::Vec<D> v, To to) const {
        store_as(d, v, to);
    }
};

struct PartVector {
    int64_t count;
    template <class D, class From>
    HWY_INLINE hn::Vec<D> load(D d, From from, hn::TFromD<D> fill) const {
        return load_part(d, from, count, fill);
    }
    /// v with the missing lanes set to `fill`.
    template <class D>
    HWY_INLINE hn::Vec<D> present(D d, hn::Vec<D> v, hn::TFromD<D> fill) const {
        return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), v, hn::Set(d, fill));
    }
    template <class D, class To>
    HWY_INLINE void store(D d, hn::Vec<D> v, To to) const {
        store_part(d, v, to, count);
    }
};

/// A channel's gamma or beta: `fill` if the tensor is absent, and in missing lanes.
template <class Access, class D, typename T>
HWY_INLINE hn::Vec<D> load_channel(const Access& access, D d, Source<T> base, int64_t j,
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

/// sum = a + b.
template <typename T, class A, class B, class To>
HWY_INLINE void add_values(A a, B b, int64_t count, To sum) {
    const ComputeTag<T> d;
    for_each_vector(d, count, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto total = hn::Add(access.load(d, a + j, 0), access.load(d, b + j, 0));
        access.store(d, total, sum + j);
    });
}

/// to = from, of T or float each.
template <typename T, class From, class To>
HWY_INLINE void copy_values(From from, int64_t count, To to) {
    const ComputeTag<T> d;
    for_each_vector(d, count, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        access.store(d, access.load(d, from + j, 0), to + j);
    });
}

/// Four running results along a row: with a single one, each addition (or maximum) would wait for
/// the one before.
template <class D>
struct Chains {
    hn::Vec<D> v[4];
    HWY_INLINE Chains(D d, hn::TFromD<D> start) { v[0] = v[1] = v[2] = v[3] = hn::Set(d, start); }
};

/// Calls combine(chain, value(j, access)) along the row, with the four chains in turn.
template <class D, class Value, class Combine>
HWY_INLINE void combine_row(D d, int64_t size, Chains<D>& chains, const Value& value,
                            const Combine& combine) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    auto* c = chains.v;
    int64_t j = 0;
    for (; j + 4 * lanes <= size; j += 4 * lanes) {
        c[0] = combine(c[0], value(j, WholeVector{}));
        c[1] = combine(c[1], value(j + lanes, WholeVector{}));
        c[2] = combine(c[2], value(j + 2 * lanes, WholeVector{}));
        c[3] = combine(c[3], value(j + 3 * lanes, WholeVector{}));
    }
    for (; j + lanes <= size; j += lanes) c[0] = combine(c[0], value(j, WholeVector{}));
    if (j < size) c[1] = combine(c[1], value(j, PartVector{size - j}));
}

/// Adds what value(j, access) returns; missing lanes must give 0.
template <class D, class Value>
HWY_INLINE void add_row(D d, int64_t size, Chains<D>& sums, const Value& value) {
    using V = hn::Vec<D>;
    combine_row(d, size, sums, value,
                [](V sum, V v) KERNELS_INLINE_LAMBDA { return hn::Add(sum, v); });
}

template <class D>
HWY_INLINE hn::TFromD<D> total(D d, const Chains<D>& sums) {
    const auto* s = sums.v;
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
}

/// Sum over the row of what value(j, access) returns; missing lanes must give 0.
template <class D, class Value>
HWY_INLINE hn::TFromD<D> sum_row(D d, int64_t size, const Value& value) {
    Chains<D> sums(d, 0);
    add_row(d, size, sums, value);
    return total(d, sums);
}

/// Maximum, of `lowest` too; missing lanes must give `lowest`.
template <class D, class Value>
HWY_INLINE hn::TFromD<D> max_row(D d, int64_t size, hn::TFromD<D> lowest, const Value& value) {
    using V = hn::Vec<D>;
    Chains<D> maxima(d, lowest);
    combine_row(d, size, maxima, value,
                [](V largest, V v) KERNELS_INLINE_LAMBDA { return hn::Max(largest, v); });
    const auto* m = maxima.v;
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m[0], m[1]), hn::Max(m[2], m[3]))));
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
