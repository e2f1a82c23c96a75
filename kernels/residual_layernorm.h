#pragma once

#include "kernels/dropout.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/types.h"

#include <cstdint>

// Dropout, residual and LayerNorm in one pass, so that saving memory does not cost extra passes.
//
//     sum = residual + dropout(x + bias),   y = LayerNorm(sum)
//   backward, from y (or x̂), rstd and the dropout mask (or its key):
//     dsum_total = dLayerNorm(dy) + dsum,   dresidual = dsum_total,   dx = dropout's gradient of
//     dsum_total
//
// Post-LN layers (BERT) use y alone: sum is null, and x, dropout's output and sum are not saved.
// Pre-LN layers (GPT-2) also use sum, the residual stream, and pass its gradient dsum.
// Results equal dropout.h, an addition and inplace_layernorm.h called one after another, each
// intermediate rounded to T; the sum, with a float residual, is float.
//
// Bytes moved per element (e = sizeof(T), m = mask): forward 2e read, e + m written (2e + m with
// sum); backward 2e + m read (3e + m with dsum), 2e written. As separate steps: forward 4e read,
// 3e + m written.

namespace kernels {

template <typename T>
struct ResidualLayerNormForwardArgs {
    const T* x = nullptr;       // [R, H]
    const T* bias = nullptr;    // [H], or null for 0
    Source<T> residual;         // [R, H]
    Source<T> gamma;            // [H], or null for 1
    Source<T> beta;             // [H], or null for 0
    T* y = nullptr;             // [R, H]; y == x and y == residual are allowed
    Target<T> sum;              // [R, H] of the residual's type, or null when not wanted
                                // (on the CPU a float residual needs it); sum == residual is
                                // allowed
    T* biased = nullptr;        // [R, H] x + bias, or null when not wanted; biased == x is allowed
    T* normalized = nullptr;    // [R, H] x̂, or null when not wanted
    T* centered = nullptr;      // [R, H] sum - its mean, or null when not wanted
    StatOf<T>* rstd = nullptr;  // [R]
    uint8_t* mask = nullptr;    // written: mask_bytes<T>(mask_kind, R * H)
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    int64_t hidden_size = 0;  // H
    double eps = 1e-12;
};

template <typename T>
struct ResidualLayerNormBackwardArgs {
    const T* dy = nullptr;            // [R, H]
    Source<T> dsum;                   // [R, H] gradient of sum, of its type, or null
    const T* saved = nullptr;         // [R, H] y, x̂ or sum - mean
    Source<T> gamma;                  // [H], or null for 1
    Source<T> beta;                   // [H], or null for 0; read for kOutput only
    const StatOf<T>* rstd = nullptr;  // [R]
    const uint8_t* mask = nullptr;    // what forward wrote; unused for kNone
    T* dx = nullptr;                  // [R, H]; dx == dy is allowed, dx == dresidual is not
    Target<T> dresidual;              // [R, H] of the residual's type; dresidual == dsum is allowed
                                      // unless it is float
    StatOf<T>* partials = nullptr;    // [num_partials, 2, H] as in inplace_layernorm.h, or null
    LayerNormSave save = LayerNormSave::kOutput;
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    int64_t hidden_size = 0;  // H
    int64_t num_rows = 0;     // R, as in inplace_layernorm.h
};

/// Rows [row_begin, row_end).
///
/// Types     T is float, double, Half or BFloat16.
/// Requires  row_begin a multiple of row_granularity(hidden_size), row_end one too or R.
template <typename T>
void residual_layer_norm_forward(const ResidualLayerNormForwardArgs<T>& args, int64_t row_begin,
                                 int64_t row_end);

/// All rows of partials [partial_begin, partial_end), split as layer_norm_backward's;
/// layer_norm_reduce finishes dgamma and dbeta.
template <typename T>
void residual_layer_norm_backward(const ResidualLayerNormBackwardArgs<T>& args,
                                  int64_t partial_begin, int64_t partial_end);

/// The same on CUDA for all rows, partials [layer_norm_cuda_num_partials(num_rows), 2, H].
/// Types     T is float, double, Half or BFloat16.
/// Requires  hidden_size a multiple of 8, at most kMaxFusedHiddenSize, half of it for double, which
///           serves tests; tensors that start at multiples of 16 bytes.
/// Errors    std::invalid_argument otherwise, std::runtime_error when the launch fails.
template <typename T>
void launch(const ResidualLayerNormForwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const ResidualLayerNormBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);
inline constexpr int64_t kMaxFusedHiddenSize = 8192;

}  // namespace kernels
