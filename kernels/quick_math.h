#pragma once

#include "kernels/philox.h"  // KERNELS_HOST_DEVICE

#include <cmath>

// Functions that are one instruction each on a GPU: to 2 ulp, subnormal numbers as 0. On the host
// they are the exact ones.

namespace kernels {

#ifdef __CUDA_ARCH__
#define KERNELS_QUICK_MATH(name, instruction, on_the_host)   \
    KERNELS_HOST_DEVICE float name(float v) {                \
        float result;                                        \
        asm(instruction " %0, %1;" : "=f"(result) : "f"(v)); \
        return result;                                       \
    }
#else
#define KERNELS_QUICK_MATH(name, instruction, on_the_host) \
    KERNELS_HOST_DEVICE float name(float v) { return on_the_host; }
#endif
KERNELS_QUICK_MATH(quick_exp2, "ex2.approx.ftz.f32", std::exp2(v))
KERNELS_QUICK_MATH(quick_log2, "lg2.approx.ftz.f32", std::log2(v))
KERNELS_QUICK_MATH(quick_sqrt, "sqrt.approx.ftz.f32", std::sqrt(v))
KERNELS_QUICK_MATH(quick_reciprocal, "rcp.approx.ftz.f32", 1.0f / v)
#undef KERNELS_QUICK_MATH

// The larger and the smaller of both; NaN if v is NaN, unlike fmaxf and fminf. (Compute capability
// 7.5 has no instruction for it.)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define KERNELS_BOUND(name, instruction, exceeds)                            \
    KERNELS_HOST_DEVICE float name(float v, float bound) {                   \
        float result;                                                        \
        asm(instruction " %0, %1, %2;" : "=f"(result) : "f"(v), "f"(bound)); \
        return result;                                                       \
    }
#else
#define KERNELS_BOUND(name, instruction, exceeds) \
    KERNELS_HOST_DEVICE float name(float v, float bound) { return v exceeds bound ? bound : v; }
#endif
KERNELS_BOUND(max_or_nan, "max.NaN.f32", <)
KERNELS_BOUND(min_or_nan, "min.NaN.f32", >)
#undef KERNELS_BOUND

/// `if_set` where `which` is not 0, else `otherwise`. Both values are computed: nvcc makes a branch
/// from a `?:` with a long side, and a warp with differing lanes then runs both sides.
KERNELS_HOST_DEVICE float select(uint32_t which, float if_set, float otherwise) {
#ifdef __CUDA_ARCH__
    float result;
    asm("{ .reg .pred set; setp.ne.u32 set, %1, 0; selp.f32 %0, %2, %3, set; }"
        : "=f"(result)
        : "r"(which), "f"(if_set), "f"(otherwise));
    return result;
#else
    return which != 0 ? if_set : otherwise;
#endif
}

}  // namespace kernels
