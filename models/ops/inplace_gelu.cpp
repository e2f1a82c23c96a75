#include "kernels/inplace_gelu.h"

#include "models/observer.h"
#include "models/ops/kernel_dispatch.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using TwoTensors = std::tuple<Tensor, Tensor>;

kernels::GeluKind gelu_kind(bool tanh) {
    return tanh ? kernels::GeluKind::kTanh : kernels::GeluKind::kErf;
}
const char* approximation(bool tanh) { return tanh ? "tanh" : "none"; }

/// A branch bit cannot be drawn again: where dropout masks are not stored it takes one bit.
kernels::MaskKind branch_mask_kind(std::string_view masks) {
    const kernels::MaskKind kind = parse_mask_kind(masks);
    return kind == kernels::MaskKind::kNone ? kernels::MaskKind::kBit : kind;
}

TwoTensors gelu_forward_cpu(const Tensor& x, bool tanh, std::string_view masks) {
    const kernels::MaskKind kind = branch_mask_kind(masks);
    const Tensor source = x.contiguous();
    Tensor y = at::empty_like(source);
    Tensor branch_mask = empty_mask(source, kind);
    with_kernel_type(source, "x", [&]<typename T>(T) {
        const kernels::InplaceGeluForwardArgs<T> args{.x = const_pointer<T>(source),
                                                      .y = pointer<T>(y),
                                                      .mask = mask_pointer(branch_mask),
                                                      .mask_kind = kind,
                                                      .kind = gelu_kind(tanh)};
        parallel_ranges(
            source.numel(), kernels::kElementGranularity, kGrainElements,
            [&](int64_t begin, int64_t end) { inplace_gelu_forward(args, begin, end); });
    });
    return {y, branch_mask};
}

Tensor gelu_backward_cpu(const Tensor& dy, const Tensor& y, const Tensor& branch_mask, bool tanh,
                         std::string_view masks) {
    TORCH_CHECK(y.is_contiguous(), "tempo: y is not contiguous; pass what forward returned");
    TORCH_CHECK(dy.sizes() == y.sizes() && dy.scalar_type() == y.scalar_type(),
                "tempo: dy has another shape or dtype than y");
    const Tensor upstream = dy.contiguous();
    Tensor dx = at::empty_like(upstream);
    with_kernel_type(upstream, "dy", [&]<typename T>(T) {
        const kernels::InplaceGeluBackwardArgs<T> args{.dy = const_pointer<T>(upstream),
                                                       .y = const_pointer<T>(y),
                                                       .mask = mask_pointer(branch_mask),
                                                       .dx = pointer<T>(dx),
                                                       .mask_kind = branch_mask_kind(masks),
                                                       .kind = gelu_kind(tanh)};
        parallel_ranges(
            upstream.numel(), kernels::kElementGranularity, kGrainElements,
            [&](int64_t begin, int64_t end) { inplace_gelu_backward(args, begin, end); });
    });
    return dx;
}

struct InplaceGeluFunction : torch::autograd::Function<InplaceGeluFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, bool tanh,
                          std::string_view masks) {
        static const auto op =
            tempo_op<TwoTensors(const Tensor&, bool, std::string_view)>("tempo::gelu_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, branch_mask] = op.call(x, tanh, masks);
        name_tensor(branch_mask, "branch_mask");
        ctx->save_for_backward({y, branch_mask});
        ctx->saved_data["tanh"] = tanh;
        ctx->saved_data["masks"] = std::string(masks);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op =
            tempo_op<Tensor(const Tensor&, const Tensor&, const Tensor&, bool, std::string_view)>(
                "tempo::gelu_backward");
        const auto saved = ctx->get_saved_variables();
        return {op.call(grads[0], saved[0], saved[1], ctx->saved_data["tanh"].toBool(),
                        ctx->saved_data["masks"].toStringRef()),
                Tensor(), Tensor()};
    }
};

/// Keeps x and not gelu(x): dW = dyᵀ gelu(x), db = Σ dy, dx = (dy W) gelu'(x).
struct GeluLinearFunction : torch::autograd::Function<GeluLinearFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                          const Tensor& bias, bool tanh) {
        at::AutoDispatchBelowADInplaceOrView guard;
        ctx->save_for_backward({x, weight});
        ctx->saved_data["tanh"] = tanh;
        return at::linear(at::gelu(x, approximation(tanh)), weight, bias);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto saved = ctx->get_saved_variables();
        const Tensor& x = saved[0];
        const Tensor& weight = saved[1];
        const char* const kind = approximation(ctx->saved_data["tanh"].toBool());
        const Tensor dy = grads[0].reshape({-1, weight.size(0)});
        const Tensor dweight = at::mm(dy.t(), at::gelu(x, kind).reshape({-1, weight.size(1)}));
        const Tensor dgelu = at::mm(dy, weight).view(x.sizes());
        return {at::gelu_backward(dgelu, x, kind), dweight, at::sum(dy, 0), Tensor()};
    }
};

Tensor gelu_autograd(const Tensor& x, bool tanh, std::string_view masks) {
    return InplaceGeluFunction::apply(x, tanh, masks);
}
Tensor gelu_linear_autograd(const Tensor& x, const Tensor& weight, const Tensor& bias, bool tanh) {
    return GeluLinearFunction::apply(x, weight, bias, tanh);
}

}  // namespace

Tensor inplace_gelu(const Tensor& x, bool tanh, kernels::MaskKind mask_kind) {
    static const auto op = tempo_op<Tensor(const Tensor&, bool, std::string_view)>("tempo::gelu");
    return op.call(x, tanh, name_of(mask_kind));
}

Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool tanh) {
    static const auto op =
        tempo_op<Tensor(const Tensor&, const Tensor&, const Tensor&, bool)>("tempo::gelu_linear");
    return op.call(x, weight, bias, tanh);
}

TORCH_LIBRARY_IMPL(tempo, CPU, m) {
    m.impl("gelu_forward", gelu_forward_cpu);
    m.impl("gelu_backward", gelu_backward_cpu);
}
TORCH_LIBRARY_IMPL(tempo, Autograd, m) {
    m.impl("gelu", gelu_autograd);
    m.impl("gelu_linear", gelu_linear_autograd);
}

}  // namespace models::ops
