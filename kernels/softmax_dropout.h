#pragma once

#include "kernels/dropout.h"
#include "kernels/types.h"

#include <cstdint>

// Attention's softmax and dropout, with the dropped product recomputed in backward instead of kept.
//
//     P = softmax(scale * scores + additive mask),   D = P * keep / q      (D then multiplies V)
//   backward, from P and the mask (or its key) alone:
//     D' = P * keep / q                                  recompute_dropped_probs: bit-equal to D
//     dP = dD * keep / q
//     dscores = scale * P (dP - sum_row(dP P))           softmax_dropout_backward
//
// Source   Tempo (Andoorveedu et al., NeurIPS 2022, arXiv 2210.10246), Sub-Layer Dropout
//          Recomputation; masks of one bit or none are our own.
// Shapes   scores, P, D, dD, dscores [R, S] row-major with R = B * A * num_queries, S = num_keys.
// Bytes moved per element (e = sizeof(T), m = mask): forward e read, 2e + m written; D' e + m read,
// e written; backward 2e + m read, e written. Kept: P and the mask.

namespace kernels {

template <typename T>
struct SoftmaxDropoutForwardArgs {
    const T* scores = nullptr;         // [R, S]
    const T* additive_mask = nullptr;  // [R / rows_per_mask, S] added to scale * scores, or null
    T* probs = nullptr;                // [R, S]; probs == scores is allowed
    T* dropped = nullptr;     // [R, S] D, or null when dropout_p is 0 (or eval: then D is P)
    uint8_t* mask = nullptr;  // written: mask_bytes<T>(mask_kind, R * S); unused if no dropped
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    double scale = 1;           // applied to the scores, e.g. 1 / sqrt(head_dim)
    int64_t num_keys = 0;       // S
    int64_t num_queries = 0;    // rows of one head; read when causal
    int64_t rows_per_mask = 0;  // rows that share one additive row, e.g. A * num_queries
    bool causal = false;        // query t sees keys 0 .. t + num_keys - num_queries
};

template <typename T>
struct SoftmaxDropoutBackwardArgs {
    const T* ddropped = nullptr;    // [R, S] gradient of D
    const T* probs = nullptr;       // [R, S] what forward wrote
    const uint8_t* mask = nullptr;  // what forward wrote; unused for kNone and for dropout_p 0
    T* dscores = nullptr;           // [R, S]; dscores == ddropped is allowed
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;  // 0: no dropout was applied, mask and key are not read
    DropoutKey key;
    double scale = 1;
    int64_t num_keys = 0;  // S
};

template <typename T>
struct RecomputeDroppedArgs {
    const T* probs = nullptr;  // [R, S]
    T* dropped = nullptr;      // [R, S]; dropped == probs is allowed
    const uint8_t* mask = nullptr;
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    int64_t num_keys = 0;  // S
};

/// Softmax and dropout of rows [row_begin, row_end).
///
/// Types     T is float, double, Half or BFloat16; each row in float (double), P rounded once, D
///           made from the rounded P.
/// Requires  row_begin a multiple of row_granularity(num_keys), row_end one too or R.
/// Special   a row whose keys are all masked with -inf gives NaN, as torch does.
/// Truth     dropout_reference.h.
template <typename T>
void softmax_dropout_forward(const SoftmaxDropoutForwardArgs<T>& args, int64_t row_begin,
                             int64_t row_end);

/// D' = P * keep / q of rows [row_begin, row_end), to be multiplied with dO for dV and freed.
template <typename T>
void recompute_dropped_probs(const RecomputeDroppedArgs<T>& args, int64_t row_begin,
                             int64_t row_end);

/// dscores from dD, P and the mask in one pass over each row; no dP tensor.
template <typename T>
void softmax_dropout_backward(const SoftmaxDropoutBackwardArgs<T>& args, int64_t row_begin,
                              int64_t row_end);

/// The same on CUDA for all `num_rows` rows.
/// Errors    std::runtime_error when the launch fails.
template <typename T>
void launch(const SoftmaxDropoutForwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const RecomputeDroppedArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const SoftmaxDropoutBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);

}  // namespace kernels
