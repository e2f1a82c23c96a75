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
    int64_t elements_read = 0;
    int64_t elements_written = 0;
};

/// Whose kernels run: an op that is one kernel on CUDA (`_foreach_mul_`) may call other ops on the
/// CPU, and then those count.
enum class OpSet : uint8_t { kCpu, kCuda };

/// None for ops that only call other ops (aten::linear) or only make views: what they call counts.
std::optional<OpClass> op_class_of(std::string_view name, OpSet ops);

/// What an op's cost needs to know of its inputs, which torch shows only while the op begins.
struct OpInputs {
    int64_t words = 0;
    int64_t largest_words = 0;
    int64_t first_words = 0;        // of the first argument: a tensor, or a list of them
    int64_t contracted_length = 0;  // K of a matrix product
    int64_t attention_flop = 0;     // of one of the two products of an attention op
};

/// `inputs` are the tensors of the call in schema order, `num_first` of them the first argument's.
OpInputs summarize_inputs(std::string_view name, OpClass op_class,
                          std::span<const at::Tensor> inputs, std::size_t num_first);

OpCost cost_of(std::string_view name, OpClass op_class, const OpInputs& inputs,
               std::span<const at::Tensor> outputs);

}  // namespace profiler
