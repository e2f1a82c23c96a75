#pragma once

#include "profiler/layouts/encoder_ops.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// The ops of Substation's encoder layer by torch's kernels, with tensors in any dimension order
/// (profiler/layouts/encoder_ops.h). Dropout multiplies by a mask that was drawn before: drawing
/// takes the same time in every order.
namespace profiler {

/// Tensors of the layer by name and dimension order. The same name has the same values in every
/// order.
class LayoutBuffers {
public:
    LayoutBuffers(const LayoutSizes& sizes, const at::Device& device);

    /// The dimensions as they lie in memory: contiguous.
    at::Tensor memory(const std::string& name, const std::string& order);
    /// The same memory, with the dimensions in the order in which EncoderLayer lists them.
    at::Tensor logical(const std::string& name, const std::string& order);
    /// What is saved beside a tensor, in its order: "mask", 0 or 1 / 0.9, or another suffix.
    at::Tensor beside(const std::string& name, const char* suffix, const std::string& order);
    /// Mean and 1 / deviation of the LayerNorm that saved `name`, [.., 1] in memory's order.
    std::pair<at::Tensor, at::Tensor> statistics(const std::string& name, const std::string& order);
    /// A parameter that every order reads alike: a bias, or a LayerNorm's gamma or beta.
    at::Tensor parameter(const std::string& name, at::IntArrayRef shape);

    /// Replaces what `memory` returns: for ops that make their output themselves.
    void put(const std::string& name, const std::string& order, at::Tensor memory) {
        tensors_[name + ":" + order] = std::move(memory);
    }

    const DimensionSizes& sizes() const { return sizes_; }
    const std::string& dimensions(const std::string& name) const;
    /// Frees everything: the next use draws the same values again.
    void clear() { tensors_.clear(); }

private:
    at::Tensor values(const std::string& name, at::IntArrayRef shape);
    at::Tensor in_order(const std::string& key, const std::string& dimensions,
                        const std::string& order);

    DimensionSizes sizes_;
    at::Device device_;
    std::map<std::string, at::Tensor> tensors_;
};

using LayoutCall = std::function<void()>;

/// How the matrices of a batch are multiplied: by one call, or one call each.
enum class GemmCalls : uint8_t { kOne, kEach };
/// The ways in which torch takes this form without copying an operand. Its CPU kernel for batches
/// falls back to scalar loops if C is not contiguous, so there the matrices are multiplied one by
/// one.
std::vector<GemmCalls> gemm_calls(const GemmForm& form, bool is_cpu);
/// C = A B. The tensors are flat memory.
LayoutCall gemm_call(const GemmForm& form, GemmCalls calls, const at::Tensor& a,
                     const at::Tensor& b, const at::Tensor& c);

/// Runs an op that is no GEMM. `orders`: of the tensors that it reads, then of the tensors that it
/// writes. The call may write into `buffers`, which must outlive it.
LayoutCall layout_call(const EncoderOp& op, const std::vector<std::string>& orders,
                       LayoutBuffers& buffers);

}  // namespace profiler
