#pragma once

#include "kernels/types.h"

// Defining a function template of a public header by Highway's run-time dispatch, for the four
// types.
//
//   per target, in kernels::HWY_NAMESPACE   KERNELS_TARGET_FUNCTIONS(dropout_forward,
//   DropoutForwardArgs)
//       needs a template dropout_forward_range(args, begin, end)
//   once, in kernels                        KERNELS_DISPATCH(dropout_forward, DropoutForwardArgs)
// Highway's table holds plain functions, hence one name per type.

#define KERNELS_TARGET_FUNCTION(op, Args, T, suffix)                      \
    void op##_##suffix(const Args<T>& args, int64_t begin, int64_t end) { \
        op##_range<T>(args, begin, end);                                  \
    }
#define KERNELS_TARGET_FUNCTIONS(op, Args)         \
    KERNELS_TARGET_FUNCTION(op, Args, float, f32)  \
    KERNELS_TARGET_FUNCTION(op, Args, double, f64) \
    KERNELS_TARGET_FUNCTION(op, Args, Half, f16)   \
    KERNELS_TARGET_FUNCTION(op, Args, BFloat16, bf16)

#define KERNELS_DISPATCH_TYPE(op, Args, T, suffix)                \
    HWY_EXPORT(op##_##suffix);                                    \
    template <>                                                   \
    void op<T>(const Args<T>& args, int64_t begin, int64_t end) { \
        HWY_DYNAMIC_DISPATCH(op##_##suffix)(args, begin, end);    \
    }
#define KERNELS_DISPATCH(op, Args)               \
    KERNELS_DISPATCH_TYPE(op, Args, float, f32)  \
    KERNELS_DISPATCH_TYPE(op, Args, double, f64) \
    KERNELS_DISPATCH_TYPE(op, Args, Half, f16)   \
    KERNELS_DISPATCH_TYPE(op, Args, BFloat16, bf16)
