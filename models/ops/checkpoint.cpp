#include "models/ops/checkpoint.h"

#include "models/observer/observer.h"
#include "models/ops/autocast_scope.h"

#include <ATen/Context.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <optional>
#include <utility>

namespace models::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// From where torch's generator of `device` draws: a tensor on the CPU, 5056 bytes for the CPU's
/// generator and 16 for a GPU's.
Tensor generator_state(at::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    return generator.get_state();
}

void set_generator_state(at::Device device, const Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

/// torch's generator of `device` draws from `state` on for the lifetime of the object.
class GeneratorScope {
public:
    GeneratorScope(at::Device device, const Tensor& state)
        : device_(device), outer_(generator_state(device)) {
        set_generator_state(device_, state);
    }
    ~GeneratorScope() { set_generator_state(device_, outer_); }
    GeneratorScope(const GeneratorScope&) = delete;
    GeneratorScope& operator=(const GeneratorScope&) = delete;

private:
    at::Device device_;
    Tensor outer_;
};

/// State of the autograd node beside its inputs. An IValue carries it as a CustomClassHolder.
struct Rerun : torch::CustomClassHolder {
    CheckpointedRun run;
    std::optional<at::ScalarType> autocast_dtype;  // in forward; backward itself runs without
    Tensor generator_state;                        // before forward ran
};

struct CheckpointFunction : torch::autograd::Function<CheckpointFunction> {
    static Tensor forward(AutogradContext* ctx, at::TensorList inputs,
                          const c10::intrusive_ptr<Rerun>& rerun) {
        ctx->save_for_backward(inputs.vec());
        ctx->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
        const at::AutoGradMode no_grad(false);
        return rerun->run(inputs);
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
        variable_list inputs;
        for (const Tensor& saved : ctx->get_saved_variables()) {
            inputs.push_back(saved.detach().set_requires_grad(true));
        }
        Tensor y;
        {
            const at::AutoGradMode grad(true);
            const AutocastScope autocast(inputs[0].device().type(), rerun->autocast_dtype);
            const GeneratorScope generator(inputs[0].device(), rerun->generator_state);
            y = rerun->run(inputs);
        }
        // Re-entrant: parameter gradients accumulate inside; this node returns those of its inputs.
        torch::autograd::backward({y}, {grads[0]});
        variable_list gradients;
        for (const Tensor& input : inputs) gradients.push_back(input.grad());
        gradients.emplace_back();  // of the rerun
        return gradients;
    }
};

}  // namespace

Tensor checkpoint(const std::string& module_path, CheckpointedRun run, at::TensorList inputs) {
    for (const Tensor& input : inputs) {
        TORCH_CHECK(!at::GradMode::is_enabled() || input.requires_grad(),
                    "tempo: checkpoint needs inputs that require grad, or its parameters would "
                    "silently get none; let the embeddings train, or checkpoint from the second "
                    "layer on");
    }
    auto rerun = c10::make_intrusive<Rerun>();
    rerun->run = std::move(run);
    rerun->autocast_dtype = AutocastScope::current(inputs[0].device().type());
    rerun->generator_state = generator_state(inputs[0].device());
    // This is no dispatcher op, so it announces itself, with the sequence number that its node is
    // about to get.
    const RootModuleScope charged(module_path);
    at::RecordFunction record(at::RecordScope::FUNCTION);
    if (record.isActive()) {
        record.before("tempo::checkpoint", static_cast<int64_t>(at::sequence_number::peek()));
    }
    return CheckpointFunction::apply(inputs, rerun);
}

}  // namespace models::ops
