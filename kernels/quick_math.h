#pragma once

#include "kernels/philox.h"  // KERNELS_HOST_DEVICE

#include <cmath>

// Functions that are one instruction each on a GPU: to 2 ulp, subnormal numbers as 0. On the host
// they are the exact ones.

namespace kernels {

KERNELS_HOST_DEVICE float quick_exp2(float v) {
#ifdef __CUDA_ARCH__
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
#else
    return std::exp2(v);
#endif
}
KERNELS_HOST_DEVICE float quick_log2(float v) {
#ifdef __CUDA_ARCH__
    float result;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
#else
    return std::log2(v);
#endif
}
KERNELS_HOST_DEVICE float quick_sqrt(float v) {
#ifdef __CUDA_ARCH__
    float result;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
#else
    return std::sqrt(v);
#endif
}
KERNELS_HOST_DEVICE float quick_reciprocal(float v) {
#ifdef __CUDA_ARCH__
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
#else
    return 1.0f / v;
#endif
}

/// The larger and the smaller of both; NaN if v is NaN, unlike fmaxf and fminf. (Compute capability
/// 7.5 has no instruction for it.)
KERNELS_HOST_DEVICE float max_or_nan(float v, float bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(v), "f"(bound));
    return result;
#else
    return v < bound ? bound : v;
#endif
}
KERNELS_HOST_DEVICE float min_or_nan(float v, float bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(v), "f"(bound));
    return result;
#else
    return v > bound ? bound : v;
#endif
}

/// `if_set` where `which` is not 0, else `otherwise`, both computed: from `?:` nvcc makes a branch
/// as soon as one of them is long, and a warp whose lanes differ then runs both sides.
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
