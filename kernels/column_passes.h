#pragma once

#include "kernels/dropout.h"
#include "kernels/types.h"

#include <cstdint>
#include <type_traits>

// The fused passes of a Transformer layer that reduce nothing along a row: each element is read,
// changed and written once, and a backward pass adds up its columns on the way, since those sums
// are the gradients of biases, gamma and beta.
//
//   bias_dropout     y = residual + dropout(act(x + bias))
//       backward     dx = dropout'(dy) act'(x + bias),   dbias = sum_rows dx
//   bias_heads       heads[part][b, a, s, :] = (x + bias)[b, s, part, a, :], attention's layout
//       backward     dx likewise back,   dbias = sum_rows dx
//   scale_shift      of LayerNorm's y = gamma x̂ + beta, with a second gradient of y to add
//       backward     d = dy + dresidual,   dx̂ = d gamma,   dgamma = sum_rows d x̂,
//                    dbeta = sum_rows d,   and dbias = sum_rows of another tensor
//
// They are the memory-bound kernels of Substation (Ivanov et al., MLSys 2021, arXiv 2007.00072) but
// softmax, and of DeepSpeed's layer:
//   aib bias_heads · baib its backward · bad bias_dropout with ReLU · bdrlb its backward ·
//   bsb scale_shift's backward · ebsb the same with dresidual and dbias · baob bias_dropout's
//   backward without dx. softmax and bs are softmax_dropout.h; bdrln and blnrd
//   residual_layernorm.h.
//
// Tensors are [R, C] row-major. Sums of columns go to `partials` [P, 2, C] as LayerNorm's do
// (inplace_layernorm.h): the same split of rows, and layer_norm_reduce finishes them. A
// pass with one sum uses the first of the two.
//
// Bytes moved per element (e = sizeof(T), m = mask): what is given is read or written once:
// bias_dropout 2e + m, + e with a residual, + e if x + bias is kept; backward 3e + m, or 2e + m
// without an activation; bias_heads 2e both ways; scale_shift 3e, + e with dresidual, + e with
// another tensor.

namespace kernels {

enum class Activation : uint8_t { kNone, kRelu, kGelu, kTanhGelu };

/// Calls run(std::integral_constant<Activation, ...>) for the activation.
template <class Run>
void with_activation(Activation activation, const Run& run) {
    switch (activation) {
        case Activation::kNone:
            return run(std::integral_constant<Activation, Activation::kNone>());
        case Activation::kRelu:
            return run(std::integral_constant<Activation, Activation::kRelu>());
        case Activation::kGelu:
            return run(std::integral_constant<Activation, Activation::kGelu>());
        case Activation::kTanhGelu:
            return run(std::integral_constant<Activation, Activation::kTanhGelu>());
    }
}

template <typename T>
struct BiasDropoutForwardArgs {
    const T* x = nullptr;         // [R, C]
    const T* bias = nullptr;      // [C], or null for 0
    const T* residual = nullptr;  // [R, C], or null for 0
    T* biased = nullptr;          // [R, C] x + bias, or null when not wanted
    T* y = nullptr;               // [R, C], not the residual
    uint8_t* mask = nullptr;      // written if dropout_p > 0: mask_bytes<T>(mask_kind, R * C)
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    Activation activation = Activation::kNone;
    int64_t num_columns = 0;  // C
};

template <typename T>
struct BiasDropoutBackwardArgs {
    const T* dy = nullptr;          // [R, C]
    const T* x = nullptr;           // [R, C]; unused without an activation
    const T* bias = nullptr;        // [C], or null if x holds the sum
    const uint8_t* mask = nullptr;  // what forward wrote; unused for kNone and for dropout_p 0
    T* dx = nullptr;                // [R, C], or null when not wanted; dx == dy is allowed
    StatOf<T>* partials = nullptr;  // of dbias, or null
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
    Activation activation = Activation::kNone;
    int64_t num_columns = 0;  // C
    int64_t num_rows = 0;     // R, as in inplace_layernorm.h
};

/// Query, key and value side by side, as one GEMM writes them.
inline constexpr int64_t kHeadParts = 3;

/// The sizes of [B, S, 3, A, D] and of three tensors [B, A, S, D].
struct HeadsShape {
    int64_t seq_len = 0;    // S
    int64_t num_heads = 0;  // A
    int64_t head_dim = 0;   // D

    constexpr int64_t num_columns() const { return kHeadParts * num_heads * head_dim; }
};

template <typename T>
struct BiasHeadsForwardArgs {
    const T* x = nullptr;       // [B, S, 3, A, D]
    const T* bias = nullptr;    // [3, A, D], or null for 0
    T* heads[kHeadParts] = {};  // each [B, A, S, D]
    HeadsShape shape;
};

template <typename T>
struct BiasHeadsBackwardArgs {
    const T* dheads[kHeadParts] = {};  // each [B, A, S, D]
    T* dx = nullptr;                   // [B, S, 3, A, D]
    StatOf<T>* partials = nullptr;     // of dbias, or null
    HeadsShape shape;
    int64_t num_rows = 0;  // B * S, as in inplace_layernorm.h
};

template <typename T>
struct ScaleShiftBackwardArgs {
    const T* dy = nullptr;               // [R, C]
    const T* dresidual = nullptr;        // [R, C] added to dy, or null
    const T* normalized = nullptr;       // [R, C] x̂
    const T* gamma = nullptr;            // [C]
    const T* dlinear = nullptr;          // [R, C] whose columns are added up, or null
    T* dnormalized = nullptr;            // [R, C]; dnormalized == dy is allowed
    StatOf<T>* partials = nullptr;       // of dgamma and dbeta
    StatOf<T>* bias_partials = nullptr;  // of dlinear, or null
    int64_t num_columns = 0;             // C
    int64_t num_rows = 0;                // R, as in inplace_layernorm.h
};

/// Rows [row_begin, row_end).
///
/// Types     T is float, double, Half or BFloat16; formed in float (double). 16-bit types round
///           between activation, dropout and residual, as separate steps would.
/// Requires  row_begin a multiple of row_granularity(num_columns), row_end one too or R.
/// Truth     column_passes_reference.h.
template <typename T>
void bias_dropout_forward(const BiasDropoutForwardArgs<T>& args, int64_t row_begin,
                          int64_t row_end);
/// Any row may start a range.
template <typename T>
void bias_heads_forward(const BiasHeadsForwardArgs<T>& args, int64_t row_begin, int64_t row_end);

/// All rows of partials [partial_begin, partial_end), split as layer_norm_backward's.
template <typename T>
void bias_dropout_backward(const BiasDropoutBackwardArgs<T>& args, int64_t partial_begin,
                           int64_t partial_end);
template <typename T>
void bias_heads_backward(const BiasHeadsBackwardArgs<T>& args, int64_t partial_begin,
                         int64_t partial_end);
template <typename T>
void scale_shift_backward(const ScaleShiftBackwardArgs<T>& args, int64_t partial_begin,
                          int64_t partial_end);

/// The same on CUDA for all rows; partials [layer_norm_cuda_num_partials(num_rows), 2, C]. Rows of
/// a multiple of eight elements at aligned addresses are read in packs of 16 bytes, others one
/// element at a time.
/// Errors    std::runtime_error when the launch fails.
template <typename T>
void launch(const BiasDropoutForwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const BiasHeadsForwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const BiasDropoutBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const BiasHeadsBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);
template <typename T>
void launch(const ScaleShiftBackwardArgs<T>& args, int64_t num_rows, CudaStream stream);

}  // namespace kernels
