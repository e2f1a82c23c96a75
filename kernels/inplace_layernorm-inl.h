// LayerNorm by rows for the vector width being compiled. Included once per Highway target.

#if defined(KERNELS_INPLACE_LAYERNORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_INPLACE_LAYERNORM_INL_H_
#undef KERNELS_INPLACE_LAYERNORM_INL_H_
#else
#define KERNELS_INPLACE_LAYERNORM_INL_H_
#endif

#include "kernels/inplace_layernorm.h"
#include "kernels/row-inl.h"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// --- forward -----------------------------------------------------------------------------------

template <typename T>
struct RowStatistics {
    StatOf<T> mean, rstd;
};

/// Two passes, the second from cache: the sum of squares minus the squared mean would cancel if
/// |mean| is large. Without `subtract_mean` the mean counts as 0.
template <typename T>
HWY_INLINE RowStatistics<T> row_statistics(const Source<T>& x, int64_t size, double eps,
                                           bool subtract_mean = true) {
    const ComputeTag<T> d;
    using S = StatOf<T>;
    const auto value = [&](int64_t j, auto access)
                           KERNELS_INLINE_LAMBDA { return access.load(d, x + j, S{0}); };
    const S mean = subtract_mean ? sum_row(d, size, value) / static_cast<S>(size) : S{0};
    const auto centre = hn::Set(d, mean);
    const S squares = sum_row(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto difference = hn::Sub(access.load(d, x + j, mean), centre);
        return hn::Mul(difference, difference);
    });
    const S variance = squares / static_cast<S>(size);
    return {mean, S{1} / std::sqrt(variance + static_cast<S>(eps))};
}

template <typename T>
void layer_norm_forward_range(const LayerNormForwardArgs<T>& args, int64_t begin, int64_t end) {
    const ComputeTag<T> d;
    const int64_t size = args.hidden_size;
    for (int64_t row = begin; row < end; ++row) {
        const Source<T> x = args.x + row * size;
        const RowStatistics<T> stats = row_statistics(x, size, args.eps, args.subtract_mean);
        if (args.mean) args.mean[row] = stats.mean;
        args.rstd[row] = stats.rstd;
        const auto mean = hn::Set(d, stats.mean);
        const auto rstd = hn::Set(d, stats.rstd);
        for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
            const auto centered = hn::Sub(access.load(d, x + j, 0), mean);
            const auto normalized = hn::Mul(centered, rstd);
            const auto gamma = load_channel(access, d, args.gamma, j, 1);
            const auto beta = load_channel(access, d, args.beta, j, 0);
            if (args.centered) access.store(d, centered, args.centered + row * size + j);
            access.store(d, hn::MulAdd(normalized, gamma, beta), args.y + row * size + j);
            if (args.normalized) access.store(d, normalized, args.normalized + row * size + j);
        });
    }
}

// --- backward ----------------------------------------------------------------------------------
// With c = saved - beta (kOutput), saved (kNormalized) or saved rstd (kCentered), division by gamma
// is needed once per channel and block of rows only:
//                    x̂            g x̂            dgamma
//   kOutput          c / gamma    dy c           (sum dy c) / gamma
//   others           c            dy gamma c     sum dy c

inline constexpr int kRowsPerBlock =
    4;  // rows that share one read of gamma, beta and the partial sums

template <typename T>
struct BackwardRows {
    const T* dy;  // first row
    const T* saved;
    Target<T> dx;  // or null
    const StatOf<T>* rstd;
    StatOf<T>* dgamma;  // this partial's sums, or null
    StatOf<T>* dbeta;
};

template <typename T, int kRows>
struct RowMeans {
    StatOf<T> g[kRows];             // mean_H(g)
    StatOf<T> g_normalized[kRows];  // mean_H(g x̂)
};

/// First pass: both means of each row, and the partial sums of dgamma (before the division) and
/// dbeta.
template <LayerNormSave kSave, int kRows, typename T>
HWY_INLINE RowMeans<T, kRows> backward_sums(const LayerNormBackwardArgs<T>& args,
                                            const BackwardRows<T>& rows) {
    const ComputeTag<T> d;
    using V = hn::Vec<ComputeTag<T>>;
    const int64_t size = args.hidden_size;
    V g_sum[kRows], gx_sum[kRows];
    for (int r = 0; r < kRows; ++r) g_sum[r] = gx_sum[r] = hn::Zero(d);
    for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto gamma = load_channel(access, d, args.gamma, j, 1);
        const auto beta = kSave == LayerNormSave::kOutput ? load_channel(access, d, args.beta, j, 0)
                                                          : hn::Zero(d);
        auto dgamma = rows.dgamma ? access.load(d, rows.dgamma + j, 0) : hn::Zero(d);
        auto dbeta = rows.dgamma ? access.load(d, rows.dbeta + j, 0) : hn::Zero(d);
        for (int r = 0; r < kRows; ++r) {
            const auto dy = access.load(d, rows.dy + r * size + j, 0);
            auto c = hn::Sub(access.load(d, rows.saved + r * size + j, 0), beta);
            if constexpr (kSave == LayerNormSave::kCentered) {
                c = hn::Mul(c, hn::Set(d, rows.rstd[r]));
            }
            const auto g = hn::Mul(dy, gamma);
            g_sum[r] = hn::Add(g_sum[r], g);
            gx_sum[r] = hn::MulAdd(kSave == LayerNormSave::kOutput ? dy : g, c, gx_sum[r]);
            dgamma = hn::MulAdd(dy, c, dgamma);
            dbeta = hn::Add(dbeta, dy);
        }
        if (rows.dgamma) {
            access.store(d, dgamma, rows.dgamma + j);
            access.store(d, dbeta, rows.dbeta + j);
        }
    });
    RowMeans<T, kRows> means;
    for (int r = 0; r < kRows; ++r) {
        const auto inverse = 1 / static_cast<StatOf<T>>(size);
        means.g[r] = hn::GetLane(hn::SumOfLanes(d, g_sum[r])) * inverse;
        if (!args.subtract_mean) means.g[r] = 0;
        means.g_normalized[r] = hn::GetLane(hn::SumOfLanes(d, gx_sum[r])) * inverse;
    }
    return means;
}

/// Second pass, from cache: dx = rstd (g - mean(g) - x̂ mean(g x̂)).
template <LayerNormSave kSave, int kRows, typename T>
HWY_INLINE void backward_dx(const LayerNormBackwardArgs<T>& args, const BackwardRows<T>& rows,
                            const RowMeans<T, kRows>& means) {
    const ComputeTag<T> d;
    const int64_t size = args.hidden_size;
    for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        const auto gamma = load_channel(access, d, args.gamma, j, 1);
        auto beta = hn::Zero(d);
        auto inverse_gamma = hn::Set(d, StatOf<T>{1});
        if constexpr (kSave == LayerNormSave::kOutput) {
            beta = load_channel(access, d, args.beta, j, 0);
            inverse_gamma = hn::Div(inverse_gamma, gamma);
        }
        for (int r = 0; r < kRows; ++r) {
            const auto dy = access.load(d, rows.dy + r * size + j, 0);
            auto c = hn::Sub(access.load(d, rows.saved + r * size + j, 0), beta);
            if constexpr (kSave == LayerNormSave::kCentered) {
                c = hn::Mul(c, hn::Set(d, rows.rstd[r]));
            }
            const auto normalized = hn::Mul(c, inverse_gamma);
            const auto inner = hn::NegMulAdd(normalized, hn::Set(d, means.g_normalized[r]),
                                             hn::MulSub(dy, gamma, hn::Set(d, means.g[r])));
            access.store(d, hn::Mul(inner, hn::Set(d, rows.rstd[r])), rows.dx + r * size + j);
        }
    });
}

template <LayerNormSave kSave, int kRows, typename T>
HWY_INLINE void backward_block(const LayerNormBackwardArgs<T>& args, const BackwardRows<T>& rows) {
    const auto means = backward_sums<kSave, kRows>(args, rows);
    if (rows.dx) backward_dx<kSave, kRows>(args, rows, means);
}

template <LayerNormSave kSave, typename T>
void backward_partial(const LayerNormBackwardArgs<T>& args, int64_t row_begin, int64_t row_end,
                      StatOf<T>* dgamma, StatOf<T>* dbeta) {
    const int64_t size = args.hidden_size;
    const auto rows_at = [&](int64_t row) {
        return BackwardRows<T>{args.dy + row * size,
                               args.saved + row * size,
                               args.dx + row * size,
                               args.rstd + row,
                               dgamma,
                               dbeta};
    };
    int64_t row = row_begin;
    for (; row + kRowsPerBlock <= row_end; row += kRowsPerBlock) {
        backward_block<kSave, kRowsPerBlock>(args, rows_at(row));
    }
    for (; row < row_end; ++row) backward_block<kSave, 1>(args, rows_at(row));
    if constexpr (kSave == LayerNormSave::kOutput) {
        const ComputeTag<T> d;
        if (dgamma == nullptr || !args.gamma) return;
        for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
            const auto sum = access.load(d, dgamma + j, 0);
            access.store(d, hn::Div(sum, access.load(d, args.gamma + j, 1)), dgamma + j);
        });
    }
}

template <typename T>
void layer_norm_backward_range(const LayerNormBackwardArgs<T>& args, int64_t begin, int64_t end) {
    const int64_t size = args.hidden_size;
    for (int64_t partial = begin; partial < end; ++partial) {
        StatOf<T>* dgamma = args.partials ? args.partials + partial * 2 * size : nullptr;
        StatOf<T>* dbeta = args.partials ? dgamma + size : nullptr;
        if (dgamma) std::fill_n(dgamma, 2 * size, StatOf<T>{0});
        const int64_t first = layer_norm_partial_first_row(partial, args.num_rows);
        const int64_t last = layer_norm_partial_first_row(partial + 1, args.num_rows);
        switch (args.save) {
            case LayerNormSave::kOutput:
                backward_partial<LayerNormSave::kOutput>(args, first, last, dgamma, dbeta);
                break;
            case LayerNormSave::kNormalized:
                backward_partial<LayerNormSave::kNormalized>(args, first, last, dgamma, dbeta);
                break;
            case LayerNormSave::kCentered:
                backward_partial<LayerNormSave::kCentered>(args, first, last, dgamma, dbeta);
                break;
        }
    }
}

template <typename T>
void layer_norm_reduce_range(const LayerNormReduceArgs<T>& args, int64_t begin, int64_t end) {
    const ComputeTag<T> d;
    const auto reduce = [&](int64_t offset, T* to) KERNELS_INLINE_LAMBDA {
        for_each_vector(d, end - begin, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
            auto sum = hn::Zero(d);
            for (int64_t p = 0; p < args.num_partials; ++p) {
                const auto* from = args.partials + p * 2 * args.hidden_size + offset + begin + j;
                sum = hn::Add(sum, access.load(d, from, 0));
            }
            access.store(d, sum, to + begin + j);
        });
    };
    if (args.dgamma) reduce(0, args.dgamma);
    if (args.dbeta) reduce(args.hidden_size, args.dbeta);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
