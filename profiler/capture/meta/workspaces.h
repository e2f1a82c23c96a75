#pragma once

#include "models/config/cuda_memory.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace profiler {

/// The workspaces that PyTorch gives to cuBLAS and cuBLASLt, from its caching allocator.
///
/// One per (handle, stream), and handles belong to threads: the thread that runs forward and the
/// autograd engine's thread take one each at their first matrix product, and keep it.
/// Their sizes stand in models/config/cuda_memory.h; cuBLASLt's is a block of its own unless
/// TORCH_CUBLASLT_UNIFIED_WORKSPACE is set.
class BlasWorkspaces {
public:
    explicit BlasWorkspaces(models::ComputeCapability capability) : capability_(capability) {}

    /// For a matrix product on this thread.
    void use_cublas();
    /// For one with a bias, which runs in cuBLASLt: its handle is cuBLAS's, and takes that
    /// workspace too.
    void use_cublas_lt();

    /// What there is so far, with names.
    std::vector<std::pair<std::string, at::Tensor>> named() const;

private:
    struct OfThread {
        at::Tensor cublas, cublas_lt;  // bytes
    };
    OfThread& of_this_thread();

    models::ComputeCapability capability_;
    std::array<OfThread, 2> threads_;  // forward, backward
};

// Matrix products on Meta, with what CUDA's kernels allocate beside the result: workspaces, and
// dense copies of factors that BLAS cannot read in place.
at::Tensor mm_as_on_cuda(BlasWorkspaces& workspaces, const at::Tensor& a, const at::Tensor& b);
at::Tensor bmm_as_on_cuda(BlasWorkspaces& workspaces, const at::Tensor& a, const at::Tensor& b);
at::Tensor addmm_as_on_cuda(BlasWorkspaces& workspaces, const at::Tensor& bias, const at::Tensor& a,
                            const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha);

}  // namespace profiler
