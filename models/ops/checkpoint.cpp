#include "models/ops/checkpoint.h"

#include "models/observer/observer.h"
#include "models/ops/autocast_scope.h"

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

/// State of the autograd node beside x. An IValue carries it, so it is a CustomClassHolder.
struct Rerun : torch::CustomClassHolder {
    std::function<Tensor(const Tensor&)> run;
    std::optional<at::ScalarType> autocast_dtype;  // in forward; backward itself runs without
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
        // Parameters get their gradients inside this backward, and those gradients have no graph.
        // With create_graph, the first derivative is refused: a second derivative would lack their
        // share without an error.
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
        // Re-entrant: parameter gradients accumulate inside; this node returns the gradient of x.
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
    // This is no dispatcher op, so it announces itself, with the sequence number that its node is
    // about to get.
    const RootModuleScope charged(module_path);
    at::RecordFunction record(at::RecordScope::FUNCTION);
    if (record.isActive()) {
        record.before("tempo::checkpoint", static_cast<int64_t>(at::sequence_number::peek()));
    }
    return CheckpointFunction::apply(x, rerun);
}

}  // namespace models::ops
