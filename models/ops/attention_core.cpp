#include "kernels/softmax_dropout.h"
#include "models/observer.h"
#include "models/ops/kernel_dispatch.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// Probabilities, dropped probabilities (empty without dropout) and keep mask.
ThreeTensors softmax_dropout_forward_cpu(const Tensor& scores,
                                         const std::optional<Tensor>& additive_mask, double scale,
                                         bool causal, int64_t num_heads, double p,
                                         std::string_view masks, at::IntArrayRef key) {
    const DropoutSpec spec = dropout_spec(p, masks, key);
    TORCH_CHECK(scores.dim() == 3 && scores.is_contiguous(),
                "tempo: scores must be contiguous [batch * heads, queries, keys]");
    const int64_t num_queries = scores.size(1);
    const int64_t num_keys = scores.size(2);
    const bool drops = spec.p > 0;
    Tensor probs = at::empty_like(scores);
    Tensor keep_mask = drops ? empty_mask(scores, spec.mask_kind)
                             : at::empty({0}, scores.options().dtype(at::kByte));
    Tensor dropped = drops ? at::empty_like(scores) : at::empty({0}, scores.options());
    const Tensor mask =
        additive_mask ? additive_mask->to(scores.scalar_type()).contiguous() : Tensor();
    with_kernel_type(scores, "scores", [&]<typename T>(T) {
        const kernels::SoftmaxDropoutForwardArgs<T> args{
            .scores = const_pointer<T>(scores),
            .additive_mask = mask.defined() ? const_pointer<T>(mask) : nullptr,
            .probs = pointer<T>(probs),
            .dropped = drops ? pointer<T>(dropped) : nullptr,
            .mask = mask_pointer(keep_mask),
            .mask_kind = spec.mask_kind,
            .dropout_p = spec.p,
            .key = spec.key,
            .scale = scale,
            .num_keys = num_keys,
            .num_queries = num_queries,
            .rows_per_mask = num_heads * num_queries,
            .causal = causal};
        const int64_t granularity = kernels::row_granularity(num_keys);
        parallel_ranges(
            scores.size(0) * num_queries, granularity, kGrainElements / num_keys,
            [&](int64_t begin, int64_t end) { softmax_dropout_forward(args, begin, end); });
    });
    return {probs, dropped, keep_mask};
}

Tensor softmax_dropout_recompute_cpu(const Tensor& probs, const Tensor& keep_mask, double p,
                                     std::string_view masks, at::IntArrayRef key) {
    const DropoutSpec spec = dropout_spec(p, masks, key);
    Tensor dropped = at::empty_like(probs);
    const int64_t num_keys = probs.size(-1);
    with_kernel_type(probs, "probs", [&]<typename T>(T) {
        const kernels::RecomputeDroppedArgs<T> args{.probs = const_pointer<T>(probs),
                                                    .dropped = pointer<T>(dropped),
                                                    .mask = mask_pointer(keep_mask),
                                                    .mask_kind = spec.mask_kind,
                                                    .dropout_p = spec.p,
                                                    .key = spec.key,
                                                    .num_keys = num_keys};
        parallel_ranges(
            probs.numel() / num_keys, kernels::row_granularity(num_keys), kGrainElements / num_keys,
            [&](int64_t begin, int64_t end) { recompute_dropped_probs(args, begin, end); });
    });
    return dropped;
}

/// Overwrites `ddropped` with dscores: backward needs no third [B*A, S, S] tensor.
Tensor& softmax_dropout_backward_cpu(Tensor& ddropped, const Tensor& probs, const Tensor& keep_mask,
                                     double scale, double p, std::string_view masks,
                                     at::IntArrayRef key) {
    const DropoutSpec spec = dropout_spec(p, masks, key);
    TORCH_CHECK(ddropped.is_contiguous() && ddropped.sizes() == probs.sizes() &&
                    ddropped.scalar_type() == probs.scalar_type(),
                "tempo: ddropped must be contiguous, with the shape and dtype of probs");
    const int64_t num_keys = probs.size(-1);
    with_kernel_type(probs, "probs", [&]<typename T>(T) {
        const kernels::SoftmaxDropoutBackwardArgs<T> args{.ddropped = const_pointer<T>(ddropped),
                                                          .probs = const_pointer<T>(probs),
                                                          .mask = mask_pointer(keep_mask),
                                                          .dscores = pointer<T>(ddropped),
                                                          .mask_kind = spec.mask_kind,
                                                          .dropout_p = spec.p,
                                                          .key = spec.key,
                                                          .scale = scale,
                                                          .num_keys = num_keys};
        parallel_ranges(
            probs.numel() / num_keys, kernels::row_granularity(num_keys), kGrainElements / num_keys,
            [&](int64_t begin, int64_t end) { softmax_dropout_backward(args, begin, end); });
    });
    return ddropped;
}

struct AttentionCoreFunction : torch::autograd::Function<AttentionCoreFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& scores, const Tensor& value,
                          const std::optional<Tensor>& additive_mask,
                          const AttentionCoreSpec& spec) {
        static const auto op =
            tempo_op<ThreeTensors(const Tensor&, const std::optional<Tensor>&, double, bool,
                                  int64_t, double, std::string_view, at::IntArrayRef)>(
                "tempo::softmax_dropout_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        const DropoutSpec& drop = spec.dropout;
        auto [probs, dropped, keep_mask] =
            op.call(scores, additive_mask, spec.scale, spec.causal, spec.num_heads, drop.p,
                    name_of(drop.mask_kind), key_array(drop.key));
        name_tensor(probs, "attention_probs");
        name_tensor(keep_mask, "keep_mask");
        ctx->save_for_backward({probs, keep_mask, value});
        ctx->saved_data["scale"] = spec.scale;
        keep_spec(*ctx, drop);
        return at::bmm((drop.p > 0 ? dropped : probs).to(value.scalar_type()), value);
    }

    /// With D' = P keep / q:  dV = D'ᵀ dO,  dD = dO Vᵀ,  dscores from dD, P and the mask.
    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto saved = ctx->get_saved_variables();
        const Tensor& probs = saved[0];
        const Tensor& keep_mask = saved[1];
        const Tensor& value = saved[2];
        const DropoutSpec spec = kept_spec(*ctx);
        const Tensor dcontext = grads[0].to(value.scalar_type());
        Tensor dvalue =
            at::bmm(dropped_probs(probs, keep_mask, spec).to(value.scalar_type()).transpose(1, 2),
                    dcontext);
        Tensor ddropped = at::bmm(dcontext, value.transpose(1, 2)).to(probs.scalar_type());
        overwrite_with_dscores(ddropped, probs, keep_mask, ctx->saved_data["scale"].toDouble(),
                               spec);
        return {ddropped, dvalue, Tensor(), Tensor()};
    }

private:
    static Tensor dropped_probs(const Tensor& probs, const Tensor& keep_mask,
                                const DropoutSpec& spec) {
        static const auto op =
            tempo_op<Tensor(const Tensor&, const Tensor&, double, std::string_view,
                            at::IntArrayRef)>("tempo::softmax_dropout_recompute");
        if (spec.p == 0) return probs;
        return op.call(probs, keep_mask, spec.p, name_of(spec.mask_kind), key_array(spec.key));
    }
    static void overwrite_with_dscores(Tensor& ddropped, const Tensor& probs,
                                       const Tensor& keep_mask, double scale,
                                       const DropoutSpec& spec) {
        static const auto op = tempo_op<Tensor&(Tensor&, const Tensor&, const Tensor&, double,
                                                double, std::string_view, at::IntArrayRef)>(
            "tempo::softmax_dropout_backward_");
        op.call(ddropped, probs, keep_mask, scale, spec.p, name_of(spec.mask_kind),
                key_array(spec.key));
    }
};

Tensor attention_core_autograd(const Tensor& scores, const Tensor& value,
                               const std::optional<Tensor>& additive_mask, double scale,
                               bool causal, int64_t num_heads, double p, std::string_view masks,
                               at::IntArrayRef key) {
    return AttentionCoreFunction::apply(scores, value, additive_mask,
                                        AttentionCoreSpec{.scale = scale,
                                                          .causal = causal,
                                                          .num_heads = num_heads,
                                                          .dropout = dropout_spec(p, masks, key)});
}

}  // namespace

Tensor attention_core(const Tensor& scores, const Tensor& value,
                      const std::optional<Tensor>& additive_mask, const AttentionCoreSpec& spec) {
    static const auto op =
        tempo_op<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
                        int64_t, double, std::string_view, at::IntArrayRef)>(
            "tempo::attention_core");
    return op.call(scores, value, additive_mask, spec.scale, spec.causal, spec.num_heads,
                   spec.dropout.p, name_of(spec.dropout.mask_kind), key_array(spec.dropout.key));
}

TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("softmax_dropout_forward", softmax_dropout_forward_cpu);
    m.impl("softmax_dropout_recompute", softmax_dropout_recompute_cpu);
    m.impl("softmax_dropout_backward_", softmax_dropout_backward_cpu);
}
TORCH_LIBRARY_IMPL(tempo, Autograd, m) { m.impl("attention_core", attention_core_autograd); }

}  // namespace models::ops
