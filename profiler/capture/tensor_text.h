#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <vector>

namespace profiler {

/// "[8, 512, 1024]".
std::string list_text(at::IntArrayRef values);

DType dtype_of(at::ScalarType type);

/// All defined tensors among the values, also those in lists.
std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> values);

}  // namespace profiler
