// Softmax with dropout by rows for the vector width being compiled. Included once per Highway
// target.

#if defined(KERNELS_SOFTMAX_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_SOFTMAX_DROPOUT_INL_H_
#undef KERNELS_SOFTMAX_DROPOUT_INL_H_
#else
#define KERNELS_SOFTMAX_DROPOUT_INL_H_
#endif

#include "kernels/dropout-inl.h"
#include "kernels/row-inl.h"
#include "kernels/softmax_dropout.h"

#include <hwy/contrib/math/math-inl.h>
#include <algorithm>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// Longest row whose float values fit the stack buffer (16 KiB, half of L1); longer rows are
/// computed again instead of buffered.
inline constexpr int64_t kBufferedRow = 4096;

// --- forward -----------------------------------------------------------------------------------

/// One row: the visible part of it, and a buffer for its values in the compute type (or null).
template <typename T>
struct SoftmaxRow {
    const T* scores;
    Source<T> additive;  // or null
    T* probs;
    StatOf<T>* buffer;  // or null
    int64_t visible;    // keys that the query sees; the others get probability 0
    StatOf<T> scale;
};

template <typename T, class Access>
HWY_INLINE hn::Vec<ComputeTag<T>> logit(const SoftmaxRow<T>& row, int64_t j, const Access& access) {
    const ComputeTag<T> d;
    const auto lowest = -std::numeric_limits<StatOf<T>>::infinity();
    auto v = hn::Mul(access.load(d, row.scores + j, 0), hn::Set(d, row.scale));
    if (row.additive) v = hn::Add(v, access.load(d, row.additive + j, 0));
    return access.present(d, v, lowest);
}

/// exp(x) for x <= 0, 0 for -inf, NaN for NaN (which hn::Exp would turn into 0 and hide).
HWY_INLINE hn::Vec<ComputeTag<double>> exp_of_nonpositive(ComputeTag<double> d,
                                                          hn::Vec<ComputeTag<double>> x) {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// The same in float to 1.5 ulp: 2^q e^r with q = round(x / ln 2), |r| <= ln(2) / 2, and e^r by its
/// series to r^7 / 7!, whose rest is below 6e-9. A sum of softmax has no use for what would be
/// subnormal: 0 below 2^-126. With x <= 0 one multiplication by 2^q is enough, where hn::Exp needs
/// two.
HWY_INLINE hn::Vec<ComputeTag<float>> exp_of_nonpositive(ComputeTag<float> d,
                                                         hn::Vec<ComputeTag<float>> x) {
    const hn::RebindToSigned<ComputeTag<float>> di;
    const auto shift = hn::Set(d, 0x1.8p23f);  // in a sum with it the last bits are the integer
    const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), shift);
    const auto q = hn::Sub(shifted, shift);
    // ln 2 in two parts, the first short enough for an exact product.
    auto r = hn::NegMulAdd(q, hn::Set(d, 0.693359375f), x);
    r = hn::NegMulAdd(q, hn::Set(d, -2.12194440e-4f), r);
    const auto r2 = hn::Mul(r, r);
    const auto p23 = hn::MulAdd(r, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f));
    const auto p45 = hn::MulAdd(r, hn::Set(d, 1.0f / 120), hn::Set(d, 1.0f / 24));
    const auto p67 = hn::MulAdd(r, hn::Set(d, 1.0f / 5040), hn::Set(d, 1.0f / 720));
    const auto tail = hn::MulAdd(hn::MulAdd(p67, r2, p45), r2, p23);
    const auto e = hn::Add(hn::MulAdd(tail, r2, r), hn::Set(d, 1.0f));
    const auto exponent = hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Mul(e, power));
}

template <typename T>
HWY_INLINE StatOf<T> row_maximum(const SoftmaxRow<T>& row) {
    const ComputeTag<T> d;
    const auto lowest = -std::numeric_limits<StatOf<T>>::infinity();
    return max_row(d, row.visible, lowest, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        return logit(row, j, access);
    });
}

/// Returns the sum of the exponentials: at least 1, or 0 for a row that sees nothing, or NaN.
template <typename T>
HWY_INLINE StatOf<T> softmax_row(const SoftmaxRow<T>& row) {
    const ComputeTag<T> d;
    const auto maximum = hn::Set(d, row_maximum(row));
    const auto sum = sum_row(d, row.visible, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto e = exp_of_nonpositive(d, hn::Sub(logit(row, j, access), maximum));
        if (row.buffer) access.store(d, e, row.buffer + j);
        return e;
    });
    const auto inverse = hn::Set(d, 1 / sum);
    for_each_vector(d, row.visible, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto e = row.buffer ? access.load(d, row.buffer + j, 0)
                                  : exp_of_nonpositive(d, hn::Sub(logit(row, j, access), maximum));
        access.store(d, hn::Mul(e, inverse), row.probs + j);
    });
    return sum;
}

/// Keys that query `row` sees.
template <typename T>
HWY_INLINE int64_t visible_keys(const SoftmaxDropoutForwardArgs<T>& args, int64_t row) {
    if (!args.causal) return args.num_keys;
    const int64_t query = row % args.num_queries;
    return std::clamp<int64_t>(query + 1 + args.num_keys - args.num_queries, 0, args.num_keys);
}

template <typename T>
HWY_INLINE void softmax_one(const SoftmaxDropoutForwardArgs<T>& args, int64_t row,
                            StatOf<T>* stack_buffer) {
    const int64_t size = args.num_keys;
    SoftmaxRow<T> work = {args.scores + row * size, nullptr,
                          args.probs + row * size,  nullptr,
                          visible_keys(args, row),  static_cast<StatOf<T>>(args.scale)};
    if (args.additive_mask) work.additive = args.additive_mask + row / args.rows_per_mask * size;
    if constexpr (std::is_same_v<T, StatOf<T>>) {
        work.buffer = work.probs;  // the output holds the compute type: values wait there
    } else if (size <= kBufferedRow) {
        work.buffer = stack_buffer;
    }
    const StatOf<T> sum = softmax_row(work);
    T unseen[1] = {T{}};
    if (!(sum > 0)) {  // nothing but -inf, or a NaN: torch's softmax is NaN in the whole row
        store_part(ComputeTag<T>(), hn::NaN(ComputeTag<T>()), unseen, 1);
    }
    std::fill(work.probs + work.visible, work.probs + size, unseen[0]);
}

/// Rows in groups that end on a multiple of 64 elements: each group's softmax, then, while it is in
/// cache, its dropout.
template <typename T>
void softmax_dropout_forward_range(const SoftmaxDropoutForwardArgs<T>& args, int64_t begin,
                                   int64_t end) {
    HWY_ALIGN StatOf<T> buffer[std::is_same_v<T, StatOf<T>> ? 1 : kBufferedRow];
    const DropoutForwardArgs<T> dropout = {args.probs,     args.dropped,   args.mask,
                                           args.mask_kind, args.dropout_p, args.key};
    const int64_t group = row_granularity(args.num_keys);
    for (int64_t first = begin; first < end; first += group) {
        const int64_t last = std::min(end, first + group);
        for (int64_t row = first; row < last; ++row) softmax_one(args, row, buffer);
        if (args.dropped) {
            dropout_forward_range(dropout, first * args.num_keys, last * args.num_keys);
        }
    }
}

// --- backward ----------------------------------------------------------------------------------

template <typename T>
void recompute_dropped_probs_range(const RecomputeDroppedArgs<T>& args, int64_t begin,
                                   int64_t end) {
    const DropoutBackwardArgs<T> dropout = {args.probs,     args.dropped,   args.mask,
                                            args.mask_kind, args.dropout_p, args.key};
    dropout_backward_range(dropout, begin * args.num_keys, end * args.num_keys);
}

/// Gradient of P, for lanes of a row that begins at element `offset`: dP = dD * keep / q.
template <typename T>
struct DropoutGradient {
    const SoftmaxDropoutBackwardArgs<T>& args;
    int64_t offset;
    StatOf<T> keep_factor;

    /// `bits` of the 64 elements from element `first` of the row on, of which k is one.
    template <class Access>
    HWY_INLINE hn::Vec<ComputeTag<T>> at(int64_t first, int64_t k, uint64_t bits,
                                         const Access& access) const {
        const ComputeTag<T> d;
        const auto dd = access.load(d, args.ddropped + offset + first + k, 0);
        if (args.dropout_p == 0) return dd;
        const auto scaled = hn::Mul(dd, hn::Set(d, keep_factor));
        return hn::IfThenElseZero(lanes_from_bits(d, bits >> k), scaled);
    }
};

/// dP is kept in the buffer between the two passes, or, in a long row, made twice.
template <typename T>
HWY_INLINE void backward_row(const SoftmaxDropoutBackwardArgs<T>& args, int64_t row,
                             KeepBits<T>& keep, StatOf<T> keep_factor, StatOf<T>* buffer) {
    const ComputeTag<T> d;
    using V = hn::Vec<ComputeTag<T>>;
    const int64_t offset = row * args.num_keys;
    const T* probs = args.probs + offset;
    const DropoutGradient<T> gradient = {args, offset, keep_factor};
    Chains<ComputeTag<T>> sums(d, 0);
    for_each_64(offset, args.num_keys, keep,
                [&](int64_t first, int64_t count, uint64_t bits) HWY_ATTR {
                    add_row(d, count, sums, [&](int64_t k, auto access) KERNELS_INLINE_LAMBDA {
                        const V dp = gradient.at(first, k, bits, access);
                        if (buffer) access.store(d, dp, buffer + first + k);
                        return hn::Mul(dp, access.load(d, probs + first + k, 0));
                    });
                });
    const auto row_sum = hn::Set(d, total(d, sums));
    const auto scale = hn::Set(d, static_cast<StatOf<T>>(args.scale));
    const auto finish = [&](int64_t j, auto access, V dp) KERNELS_INLINE_LAMBDA {
        const auto p = hn::Mul(access.load(d, probs + j, 0), scale);
        access.store(d, hn::Mul(p, hn::Sub(dp, row_sum)), args.dscores + offset + j);
    };
    if (buffer) {
        return for_each_vector(d, args.num_keys, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
            finish(j, access, access.load(d, buffer + j, 0));
        });
    }
    for_each_64(offset, args.num_keys, keep,
                [&](int64_t first, int64_t count, uint64_t bits) HWY_ATTR {
                    for_each_vector(d, count, [&](int64_t k, auto access) KERNELS_INLINE_LAMBDA {
                        finish(first + k, access, gradient.at(first, k, bits, access));
                    });
                });
}

template <typename T>
void softmax_dropout_backward_range(const SoftmaxDropoutBackwardArgs<T>& args, int64_t begin,
                                    int64_t end) {
    HWY_ALIGN StatOf<T> buffer[kBufferedRow];
    KeepBits<T> keep(args, end * args.num_keys);
    const auto keep_factor = static_cast<StatOf<T>>(keep_scale(keep_threshold(args.dropout_p)));
    // Without dropout dP is what is read: nothing to keep.
    const bool buffered = args.num_keys <= kBufferedRow && args.dropout_p > 0;
    for (int64_t row = begin; row < end; ++row) {
        backward_row(args, row, keep, keep_factor, buffered ? buffer : nullptr);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
