#pragma once

#include "profiler/protocol/virtual_gpu_values.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

/// The values of tensors in the memory of a virtual GPU.
namespace profiler {

/// Of the virtual GPU in this process; null: there is none.
const virtual_gpu::Values* device_values();

/// Whether the tensor is on a GPU and has memory of its own with strides: no subclass, no sparse
/// tensor, none that a transform wraps.
bool is_plain_on_gpu(const at::Tensor& tensor);

/// Whether there is memory on the GPU behind it, plain or not.
bool has_memory_on_gpu(const at::Tensor& tensor);
/// From the first element to the last.
int64_t memory_bytes(const at::Tensor& tensor);

bool has_known_values(const at::Tensor& tensor);
/// A tensor of the CPU with the same sizes, strides and values. Unknown ones are zeros.
at::Tensor values_on_cpu(const at::Tensor& tensor);
/// The same without values, for an op that fills it.
at::Tensor same_on_cpu(const at::Tensor& tensor);

/// The values of `tensor` are those of `values`, a tensor of the CPU with the same sizes.
void set_values(const at::Tensor& tensor, const at::Tensor& values);
/// Each element is `value`.
void set_all(const at::Tensor& tensor, const at::Scalar& value);
void forget_values(const at::Tensor& tensor);

}  // namespace profiler
