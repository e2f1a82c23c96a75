#include "models/observer.h"
#include "models/ops/kernel_dispatch.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using TwoTensors = std::tuple<Tensor, Tensor>;

TwoTensors dropout_forward_cpu(const Tensor& x, double p, std::string_view masks,
                               at::IntArrayRef key) {
    const DropoutSpec spec = dropout_spec(p, masks, key);
    const Tensor source = x.contiguous();
    // at::native_dropout allocates the mask before the output; so do we.
    Tensor keep_mask = empty_mask(source, spec.mask_kind);
    Tensor y = at::empty_like(source);
    with_kernel_type(source, "x", [&]<typename T>(T) {
        const kernels::DropoutForwardArgs<T> args{.x = const_pointer<T>(source),
                                                  .y = pointer<T>(y),
                                                  .mask = mask_pointer(keep_mask),
                                                  .mask_kind = spec.mask_kind,
                                                  .dropout_p = spec.p,
                                                  .key = spec.key};
        parallel_ranges(source.numel(), kernels::kElementGranularity, kGrainElements,
                        [&](int64_t begin, int64_t end) { dropout_forward(args, begin, end); });
    });
    return {y, keep_mask};
}

Tensor dropout_backward_cpu(const Tensor& dy, const Tensor& keep_mask, double p,
                            std::string_view masks, at::IntArrayRef key) {
    const DropoutSpec spec = dropout_spec(p, masks, key);
    const Tensor upstream = dy.contiguous();
    Tensor dx = at::empty_like(upstream);
    with_kernel_type(upstream, "dy", [&]<typename T>(T) {
        const kernels::DropoutBackwardArgs<T> args{.dy = const_pointer<T>(upstream),
                                                   .dx = pointer<T>(dx),
                                                   .mask = mask_pointer(keep_mask),
                                                   .mask_kind = spec.mask_kind,
                                                   .dropout_p = spec.p,
                                                   .key = spec.key};
        parallel_ranges(upstream.numel(), kernels::kElementGranularity, kGrainElements,
                        [&](int64_t begin, int64_t end) { dropout_backward(args, begin, end); });
    });
    return dx;
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const DropoutSpec& spec) {
        static const auto op =
            tempo_op<TwoTensors(const Tensor&, double, std::string_view, at::IntArrayRef)>(
                "tempo::dropout_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, keep_mask] = op.call(x, spec.p, name_of(spec.mask_kind), key_array(spec.key));
        name_tensor(keep_mask, "keep_mask");
        ctx->save_for_backward({keep_mask});
        keep_spec(*ctx, spec);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<Tensor(const Tensor&, const Tensor&, double, std::string_view,
                            at::IntArrayRef)>("tempo::dropout_backward");
        const DropoutSpec spec = kept_spec(*ctx);
        const Tensor keep_mask = ctx->get_saved_variables()[0];
        return {op.call(grads[0], keep_mask, spec.p, name_of(spec.mask_kind), key_array(spec.key)),
                Tensor()};
    }
};

Tensor dropout_autograd(const Tensor& x, double p, std::string_view masks, at::IntArrayRef key) {
    return DropoutFunction::apply(x, dropout_spec(p, masks, key));
}

}  // namespace

Tensor dropout(const Tensor& x, const DropoutSpec& spec) {
    static const auto op =
        tempo_op<Tensor(const Tensor&, double, std::string_view, at::IntArrayRef)>(
            "tempo::dropout");
    return op.call(x, spec.p, name_of(spec.mask_kind), key_array(spec.key));
}

TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("dropout_forward", dropout_forward_cpu);
    m.impl("dropout_backward", dropout_backward_cpu);
}
TORCH_LIBRARY_IMPL(tempo, Autograd, m) { m.impl("dropout", dropout_autograd); }

}  // namespace models::ops
