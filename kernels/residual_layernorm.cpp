// Dropout, residual and LayerNorm on the CPU: the three steps on a few rows at a time, which stay
// in L1 (forward) or L2 (backward) between them, so memory sees each tensor once. Bytes per element
// (e = size of T, m = mask): forward 2e read, e + m written (2e + m with the sum); backward 2e + m
// read (3e + m with dsum), 2e written. Bounds: those bytes over the bandwidth, and Philox as in
// dropout.cpp.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/residual_layernorm.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/dispatch.h"
#include "kernels/dropout-inl.h"
#include "kernels/inplace_layernorm-inl.h"
#include "kernels/residual_layernorm.h"

#include <hwy/highway.h>
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

/// to = x + bias, rounded to T.
template <typename T>
HWY_INLINE void add_bias(const T* x, const T* bias, int64_t size, T* to) {
    const ComputeTag<T> d;
    for_each_vector(d, size, [&](int64_t j, auto access) KERNELS_INLINE_LAMBDA {
        access.store(d, hn::Add(access.load(d, x + j, 0), access.load(d, bias + j, 0)), to + j);
    });
}

/// to = residual + dropout(from), through a scratch block, since `to` may be x or the residual.
template <typename T>
void sum_rows(const ResidualLayerNormForwardArgs<T>& a, const T* from, int64_t begin, int64_t end,
              Target<T> to) {
    const PhiloxSchedule schedule = make_philox_schedule(a.key);
    const uint32_t threshold = keep_threshold(a.dropout_p);
    const auto scale = static_cast<StatOf<T>>(keep_scale(threshold));
    for (int64_t i = begin; i < end; i += 64) {
        const int64_t count = std::min<int64_t>(64, end - i);
        const uint64_t bits = keep_bits_64(schedule, threshold, static_cast<uint32_t>(i / 64));
        store_mask_as<T>(a.mask_kind, a.mask, i, count, bits);
        T scratch[64];
        scale_kept(from + i, scratch, count, bits, scale);
        add_values<T>(scratch, a.residual + i, count, to + i);
    }
}

template <typename T>
void residual_layer_norm_forward_range(const ResidualLayerNormForwardArgs<T>& a, int64_t begin,
                                       int64_t end) {
    const Target<T> sum = a.sum ? a.sum : Target<T>(a.y);  // LayerNorm works in place
    // Without `biased` the sum takes its place, and must then not be the residual.
    T* const biased = a.biased ? a.biased : sum.narrow;
    const LayerNormForwardArgs<T> norm = {.x = sum,
                                          .gamma = a.gamma,
                                          .beta = a.beta,
                                          .y = a.y,
                                          .normalized = a.normalized,
                                          .centered = a.centered,
                                          .mean = nullptr,
                                          .rstd = a.rstd,
                                          .hidden_size = a.hidden_size,
                                          .eps = a.eps};
    const int64_t group = row_granularity(a.hidden_size);
    for (int64_t first = begin; first < end; first += group) {
        const int64_t last = std::min(end, first + group);
        for (int64_t i = first * a.hidden_size; a.bias && i < last * a.hidden_size;
             i += a.hidden_size) {
            add_bias(a.x + i, a.bias, a.hidden_size, biased + i);
        }
        sum_rows(a, a.bias ? biased : a.x, first * a.hidden_size, last * a.hidden_size, sum);
        layer_norm_forward_range(norm, first, last);
    }
}

/// Writes LayerNorm's dx to `dx` first, so that dresidual may be dsum; then dropout works in place.
/// A float dresidual takes it before dx does, because dx would round it.
template <typename T>
void residual_layer_norm_backward_range(const ResidualLayerNormBackwardArgs<T>& a, int64_t begin,
                                        int64_t end) {
    const bool is_float = a.dresidual.wide != nullptr;
    const Target<T> gradient = is_float ? a.dresidual : Target<T>(a.dx);
    const Target<T> other = is_float ? Target<T>(a.dx) : a.dresidual;
    const LayerNormBackwardArgs<T> norm = {.dy = a.dy,
                                           .saved = a.saved,
                                           .gamma = a.gamma,
                                           .beta = a.beta,
                                           .rstd = a.rstd,
                                           .dx = gradient,
                                           .partials = a.partials,
                                           .save = a.save,
                                           .hidden_size = a.hidden_size,
                                           .num_rows = a.num_rows};
    const DropoutBackwardArgs<T> dropout = {.dy = a.dx,
                                            .dx = a.dx,
                                            .mask = a.mask,
                                            .mask_kind = a.mask_kind,
                                            .dropout_p = a.dropout_p,
                                            .key = a.key};
    for (int64_t partial = begin; partial < end; ++partial) {
        layer_norm_backward_range(norm, partial, partial + 1);
        const int64_t first = layer_norm_partial_first_row(partial, a.num_rows) * a.hidden_size;
        const int64_t last = layer_norm_partial_first_row(partial + 1, a.num_rows) * a.hidden_size;
        const Source<T> made = gradient + first;
        if (a.dsum) add_values<T>(made, a.dsum + first, last - first, gradient + first);
        copy_values<T>(made, last - first, other + first);
        dropout_backward_range(dropout, first, last);
    }
}

KERNELS_TARGET_FUNCTIONS(residual_layer_norm_forward, ResidualLayerNormForwardArgs)
KERNELS_TARGET_FUNCTIONS(residual_layer_norm_backward, ResidualLayerNormBackwardArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

KERNELS_DISPATCH(residual_layer_norm_forward, ResidualLayerNormForwardArgs)
KERNELS_DISPATCH(residual_layer_norm_backward, ResidualLayerNormBackwardArgs)

}  // namespace kernels
#endif  // HWY_ONCE
