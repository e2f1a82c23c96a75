#include "profiler/capture/meta/attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <array>
#include <optional>
#include <tuple>

// Shapes as in torch/_meta_registrations.py of torch 2.11. Scratch as in the sources named at each
// kernel. query, key and value are [B, A, S, D]; the kernels see them as [B, S, A, D].
namespace profiler {
namespace {

using at::Tensor;
using c10::SymInt;

using FusedForward =
    std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt, Tensor, Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;

int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

struct Sizes {
    explicit Sizes(const Tensor& query)
        : batch(query.size(0)), heads(query.size(1)), seq_len(query.size(2)), dim(query.size(3)) {}
    int64_t batch, heads, seq_len, dim;
};

Tensor fp32(const Tensor& like, at::IntArrayRef shape) {
    return at::empty(shape, like.options().dtype(at::kFloat));
}

/// [B, A, S, D] over dense [B, S, A, D].
Tensor by_token(const Tensor& heads) {
    const Sizes s(heads);
    return at::empty({s.batch, s.seq_len, s.heads, s.dim}, heads.options()).transpose(1, 2);
}

/// The kernels read gradients and outputs as dense [B, S, A, D]: a copy where they are not.
Tensor copy_if_not_dense(const Tensor& heads) {
    return heads.transpose(1, 2).is_contiguous() ? Tensor() : by_token(heads);
}

// ---- flash --------------------------------------------------------------------------------------

/// mha_fwd in flash_api.cpp. Two generator states are made even without dropout, and with it the
/// first one a second time. The keys are not split (`num_splits`) for the sizes of training.
FusedForward flash_forward(const Tensor& query, const Tensor& key, const Tensor&, double dropout_p,
                           bool, bool, std::optional<double>) {
    const Sizes s(query);
    const at::TensorOptions uint64 = query.options().dtype(at::kUInt64);
    const Tensor out = by_token(query);
    const Tensor logsumexp = fp32(query, {s.batch, s.heads, s.seq_len});
    Tensor rng_state = at::empty({2}, uint64);
    const Tensor unused = at::empty({}, uint64);
    if (dropout_p > 0) rng_state = at::empty({2}, uint64);
    const Tensor debug_mask = at::empty({0}, query.options());
    return {out,       logsumexp, Tensor(),  Tensor(), SymInt(s.seq_len), SymInt(key.size(2)),
            rng_state, unused,    debug_mask};
}

/// mha_bwd in flash_api.cpp: the gradients, then the row sums of dO O and the fp32 sums of dQ, both
/// over sequences rounded to 128; heads rounded to 32 (over 128: to 64).
ThreeTensors flash_backward(const Tensor& dout, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor& out, const Tensor&, const Tensor&,
                            const Tensor&, SymInt, SymInt, double, bool, const Tensor&,
                            const Tensor&, std::optional<double>) {
    const Sizes s(query);
    const int64_t rounded_len = round_up(s.seq_len, 128);
    const int64_t rounded_dim = round_up(s.dim, s.dim <= 128 ? 32 : 64);
    const Tensor copies[] = {copy_if_not_dense(dout), copy_if_not_dense(out)};
    const Tensor dquery = by_token(query), dkey = by_token(key), dvalue = by_token(value);
    const Tensor row_sums = fp32(query, {s.batch, s.heads, rounded_len});
    const Tensor dquery_sums = fp32(query, {s.batch, rounded_len, s.heads, rounded_dim});
    return {dquery, dkey, dvalue};
}

// ---- memory-efficient ---------------------------------------------------------------------------

/// _efficient_attention_forward in attention.cu. Rows of the logarithms are rounded to 32; seed and
/// offset of the generator are tensors on the host.
FourTensors efficient_forward(const Tensor& query, const Tensor&, const Tensor&,
                              const std::optional<Tensor>&, bool compute_log_sumexp, double, bool,
                              std::optional<double>) {
    const Sizes s(query);
    const int64_t rounded_len = compute_log_sumexp ? round_up(s.seq_len, 32) : 0;
    const Tensor out = by_token(query);
    const Tensor logsumexp = fp32(query, {s.batch, s.heads, rounded_len});
    return {out, logsumexp, at::empty({}, at::kLong), at::empty({}, at::kLong)};
}

/// _efficient_attention_backward in attention_backward.cu: the gradients, the row sums of dO O,
/// and for 16-bit types a workspace in which dQ is summed in fp32, in blocks of 64 rows and
/// columns. In fp32 the row sums are made by tensor ops: a product of the size of dO, its sum, and
/// a transposed copy of that.
FourTensors efficient_backward(const Tensor& dout, const Tensor& query, const Tensor& key,
                               const Tensor& value, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&, double, std::array<bool, 4>, bool,
                               std::optional<double>) {
    constexpr int64_t kBlock = 64;
    const Sizes s(query);
    const Tensor copy = copy_if_not_dense(dout);
    const Tensor dquery = by_token(query), dkey = by_token(key), dvalue = by_token(value);
    Tensor workspace;
    if (query.scalar_type() == at::kFloat) {
        const Tensor product = by_token(dout);
        const Tensor sum = fp32(query, {s.batch, s.seq_len, s.heads});
        workspace = fp32(query, {s.batch, s.heads, s.seq_len});
    } else {
        const Tensor row_sums = fp32(query, {s.batch, s.heads, s.seq_len});
        workspace =
            fp32(query, {s.batch, s.heads, round_up(s.seq_len, kBlock), round_up(s.dim, kBlock)});
    }
    return {dquery, dkey, dvalue, Tensor()};
}

// ---- cuDNN --------------------------------------------------------------------------------------

/// _cudnn_attention_forward: the output in the query's layout, logarithms [B, A, S, 1], seed and
/// offset on the device. The workspace of cuDNN's plan is not known here.
FusedForward cudnn_forward(const Tensor& query, const Tensor& key, const Tensor&,
                           const std::optional<Tensor>&, bool, double, bool, bool,
                           std::optional<double>) {
    const Sizes s(query);
    const at::TensorOptions int64 = query.options().dtype(at::kLong);
    const Tensor seed = at::empty({}, int64);
    const Tensor offset = at::empty({}, int64);
    const Tensor out = by_token(query);
    const Tensor logsumexp = fp32(query, {s.batch, s.heads, s.seq_len, 1});
    return {out,  logsumexp, Tensor(), Tensor(), SymInt(s.seq_len), SymInt(key.size(2)),
            seed, offset,    Tensor()};
}

ThreeTensors cudnn_backward(const Tensor&, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor&, const Tensor&, const Tensor&,
                            const Tensor&, const Tensor&, const Tensor&, const Tensor&, SymInt,
                            SymInt, double, bool, std::optional<double>) {
    return {by_token(query), by_token(key), by_token(value)};
}

}  // namespace

void register_meta_attention(torch::Library& aten) {
    aten.impl("_scaled_dot_product_flash_attention", flash_forward);
    aten.impl("_scaled_dot_product_flash_attention_backward", flash_backward);
    aten.impl("_scaled_dot_product_efficient_attention", efficient_forward);
    aten.impl("_scaled_dot_product_efficient_attention_backward", efficient_backward);
    aten.impl("_scaled_dot_product_cudnn_attention", cudnn_forward);
    aten.impl("_scaled_dot_product_cudnn_attention_backward", cudnn_backward);
}

}  // namespace profiler
