#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <string_view>

namespace profiler {

/// Arithmetic and data movement of one op, counted as Ivanov et al. count them ("Data Movement Is
/// All You Need"): a matrix product is 2 M N K, exp, tanh and sqrt are one operation each, and
/// movement is the words (elements) of all inputs and outputs, each once.
struct OpCost {
    OpClass op_class = OpClass::kOther;
    int64_t flop = 0;
    int64_t read_words = 0;
    int64_t written_words = 0;
};

/// None for ops that only call other ops (aten::linear) or only make views: what they call counts.
std::optional<OpClass> op_class_of(std::string_view name);

/// `inputs` and `outputs` are the tensors of the call, in schema order.
OpCost cost_of(std::string_view name, OpClass op_class, std::span<const at::Tensor> inputs,
               std::span<const at::Tensor> outputs);

}  // namespace profiler
