#include "profiler/capture/torch_hooks.h"

#include "models/observer/callback_target.h"
#include "profiler/capture/recorder.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstring>
#include <memory>
#include <optional>

namespace profiler {
namespace {

models::CallbackTarget<Recorder> active_recorder;

// ---- ops -------------------------------------------------------------------------------------

struct OpContext : at::ObserverContext {
    OpContext(uint64_t recorder_generation, Recorder::RunningOp running_op)
        : generation(recorder_generation), op(std::move(running_op)) {}
    uint64_t generation;  // of the recorder that recorded its begin
    Recorder::RunningOp op;
};

/// Factories and resizes allocate on behalf of the op around them, which gets the allocation.
bool is_factory(const char* name) {
    return std::strncmp(name, "aten::empty", 11) == 0 ||
           std::strncmp(name, "aten::resize", 12) == 0;
}

std::unique_ptr<at::ObserverContext> on_op_begin(const at::RecordFunction& function) {
    if (is_factory(function.name())) return nullptr;
    std::unique_ptr<at::ObserverContext> context;
    active_recorder.with([&](Recorder& recorder) {
        context = std::make_unique<OpContext>(recorder.generation(), recorder.begin_op(function));
    });
    return context;
}

void on_op_end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context == nullptr) return;
    const auto& op_context = *static_cast<OpContext*>(context);
    active_recorder.with([&](Recorder& recorder) {
        if (recorder.generation() == op_context.generation) {
            recorder.end_op(function, op_context.op);
        }
    });
}

// ---- saved tensors ---------------------------------------------------------------------------

/// Holds a saved tensor for autograd, and so knows when autograd releases it. By then the recorder
/// of the save may be gone, and another one may be active.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
public:
    explicit SavedTensorHooks(const Recorder& recorder) : generation_(recorder.generation()) {}

    void call_pack_hook(const at::Tensor& tensor) override {
        // Without the tensor's autograd history, which would keep the graph alive in a cycle.
        tensor_ = tensor.tensor_data();
        with_own_recorder([&](Recorder& recorder) { save_ = recorder.save(tensor); });
    }
    at::Tensor call_unpack_hook() override { return tensor_; }

    ~SavedTensorHooks() override {
        if (!save_.valid()) return;
        with_own_recorder([&](Recorder& recorder) { recorder.release(save_); });
    }

private:
    template <typename Use>
    void with_own_recorder(const Use& use) {
        active_recorder.with([&](Recorder& recorder) {
            if (recorder.generation() == generation_) use(recorder);
        });
    }

    uint64_t generation_;
    at::Tensor tensor_;
    Id<Save> save_;
};

/// Autograd asks torch's engine for the default hooks of each tensor that it saves.
class HookingEngine final : public torch::autograd::Engine {
public:
    static torch::autograd::Engine& instance() {
        static auto* const engine = new HookingEngine;  // never destroyed: threads may outlive main
        return *engine;
    }
    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
        override {
        std::unique_ptr<SavedTensorHooks> hooks;
        active_recorder.with([&](const Recorder& recorder) {
            hooks = std::make_unique<SavedTensorHooks>(recorder);
        });
        return hooks;
    }
};

}  // namespace

void install_hook_engine() {
    [[maybe_unused]] static const bool installed = [] {
        torch::autograd::set_default_engine_stub(&HookingEngine::instance);
        return true;
    }();
}

void install_torch_hooks(Recorder* recorder) {
    install_hook_engine();
    static std::optional<at::CallbackHandle> callback;
    if (recorder && !callback) {
        callback = at::addGlobalCallback(
            at::RecordFunctionCallback(on_op_begin, on_op_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    } else if (!recorder && callback) {
        at::removeCallback(*callback);
        callback.reset();
    }
    active_recorder.set(recorder);
}

}  // namespace profiler
