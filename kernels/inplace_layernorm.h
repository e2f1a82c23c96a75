#pragma once

#include "kernels/types.h"

#include <cstdint>

// LayerNorm whose backward needs the output (or the normalized value) and rstd, so that the input
// need not be saved.
//
//     mean = mean_H(x),   rstd = 1 / sqrt(mean_H((x - mean)^2) + eps)
//     x̂ = (x - mean) rstd,   y = gamma x̂ + beta
//     g = dy gamma,   dx = rstd (g - mean_H(g) - x̂ mean_H(g x̂))
//     dgamma = sum_rows dy x̂,   dbeta = sum_rows dy
//
// RMSNorm (Zhang and Sennrich, 2019, arXiv 1910.07467) is the same with subtract_mean = false: mean
// and mean_H(g) are 0 in all of this, and beta is null.
//
// Backward recovers x̂ = (y - beta) / gamma. Storing y in T costs x̂ an error of about
// eps_T (|x̂| + |beta / gamma|). If some |gamma| is small, the caller therefore saves x̂ instead
// (LayerNormSave::kNormalized): no division, but e more bytes per element if the next layer saves
// y too. needs_normalized() is the rule.
// Source   Tempo (Andoorveedu et al., NeurIPS 2022, arXiv 2210.10246), In-place LayerNorm.
//
// Bytes moved per element (e = sizeof(T)): forward e read (again from cache on the CPU), e
// written; backward 2e read, e written. Saved: the output and 4 bytes of rstd per row (8 for
// double).

namespace kernels {

/// Which tensor of LayerNorm is saved for backward.
enum class LayerNormSave : uint8_t {
    kOutput,      // y: x̂ is recovered by division
    kNormalized,  // x̂ itself, if needs_normalized()
    kCentered,    // x - mean (Substation): x̂ is its product with rstd
};

/// Smallest |gamma| to divide by. At gamma = 0, y = beta and x̂ is lost, and dgamma with it. A
/// trained channel can pass through zero, so division stops well before it.
inline constexpr double kGammaMin = 1.0 / 64;
/// Largest |beta / gamma|. It multiplies the rounding error of y, so 16 costs 4 bits of x̂.
inline constexpr double kBetaOverGammaMax = 16;

/// True if x̂ cannot be recovered from the output, because of some channel. Either pointer may be
/// null (1 and 0). One pass over 2 H values: call it once per optimizer step, not per layer call.
/// NaN gives true.
template <typename T>
bool needs_normalized(const T* gamma, const T* beta, int64_t hidden_size);

template <typename T>
struct LayerNormForwardArgs {
    Source<T> x;                // [R, H]
    Source<T> gamma;            // [H], or null for 1
    Source<T> beta;             // [H], or null for 0
    T* y = nullptr;             // [R, H]; y == x is allowed
    T* normalized = nullptr;    // [R, H] x̂, or null when it is not wanted
    T* centered = nullptr;      // [R, H] x - mean, or null when it is not wanted
    StatOf<T>* mean = nullptr;  // [R], or null when it is not wanted
    StatOf<T>* rstd = nullptr;  // [R]
    int64_t hidden_size = 0;    // H
    double eps = 1e-12;
    bool subtract_mean = true;  // false: RMSNorm
};

template <typename T>
struct LayerNormBackwardArgs {
    const T* dy = nullptr;            // [R, H]
    const T* saved = nullptr;         // [R, H] y, x̂ or x - mean
    Source<T> gamma;                  // [H], or null for 1
    Source<T> beta;                   // [H], or null for 0; read for kOutput only
    const StatOf<T>* rstd = nullptr;  // [R]
    Target<T> dx;                     // [R, H]; dx == dy is allowed; null when it is not wanted
    StatOf<T>* partials = nullptr;    // [num_partials, 2, H], dgamma then dbeta; null: not wanted
    LayerNormSave save = LayerNormSave::kOutput;
    int64_t hidden_size = 0;    // H
    int64_t num_rows = 0;       // R; read on the CPU, which gets a range of partials
    bool subtract_mean = true;  // false: RMSNorm
};

/// LayerNorm of rows [row_begin, row_end). Any row may start a range.
///
/// Types     T is float, double, Half or BFloat16; statistics and sums in float (double).
/// Truth     inplace_layernorm_reference.h.
template <typename T>
void layer_norm_forward(const LayerNormForwardArgs<T>& args, int64_t row_begin, int64_t row_end);

/// Number of partial sums of dgamma and dbeta for `num_rows` rows. It depends on the shape alone,
/// so the sums do not depend on the number of threads.
int64_t layer_norm_num_partials(int64_t num_rows);

/// First row of partial `index`; rows [first_row(i), first_row(i + 1)) belong to partial i.
int64_t layer_norm_partial_first_row(int64_t index, int64_t num_rows);

/// Backward of all rows of partials [partial_begin, partial_end); writes (does not add to) those
/// partials. The work is split over partials:
///     parallel_for(0, layer_norm_num_partials(num_rows), 1, ...)
template <typename T>
void layer_norm_backward(const LayerNormBackwardArgs<T>& args, int64_t partial_begin,
                         int64_t partial_end);

template <typename T>
struct LayerNormReduceArgs {
    const StatOf<T>* partials = nullptr;  // [num_partials, 2, H]
    T* dgamma = nullptr;                  // [H], or null when it is not wanted
    T* dbeta = nullptr;                   // [H], or null when it is not wanted
    int64_t num_partials = 0;
    int64_t hidden_size = 0;  // H
};

/// dgamma[h] = sum of partials, dbeta likewise, for channels [h_begin, h_end).
template <typename T>
void layer_norm_reduce(const LayerNormReduceArgs<T>& args, int64_t h_begin, int64_t h_end);

/// The same on CUDA. Backward is one kernel (x̂ lives in registers) that fills
/// partials [layer_norm_cuda_num_partials(num_rows), 2, H], and one that reduces them.
/// Errors    std::runtime_error when the launch fails.
template <typename T>
void launch(const LayerNormForwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const LayerNormBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const LayerNormReduceArgs<T>& args, int64_t hidden_size, CudaStream stream);
/// Depends on the shape alone, so that a Meta run allocates the same as a CUDA run.
int64_t layer_norm_cuda_num_partials(int64_t num_rows);

}  // namespace kernels
