#pragma once

#include "kernels/types.h"

#include <cstdint>

// GELU whose backward needs the output and one bit per element, so that the input need not be
// saved.
//
// GELU falls to a minimum o_min at x* (erf: x* = -0.75179, o_min = -0.16997) and rises after it.
// Given the output o and the branch bit (x >= x*), x is determined, and so is GELU'(x). Near x* the
// derivative behaves like sqrt(o - o_min), so polynomials in o fail there; in s = sqrt(o - o_min),
// signed by the branch, it is smooth. inplace_gelu_constants.h holds piecewise polynomials in s,
// made and checked by fit/fit_gelu.py.
// Source   Tempo (Andoorveedu et al., NeurIPS 2022, arXiv 2210.10246), In-place GELU; fit our own.
//
// Error of the derivative: what rounding the stored output costs near x* (fp32 4.8e-5, fp16 6.6e-3,
// bf16 1.6e-2, there only) plus half an ulp. double inverts by Newton instead of the fit.
//
// Bytes moved per element (e = sizeof(T)): forward e read, e + mask written; backward 2e + mask
// read, e written.
// With a bias (bias + GELU in one pass, after a matrix multiplication without bias) forward takes
// no extra pass.
// Saved for backward: the output, which the next Linear saves anyway, and the mask.

namespace kernels {

enum class GeluKind : uint8_t {
    kErf,   // x * Phi(x)
    kTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};

template <typename T>
struct InplaceGeluForwardArgs {
    const T* x = nullptr;     // [n]
    T* y = nullptr;           // [n]; y == x is allowed
    uint8_t* mask = nullptr;  // written: branch bit x >= x*, mask_bytes<T>(mask_kind, n)
    MaskKind mask_kind = MaskKind::kBit;  // kByte or kBit
    GeluKind kind = GeluKind::kErf;
    const T* bias =
        nullptr;  // [bias_size] added to x, element i takes bias[i % bias_size]; or null
    int64_t bias_size = 0;
};

template <typename T>
struct InplaceGeluBackwardArgs {
    const T* dy = nullptr;          // [n]
    const T* y = nullptr;           // [n] what forward wrote
    const uint8_t* mask = nullptr;  // what forward wrote
    T* dx = nullptr;                // [n]; dx == dy and dx == y are allowed
    MaskKind mask_kind = MaskKind::kBit;
    GeluKind kind = GeluKind::kErf;
};

/// GELU (of x + bias, not rounded in between) and branch mask of elements [begin, end).
///
/// Types     T is float, double, Half or BFloat16; evaluated in float (double), rounded once.
/// Requires  begin a multiple of kElementGranularity, end one too or the number of elements.
/// Special   NaN gives NaN and branch 0; +inf gives +inf; -inf gives 0 with branch 0.
/// Truth     inplace_gelu_reference.h.
template <typename T>
void inplace_gelu_forward(const InplaceGeluForwardArgs<T>& args, int64_t begin, int64_t end);

/// dx = dy * GELU'(x) of elements [begin, end), with x recovered from y and the branch bit.
template <typename T>
void inplace_gelu_backward(const InplaceGeluBackwardArgs<T>& args, int64_t begin, int64_t end);

/// The same on CUDA for all `count` elements.
/// Errors    std::runtime_error when the launch fails.
template <typename T>
void launch(const InplaceGeluForwardArgs<T>& args, int64_t count, CudaStream stream);
template <typename T>
void launch(const InplaceGeluBackwardArgs<T>& args, int64_t count, CudaStream stream);

}  // namespace kernels
