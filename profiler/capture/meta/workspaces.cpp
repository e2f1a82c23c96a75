#include "profiler/capture/meta/workspaces.h"

#include "profiler/capture/meta/engine.h"

#include <ATen/ops/addmm_meta_dispatch.h>
#include <ATen/ops/bmm_meta_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_meta_dispatch.h>

#include <algorithm>

namespace profiler {
namespace {

using at::Tensor;

Tensor bytes(int64_t count) { return at::empty({count}, at::device(at::kMeta).dtype(at::kByte)); }

/// Rows or columns of the last two dimensions lie densely, at a distance that BLAS can step over.
bool is_readable(const Tensor& factor) {
    const int64_t row = factor.dim() - 2, column = factor.dim() - 1;
    const auto steps_over = [&](int64_t dense, int64_t other) {
        return factor.stride(dense) == 1 &&
               factor.stride(other) >= std::max<int64_t>(1, factor.size(dense));
    };
    return steps_over(column, row) || steps_over(row, column);
}

/// prepare_matrix_for_cublas and prepare_batch_matrix_for_cublas in Blas.cpp: undefined where the
/// factor can be read as it is.
Tensor dense_copy(const Tensor& factor) {
    return is_readable(factor) ? Tensor() : at::empty(factor.sizes(), factor.options());
}

}  // namespace

BlasWorkspaces::OfThread& BlasWorkspaces::of_this_thread() {
    return threads_[EngineFrames::in_backward() ? 1 : 0];
}

void BlasWorkspaces::use_cublas() {
    OfThread& thread = of_this_thread();
    if (!thread.cublas.defined())
        thread.cublas = bytes(models::cublas_workspace_bytes(capability_));
}

void BlasWorkspaces::use_cublas_lt() {
    use_cublas();
    OfThread& thread = of_this_thread();
    if (!thread.cublas_lt.defined()) thread.cublas_lt = bytes(models::kCublasLtWorkspaceBytes);
}

std::vector<std::pair<std::string, Tensor>> BlasWorkspaces::named() const {
    std::vector<std::pair<std::string, Tensor>> result;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
        const std::string thread = i == 0 ? " (forward)" : " (backward)";
        if (threads_[i].cublas.defined()) {
            result.emplace_back("cublas_workspace" + thread, threads_[i].cublas);
        }
        if (threads_[i].cublas_lt.defined()) {
            result.emplace_back("cublaslt_workspace" + thread, threads_[i].cublas_lt);
        }
    }
    return result;
}

Tensor mm_as_on_cuda(BlasWorkspaces& workspaces, const Tensor& a, const Tensor& b) {
    const Tensor result = at::meta::mm(a, b);
    const Tensor copies[] = {dense_copy(a), dense_copy(b)};
    workspaces.use_cublas();
    return result;
}

Tensor bmm_as_on_cuda(BlasWorkspaces& workspaces, const Tensor& a, const Tensor& b) {
    const Tensor result = at::meta::bmm(a, b);
    const Tensor copies[] = {dense_copy(a), dense_copy(b)};
    workspaces.use_cublas();
    return result;
}

/// addmm_out_cuda_impl in Blas.cpp: a bias row becomes the epilogue of a cuBLASLt product.
Tensor addmm_as_on_cuda(BlasWorkspaces& workspaces, const Tensor& bias, const Tensor& a,
                        const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
    const Tensor result = at::meta::addmm(bias, a, b, beta, alpha);
    const Tensor copies[] = {dense_copy(a), dense_copy(b)};
    const bool has_epilogue = beta.toDouble() == 1 && bias.dim() == 1 && bias.is_contiguous() &&
                              bias.size(0) == b.size(1) && b.size(0) > 1 && b.size(1) > 1;
    if (has_epilogue) {
        workspaces.use_cublas_lt();
    } else {
        workspaces.use_cublas();
    }
    return result;
}

}  // namespace profiler
