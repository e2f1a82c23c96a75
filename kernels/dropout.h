#pragma once

#include "kernels/types.h"

#include <cstdint>

// Dropout whose mask is a function of (seed, rank, step, layer, site, element), the same on every
// device.
//
//     threshold = round((1 - p) * 2^16),   q = threshold / 2^16,   keep[i] = r16[i] < threshold
//     y[i] = keep[i] ? x[i] / q : 0,   dx[i] = keep[i] ? dy[i] / q : 0
//
// r16 are the 16-bit halves of Philox4x32-10 (Salmon et al., SC 2011) with
//     key     = (low word of seed, high word of seed xor rank)   (seed, rank) for seeds below 2^32
//     counter = (i / 8, step, layer, site)
// Element i takes half i % 8: word (i % 8) / 2, low half when i is even. i counts the logical
// tensor in row-major order, so a mask does not depend on how the work was split. Up to
// kMaxDrawnElements: beyond them the counter's first word would begin again. Callers check.
//
// The keep probability is quantized to q, and 1/q (not 1/(1-p)) is the scale, so that E[y] = x
// exactly. |q - (1-p)| <= 2^-17. p = 0 keeps everything, p = 1 gives zeros.
//
// Bytes moved per element (e = sizeof(T)): forward e read + e + mask written, backward the same
// with the mask read; mask is 1 (byte), 1/8 (bit) or 0 (none).

namespace kernels {

inline constexpr int64_t kMaxDrawnElements = int64_t{1} << 35;

/// The identity of a dropout mask. Two sites that share all fields drop the same elements.
struct DropoutKey {
    uint64_t seed = 0;
    uint32_t rank = 0;   // process of a data-parallel job
    uint32_t step = 0;   // training iteration
    uint32_t layer = 0;  // index of the layer
    uint32_t site = 0;   // which dropout inside the layer
};

/// How many of the 65536 values of r16 keep an element: round((1 - p) * 2^16).
uint32_t keep_threshold(double dropout_p);

/// 1 / q for a threshold; 0 if nothing is kept.
double keep_scale(uint32_t threshold);

template <typename T>
struct DropoutForwardArgs {
    const T* x = nullptr;     // [n]
    T* y = nullptr;           // [n]; y == x is allowed
    uint8_t* mask = nullptr;  // written: mask_bytes<T>(mask_kind, n); unused for kNone
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;
};

template <typename T>
struct DropoutBackwardArgs {
    const T* dy = nullptr;          // [n]
    T* dx = nullptr;                // [n]; dx == dy is allowed
    const uint8_t* mask = nullptr;  // as written by forward; unused for kNone
    MaskKind mask_kind = MaskKind::kByte;
    double dropout_p = 0;
    DropoutKey key;  // read for kNone only
};

/// Dropout of elements [begin, end).
///
/// Types     T is float, double, Half or BFloat16; formed in float (double) and rounded once.
/// Requires  begin a multiple of kElementGranularity, end one too or the number of elements.
/// Special   a dropped NaN or inf gives 0.
/// Truth     dropout_reference.h.
template <typename T>
void dropout_forward(const DropoutForwardArgs<T>& args, int64_t begin, int64_t end);

/// Gradient of dropout for elements [begin, end); applied to x it recomputes y bit for bit.
template <typename T>
void dropout_backward(const DropoutBackwardArgs<T>& args, int64_t begin, int64_t end);

/// The same on CUDA for all `count` elements; the masks equal the CPU's bit for bit.
/// Errors    std::runtime_error when the launch fails.
template <typename T>
void launch(const DropoutForwardArgs<T>& args, int64_t count, CudaStream stream);
template <typename T>
void launch(const DropoutBackwardArgs<T>& args, int64_t count, CudaStream stream);

}  // namespace kernels
