#include "models/observer/observer.h"
#include "models/ops/arguments.h"
#include "models/ops/dropout_kernels.h"
#include "models/ops/tempo_ops.h"

#include <torch/library.h>

#include <atomic>

namespace models::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const DropoutCall& drop) {
        static const auto op = tempo_op<decltype(dropout_forward<Cpu>)>("tempo::dropout_forward");
        at::AutoDispatchBelowADInplaceOrView guard;
        auto [y, keep_mask] = op.call(x, drop.p, name_of(drop.mask_kind), drop.key);
        name_tensor(keep_mask, "keep_mask");
        ctx->save_for_backward({keep_mask});
        keep_call(*ctx, drop);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        static const auto op = tempo_op<decltype(dropout_backward<Cpu>)>("tempo::dropout_backward");
        const DropoutCall drop = kept_call(*ctx);
        const Tensor keep_mask = ctx->get_saved_variables()[0];
        return once_differentiable("tempo::dropout", grads, [&]() -> variable_list {
            return {op.call(grads[0], keep_mask, drop.p, name_of(drop.mask_kind), drop.key),
                    Tensor()};
        });
    }
};

Tensor dropout_op(const Tensor& x, double p, std::string_view masks, c10::SymIntArrayRef key) {
    check_floating(x, "x");
    return DropoutFunction::apply(x, dropout_call(p, masks, key));
}

std::atomic<bool> g_replayed_masks_allowed = false;

/// Returns what was allowed before.
bool allow_replayed_masks(bool allowed) { return g_replayed_masks_allowed.exchange(allowed); }

}  // namespace

bool replayed_masks_allowed() { return g_replayed_masks_allowed; }

Tensor dropout(const Tensor& x, const DropoutSpec& spec) {
    static const auto op = tempo_op<decltype(dropout_op)>("tempo::dropout");
    return op.call(x, spec.p, name_of(spec.mask_kind), key_array(spec.key));
}

TORCH_LIBRARY_FRAGMENT(tempo, m) {
    m.def("allow_replayed_masks(bool allowed) -> bool", allow_replayed_masks);
}
TORCH_LIBRARY_IMPL(tempo, CompositeImplicitAutograd, m) { m.impl("dropout", dropout_op); }

}  // namespace models::ops
