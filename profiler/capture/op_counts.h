#pragma once

#include "profiler/trace/trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string_view>

namespace profiler {

/// Arithmetic and data movement of one op, counted as in Ivanov et al., "Data Movement Is All You
/// Need": a GEMM is 2 M N K, other ops count as profiler/trace/flop_counts.h says; movement is the
/// elements of all inputs and outputs, each counted once.
struct OpCounts {
    OpClass op_class = OpClass::kOther;
    int64_t flop = 0;
    int64_t read_words = 0;
    int64_t written_words = 0;
};

/// The elements of a tensor that are in memory: those along a broadcast dimension are one.
int64_t stored_words(const at::Tensor& tensor);

/// The device whose ops are counted. An op that is one kernel on CUDA (`_foreach_mul_`) may call
/// other ops on the CPU; there the called ops count.
enum class OpSet : uint8_t { kCpu, kCuda };

/// None for ops that only call other ops (aten::linear), which count themselves, and for views.
std::optional<OpClass> op_class_of(std::string_view name, OpSet ops);

/// What an op's counts depend on in its inputs. torch shows inputs only while the op begins.
struct OpInputs {
    int64_t words = 0;
    int64_t largest_words = 0;
    int64_t first_words = 0;        // of the first argument: a tensor, or a list of them
    int64_t flop_per_element = 0;   // of an op that is no contraction
    int64_t contracted_length = 0;  // K of a GEMM
    int64_t product_flop = 0;       // of attention, a convolution, an RNN; 0: the output tells
};

/// `arguments` are those of the call in schema order, `tensors` the tensors in them. Requires an op
/// that has a class.
OpInputs summarize_inputs(std::string_view name, OpClass op_class,
                          std::span<const c10::IValue> arguments,
                          std::span<const at::Tensor> tensors);

OpCounts counts_of(std::string_view name, OpClass op_class, const OpInputs& inputs,
                   std::span<const at::Tensor> outputs);

}  // namespace profiler
