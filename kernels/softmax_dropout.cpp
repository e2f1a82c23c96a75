// Softmax and dropout of attention on the CPU. Bytes per element (e = size of T, m = mask): forward
// e read, 2e + m written; D' e + m read, e written; backward 2e + m read, e written. A row stays in
// cache between its passes. Bounds: those bytes over the bandwidth; in forward one exponential per
// element; Philox as in dropout.cpp.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax_dropout.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
// foreach_target.h comes first

#include "kernels/dispatch.h"
#include "kernels/softmax_dropout-inl.h"
#include "kernels/softmax_dropout.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

KERNELS_TARGET_FUNCTIONS(softmax_dropout_forward, SoftmaxDropoutForwardArgs)
KERNELS_TARGET_FUNCTIONS(recompute_dropped_probs, RecomputeDroppedArgs)
KERNELS_TARGET_FUNCTIONS(softmax_dropout_backward, SoftmaxDropoutBackwardArgs)

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

KERNELS_DISPATCH(softmax_dropout_forward, SoftmaxDropoutForwardArgs)
KERNELS_DISPATCH(recompute_dropped_probs, RecomputeDroppedArgs)
KERNELS_DISPATCH(softmax_dropout_backward, SoftmaxDropoutBackwardArgs)

}  // namespace kernels
#endif  // HWY_ONCE
