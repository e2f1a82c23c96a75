// Fused passes with sums of columns on the CPU. Bytes per element: column_passes.h. The forward of
// bias_dropout works on a few rows at a time, which stay in L1 between its steps; every other pass
// touches an element once. The sums of a partial's columns stay in L1 or L2. Bound: bytes over the
// bandwidth, and Philox as in dropout.cpp.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/column_passes.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/activation-inl.h"
#include "kernels/column_passes.h"
#include "kernels/dispatch.h"
#include "kernels/dropout-inl.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/row-inl.h"

#include <hwy/highway.h>
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// ---- forward ---------------------------------------------------------------------------------

/// y = act(x + bias) of one row; the sum goes to `biased` if that is wanted.
template <Activation kActivation, typename T>
HWY_INLINE void activate_row(const BiasDropoutForwardArgs<T>& a, int64_t offset) {
    const ComputeTag<T> d;
    for_each_vector(d, a.num_columns, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        auto v = access.load(d, a.x + offset + j, 0);
        if (a.bias) v = hn::Add(v, access.load(d, a.bias + j, 0));
        if (a.biased) access.store(d, v, a.biased + offset + j);
        access.store(d, activated<kActivation>(d, v), a.y + offset + j);
    });
}

template <typename T>
void bias_dropout_forward_range(const BiasDropoutForwardArgs<T>& a, int64_t begin, int64_t end) {
    const int64_t size = a.num_columns;
    const DropoutForwardArgs<T> dropout = {.x = a.y,
                                           .y = a.y,
                                           .mask = a.mask,
                                           .mask_kind = a.mask_kind,
                                           .dropout_p = a.dropout_p,
                                           .key = a.key};
    const int64_t group = row_granularity(size);
    with_activation(a.activation, [&](auto activation) HWY_ATTR {
        for (int64_t first = begin; first < end; first += group) {
            const int64_t last = std::min(end, first + group);
            for (int64_t row = first; row < last; ++row) {
                activate_row<decltype(activation)::value>(a, row * size);
            }
            if (a.dropout_p > 0) dropout_forward_range(dropout, first * size, last * size);
            if (a.residual) {
                add_values<T>(a.y + first * size, a.residual + first * size, (last - first) * size,
                              a.y + first * size);
            }
        }
    });
}

/// body(part, column of x, element of the part's heads) for each head of a row.
template <class Body>
HWY_INLINE void for_each_head(const HeadsShape& s, int64_t row, const Body& body) {
    const int64_t batch = row / s.seq_len, token = row % s.seq_len;
    for (int64_t part = 0; part < kHeadParts; ++part) {
        for (int64_t head = 0; head < s.num_heads; ++head) {
            const int64_t head_row = (batch * s.num_heads + head) * s.seq_len + token;
            body(part, (part * s.num_heads + head) * s.head_dim, head_row * s.head_dim);
        }
    }
}

template <typename T>
void bias_heads_forward_range(const BiasHeadsForwardArgs<T>& a, int64_t begin, int64_t end) {
    const ComputeTag<T> d;
    for (int64_t row = begin; row < end; ++row) {
        const T* x = a.x + row * a.shape.num_columns();
        for_each_head(a.shape, row, [&](int64_t part, int64_t column, int64_t to) HWY_ATTR {
            for_each_vector(d, a.shape.head_dim, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
                auto v = access.load(d, x + column + j, 0);
                if (a.bias) v = hn::Add(v, access.load(d, a.bias + column + j, 0));
                access.store(d, v, a.heads[part] + to + j);
            });
        });
    }
}

// ---- backward --------------------------------------------------------------------------------

/// The sums of one partial [2, C], set to 0; null if nothing is summed.
template <typename S>
HWY_INLINE S* clear_partial(S* partials, int64_t index, int64_t num_columns) {
    if (partials == nullptr) return nullptr;
    S* const sums = partials + index * 2 * num_columns;
    std::fill_n(sums, 2 * num_columns, S{0});
    return sums;
}

/// body(partial, first row, last row) for partials [begin, end).
template <class Body>
HWY_INLINE void for_each_partial(int64_t begin, int64_t end, int64_t num_rows, const Body& body) {
    for (int64_t partial = begin; partial < end; ++partial) {
        body(partial, layer_norm_partial_first_row(partial, num_rows),
             layer_norm_partial_first_row(partial + 1, num_rows));
    }
}

/// sums[j] += v.
template <class D, class Access>
HWY_INLINE void add_to_sums(D d, hn::TFromD<D>* sums, int64_t j, const Access& access,
                            hn::Vec<D> v) {
    access.store(d, hn::Add(access.load(d, sums + j, 0), v), sums + j);
}

template <Activation kActivation, typename T>
HWY_INLINE void backward_row(const BiasDropoutBackwardArgs<T>& a, int64_t offset, KeepBits<T>& keep,
                             StatOf<T> keep_factor, StatOf<T>* sums) {
    const ComputeTag<T> d;
    for_each_64(offset, a.num_columns, keep,
                [&](int64_t first, int64_t count, uint64_t bits) HWY_ATTR {
                    for_each_vector(d, count, [&](int64_t k, auto access) KERNELS_INLINE_LAMBDA {
                        const int64_t j = first + k;
                        auto g = access.load(d, a.dy + offset + j, 0);
                        if (a.dropout_p > 0) {
                            g = hn::IfThenElseZero(lanes_from_bits(d, bits >> k),
                                                   hn::Mul(g, hn::Set(d, keep_factor)));
                        }
                        if constexpr (kActivation != Activation::kNone) {
                            auto x = access.load(d, a.x + offset + j, 0);
                            if (a.bias) x = hn::Add(x, access.load(d, a.bias + j, 0));
                            g = through_activation<kActivation>(d, g, x);
                        }
                        if (a.dx) access.store(d, g, a.dx + offset + j);
                        if (sums) add_to_sums(d, sums, j, access, g);
                    });
                });
}

template <typename T>
void bias_dropout_backward_range(const BiasDropoutBackwardArgs<T>& a, int64_t begin, int64_t end) {
    const auto keep_factor = static_cast<StatOf<T>>(keep_scale(keep_threshold(a.dropout_p)));
    KeepBits<T> keep(a, a.num_rows * a.num_columns);
    with_activation(a.activation, [&](auto activation) HWY_ATTR {
        for_each_partial(begin, end, a.num_rows,
                         [&](int64_t p, int64_t first, int64_t last) HWY_ATTR {
                             StatOf<T>* sums = clear_partial(a.partials, p, a.num_columns);
                             for (int64_t row = first; row < last; ++row) {
                                 backward_row<decltype(activation)::value>(a, row * a.num_columns,
                                                                           keep, keep_factor, sums);
                             }
                         });
    });
}

template <typename T>
void bias_heads_backward_range(const BiasHeadsBackwardArgs<T>& a, int64_t begin, int64_t end) {
    const ComputeTag<T> d;
    const int64_t size = a.shape.num_columns();
    for_each_partial(begin, end, a.num_rows, [&](int64_t p, int64_t first, int64_t last) HWY_ATTR {
        StatOf<T>* sums = clear_partial(a.partials, p, size);
        for (int64_t row = first; row < last; ++row) {
            for_each_head(a.shape, row, [&](int64_t part, int64_t column, int64_t from) HWY_ATTR {
                for_each_vector(d, a.shape.head_dim,
                                [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
                                    const auto g = access.load(d, a.dheads[part] + from + j, 0);
                                    access.store(d, g, a.dx + row * size + column + j);
                                    if (sums) add_to_sums(d, sums, column + j, access, g);
                                });
            });
        }
    });
}

template <typename T>
void scale_shift_backward_range(const ScaleShiftBackwardArgs<T>& a, int64_t begin, int64_t end) {
    const ComputeTag<T> d;
    const int64_t size = a.num_columns;
    for_each_partial(begin, end, a.num_rows, [&](int64_t p, int64_t first, int64_t last) HWY_ATTR {
        StatOf<T>* dgamma = clear_partial(a.partials, p, size);
        StatOf<T>* dbeta = dgamma + size;
        StatOf<T>* dbias = clear_partial(a.bias_partials, p, size);
        for (int64_t i = first * size; i < last * size; i += size) {
            for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
                auto g = access.load(d, a.dy + i + j, 0);
                if (a.dresidual) g = hn::Add(g, access.load(d, a.dresidual + i + j, 0));
                const auto normalized = access.load(d, a.normalized + i + j, 0);
                add_to_sums(d, dgamma, j, access, hn::Mul(g, normalized));
                add_to_sums(d, dbeta, j, access, g);
                if (dbias) {
                    add_to_sums(d, dbias, j, access, access.load(d, a.dlinear + i + j, 0));
                }
                access.store(d, hn::Mul(g, access.load(d, a.gamma + j, 0)), a.dnormalized + i + j);
            });
        }
    });
}

KERNELS_TARGET_FUNCTIONS(bias_dropout_forward, BiasDropoutForwardArgs)
KERNELS_TARGET_FUNCTIONS(bias_heads_forward, BiasHeadsForwardArgs)
KERNELS_TARGET_FUNCTIONS(bias_dropout_backward, BiasDropoutBackwardArgs)
KERNELS_TARGET_FUNCTIONS(bias_heads_backward, BiasHeadsBackwardArgs)
KERNELS_TARGET_FUNCTIONS(scale_shift_backward, ScaleShiftBackwardArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

KERNELS_DISPATCH(bias_dropout_forward, BiasDropoutForwardArgs)
KERNELS_DISPATCH(bias_heads_forward, BiasHeadsForwardArgs)
KERNELS_DISPATCH(bias_dropout_backward, BiasDropoutBackwardArgs)
KERNELS_DISPATCH(bias_heads_backward, BiasHeadsBackwardArgs)
KERNELS_DISPATCH(scale_shift_backward, ScaleShiftBackwardArgs)

}  // namespace kernels
#endif  // HWY_ONCE
