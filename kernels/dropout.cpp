// Dropout on the CPU. Per 64 elements: 8 Philox counters, one 64-bit word of keep bits, one
// multiplication per element. Bytes per element: forward e read, e + m written; backward e + m
// read, e written (e = size of T, m = 1, e, 1/8 or 0). Bound: about one cycle per element of Philox
// on AVX2 against e / bandwidth.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/dispatch.h"
#include "kernels/dropout-inl.h"
#include "kernels/dropout.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

KERNELS_TARGET_FUNCTIONS(dropout_forward, DropoutForwardArgs)
KERNELS_TARGET_FUNCTIONS(dropout_backward, DropoutBackwardArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cmath>

namespace kernels {

uint32_t keep_threshold(double dropout_p) {
    const double kept = std::round((1.0 - dropout_p) * kPhiloxRange);
    return static_cast<uint32_t>(std::min(std::max(kept, 0.0), double{kPhiloxRange}));
}

double keep_scale(uint32_t threshold) {
    return threshold == 0 ? 0.0 : double{kPhiloxRange} / threshold;
}

KERNELS_DISPATCH(dropout_forward, DropoutForwardArgs)
KERNELS_DISPATCH(dropout_backward, DropoutBackwardArgs)

}  // namespace kernels

#endif  // HWY_ONCE
