#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string>

namespace profiler {

/// Why flash attention cannot take a call of aten::scaled_dot_product_attention on the GPU, in
/// torch's own sentences; empty: it can. `arguments`: of the op. Where the memory-efficient kernel
/// cannot take it either, its reasons follow.
/// Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
std::string flash_refusal(c10::ArrayRef<const c10::IValue> arguments);

}  // namespace profiler
