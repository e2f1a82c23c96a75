#include "models/ops/checkpoint.h"

#include "models/autocast/autocast_scope.h"
#include "models/observer/observer.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

namespace models::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What the autograd node holds beside x. An IValue carries it, so it is a holder of its own.
struct Rerun : torch::CustomClassHolder {
    std::function<Tensor(const Tensor&)> run;
    std::optional<at::ScalarType> autocast_dtype;  // of the forward; backward itself runs without
};

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x,
                          const c10::intrusive_ptr<Rerun>& rerun) {
        ctx->save_for_backward({x});
        ctx->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
        const at::AutoGradMode no_grad(false);
        return rerun->run(x);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        // Parameters get their gradients on the way, and those have no graph: with one asked for,
        // what is refused is the first derivative, before a second lacks their share in silence.
        TORCH_CHECK(!at::GradMode::is_enabled(),
                    "tempo::checkpoint has no second derivative: backward was asked for "
                    "create_graph=True");
        const auto rerun =
            c10::static_intrusive_pointer_cast<Rerun>(ctx->saved_data["rerun"].toCapsule());
        Tensor x = ctx->get_saved_variables()[0].detach();
        x.set_requires_grad(true);
        Tensor y;
        {
            const at::AutoGradMode grad(true);
            const AutocastScope autocast(x.device().type(), rerun->autocast_dtype);
            y = rerun->run(x);
        }
        // Re-entrant: parameter gradients accumulate on the way, x's is what this node returns.
        torch::autograd::backward({y}, {grads[0]});
        return {x.grad(), Tensor()};
    }
};

}  // namespace

Tensor checkpoint(const std::string& module_path, std::function<Tensor(const Tensor&)> run,
                  const Tensor& x) {
    TORCH_CHECK(!at::GradMode::is_enabled() || x.requires_grad(),
                "tempo: checkpoint needs an x that requires grad, or its parameters would silently "
                "get none; let the embeddings train, or checkpoint from the second layer on");
    auto rerun = c10::make_intrusive<Rerun>();
    rerun->run = std::move(run);
    rerun->autocast_dtype = AutocastScope::current(x.device().type());
    // Not a dispatcher op, so it announces itself, with the number that its node is about to get.
    const RootModuleScope charged(module_path);
    at::RecordFunction record(at::RecordScope::FUNCTION);
    if (record.isActive()) {
        record.before("tempo::checkpoint", static_cast<int64_t>(at::sequence_number::peek()));
    }
    return CheckpointFunction::apply(x, rerun);
}

}  // namespace models::ops
