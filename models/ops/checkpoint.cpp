#include "models/ops/checkpoint.h"

#include "models/observer.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace models::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What the autograd node holds beside x. An IValue carries it, so it is a holder of its own.
struct Recipe : torch::CustomClassHolder {
    std::function<Tensor(const Tensor&)> run;
    std::string scope;
};

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x,
                          const c10::intrusive_ptr<Recipe>& recipe) {
        // Not a dispatcher op, so it announces itself; its node was made just before this call.
        at::RecordFunction record(at::RecordScope::FUNCTION);
        if (record.isActive()) {
            record.before("tempo::checkpoint",
                          static_cast<int64_t>(at::sequence_number::peek()) - 1);
        }
        ctx->save_for_backward({x});
        ctx->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
        const at::AutoGradMode no_grad(false);
        return recipe->run(x);
    }

    static variable_list backward(AutogradContext* ctx, variable_list grads) {
        const auto recipe =
            c10::static_intrusive_pointer_cast<Recipe>(ctx->saved_data["recipe"].toCapsule());
        Tensor x = ctx->get_saved_variables()[0].detach();
        x.set_requires_grad(true);
        Tensor y;
        {
            const at::AutoGradMode grad(true);
            const Scope scope(recipe->scope);
            y = recipe->run(x);
        }
        // Re-entrant: parameter gradients accumulate on the way, x's is what this node returns.
        torch::autograd::backward({y}, {grads[0]});
        return {x.grad(), Tensor()};
    }
};

}  // namespace

Tensor checkpoint(std::function<Tensor(const Tensor&)> run, const Tensor& x) {
    auto recipe = c10::make_intrusive<Recipe>();
    recipe->run = std::move(run);
    recipe->scope = Scope::current();
    return CheckpointFunction::apply(x, recipe);
}

}  // namespace models::ops
