#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

/// What torch's autograd engine does differently on Meta than on CUDA, and how that is undone.
///
/// On CUDA the engine runs backward on a thread of its own per device, and sums the gradients that
/// meet at a tensor in place (`InputBuffer::accumulate`). On Meta it runs on the caller's thread,
/// and takes `a + b` for the sum, because it treats Meta tensors as tensor subclasses: one more
/// buffer at every residual connection.
namespace profiler {

/// Knows, while it lives, which frames of the engine run on each thread.
class EngineFrames {
public:
    EngineFrames();
    ~EngineFrames();
    EngineFrames(const EngineFrames&) = delete;
    EngineFrames& operator=(const EngineFrames&) = delete;

    /// Whether this thread is inside a backward pass, where CUDA would be on the engine's thread.
    static bool in_backward();

    /// Called in the kernel of aten::add: is it the engine that sums two gradients?
    static bool sums_gradients();

private:
    at::CallbackHandle callback_;
};

/// aten::add on Meta, in place where the engine would sum in place on CUDA.
at::Tensor add_as_on_cuda(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha);

}  // namespace profiler
