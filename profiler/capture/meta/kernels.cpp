#include "profiler/capture/meta/kernels.h"

#include "models/config/cuda_memory.h"
#include "profiler/capture/meta/attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_softmax_backward_data_meta_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

// What CUDA's kernels allocate, each with the source that says so. "2.11" marks what was also seen
// in the library of torch 2.11 itself, by the calls that the function makes.
namespace profiler {
namespace {

using at::Tensor;
using c10::SymInt;
using c10::SymIntArrayRef;

Tensor dense_like(const Tensor& tensor) {
    return at::empty_like(tensor, at::MemoryFormat::Contiguous);
}

// ---- LayerNorm ----------------------------------------------------------------------------------

/// layer_norm_cuda in layer_norm_kernel.cu: statistics are fp32 for 16-bit inputs.
std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, SymIntArrayRef normalized_shape,
                                              const std::optional<Tensor>&,
                                              const std::optional<Tensor>&, double) {
    const int64_t num_leading = x.dim() - static_cast<int64_t>(normalized_shape.size());
    std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
    std::fill(shape.begin() + num_leading, shape.end(), 1);
    const at::ScalarType statistic = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor y = dense_like(x);
    const Tensor mean = at::empty(shape, x.options().dtype(statistic));
    const Tensor rstd = at::empty(shape, x.options().dtype(statistic));
    return {y, mean, rstd};
}

/// layer_norm_backward_cuda: no scratch (up to 65536 rows).
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor&, const Tensor& x,
                                                       SymIntArrayRef, const Tensor&, const Tensor&,
                                                       const std::optional<Tensor>& gamma,
                                                       const std::optional<Tensor>& beta,
                                                       std::array<bool, 3> wanted) {
    const Tensor dx = wanted[0] ? dense_like(x) : Tensor();
    const Tensor dgamma = wanted[1] && gamma ? dense_like(*gamma) : Tensor();
    const Tensor dbeta = wanted[2] && beta ? dense_like(*beta) : Tensor();
    return {dx, dgamma, dbeta};
}

// ---- embedding ----------------------------------------------------------------------------------

/// index_select_cuda in Indexing.cu; torch's embedding calls it.
Tensor index_select(const Tensor& table, int64_t dim, const Tensor& index) {
    std::vector<int64_t> shape = table.sizes().vec();
    shape.at(static_cast<std::size_t>(dim)) = index.numel();
    return at::empty(shape, table.options());
}

/// embedding_backward_cuda_kernel in EmbeddingBackwardKernel.cu (2.11): rows of one token are cut
/// into segments of at most 10, each summed in fp32, then added up. The number of segments is
/// bounded without looking at the tokens.
Tensor sum_by_token(const Tensor& dy, const Tensor& indices, int64_t num_tokens) {
    constexpr int64_t kRowsPerThread = 10;
    const int64_t num_rows = indices.numel();
    const int64_t hidden_size = dy.size(-1);
    const int64_t max_segments = std::min(num_rows, num_tokens);
    const int64_t max_parts = num_rows / kRowsPerThread + max_segments;
    const at::TensorOptions index = indices.options();
    const at::ScalarType sum = dy.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    Tensor dtable = at::empty({num_tokens, hidden_size}, dy.options());
    const Tensor segment_offsets = at::empty({num_rows}, index);
    const Tensor num_segments = at::empty({}, index);
    { const Tensor unique_keys = at::empty({num_rows}, index); }  // of cub's unique_by_key
    const Tensor parts_per_segment = at::empty({max_segments}, index);
    const Tensor part_offsets = at::empty({max_segments}, index);
    const Tensor num_parts = at::empty({}, index);
    const Tensor rows_of_part = at::empty({max_parts}, index);
    const Tensor sums = at::empty({max_parts, hidden_size}, dy.options().dtype(sum));
    return dtable;
}

/// embedding_dense_backward_cuda in Embedding.cu (2.11): few tokens are added one by one; more are
/// sorted first, by cub, whose radix sort takes a second pair of arrays.
Tensor embedding_backward(const Tensor& dy, const Tensor& indices, SymInt num_weights, SymInt,
                          bool scale_by_frequency) {
    const int64_t num_tokens = num_weights.expect_int();
    if (indices.numel() <= models::kMostUnsortedTokens && !scale_by_frequency) {
        return at::empty({num_tokens, dy.size(-1)}, dy.options());
    }
    const Tensor sorted = dense_like(indices);
    const Tensor original_order = dense_like(indices);
    {
        const Tensor order = at::empty({indices.numel()}, indices.options());
        const Tensor second_pair = at::empty({2 * indices.numel()}, indices.options());
    }
    return sum_by_token(dy, indices, num_tokens);
}

// ---- element-wise -------------------------------------------------------------------------------

/// native_dropout_cuda in Dropout.cu: the mask comes first.
std::tuple<Tensor, Tensor> dropout(const Tensor& x, double, std::optional<bool>) {
    const Tensor mask = at::empty_like(x, x.options().dtype(at::kBool));
    const Tensor y = at::empty_like(x);
    return {y, mask};
}

Tensor dropout_backward(const Tensor& dy, const Tensor&, double) { return at::empty_like(dy); }

Tensor relu(const Tensor& x) { return at::empty_like(x); }

/// softmax_backward_cuda_out in SoftMax.cu (2.11): dP P is a tensor of its own.
Tensor softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, at::ScalarType input_type) {
    const Tensor dx = at::meta::_softmax_backward_data(dy, y, dim, input_type);
    const Tensor product = dense_like(dy);
    return dx;
}

// ---- lists of tensors ---------------------------------------------------------------------------

/// ForeachUnaryOp.cu: one kernel; the results are made first, in order.
std::vector<Tensor> foreach_sqrt(at::TensorList tensors) {
    std::vector<Tensor> results;
    results.reserve(tensors.size());
    for (const Tensor& tensor : tensors) results.push_back(at::empty_like(tensor));
    return results;
}

/// An op that changes its first argument, in one kernel and without scratch, and returns nothing.
void change_nothing(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    torch::jit::drop(*stack, op.schema().arguments().size());
}

constexpr const char* kInPlaceLists[] = {"_foreach_add_.Scalar",
                                         "_foreach_add_.List",
                                         "_foreach_mul_.Scalar",
                                         "_foreach_div_.Scalar",
                                         "_foreach_lerp_.Scalar",
                                         "_foreach_addcmul_.Scalar",
                                         "_foreach_addcdiv_.Scalar",
                                         "_foreach_copy_",
                                         "_fused_adamw_",
                                         "_amp_foreach_non_finite_check_and_unscale_"};

}  // namespace

MetaKernels::MetaKernels(models::ComputeCapability capability)
    : workspaces_(capability),
      aten_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    aten_.impl("native_layer_norm", layer_norm);
    aten_.impl("native_layer_norm_backward", layer_norm_backward);
    aten_.impl("index_select", index_select);
    aten_.impl("embedding_dense_backward", embedding_backward);
    aten_.impl("native_dropout", dropout);
    aten_.impl("native_dropout_backward", dropout_backward);
    aten_.impl("relu", relu);
    aten_.impl("_softmax_backward_data", softmax_backward);
    aten_.impl("add.Tensor", add_as_on_cuda);
    aten_.impl("_foreach_sqrt", foreach_sqrt);
    for (const char* name : kInPlaceLists) {
        aten_.impl(name, torch::CppFunction::makeFromBoxedFunction<&change_nothing>());
    }
    register_meta_attention(aten_);
    register_matrix_products();
}

void MetaKernels::register_matrix_products() {
    aten_.impl("mm", [this](const Tensor& a, const Tensor& b) {
        return mm_as_on_cuda(workspaces_, a, b);
    });
    aten_.impl("bmm", [this](const Tensor& a, const Tensor& b) {
        return bmm_as_on_cuda(workspaces_, a, b);
    });
    aten_.impl("addmm", [this](const Tensor& bias, const Tensor& a, const Tensor& b,
                               const at::Scalar& beta, const at::Scalar& alpha) {
        return addmm_as_on_cuda(workspaces_, bias, a, b, beta, alpha);
    });
}

}  // namespace profiler
