#include "profiler/capture/torch_hooks.h"

#include "profiler/capture/recorder.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>

namespace profiler {
namespace {

std::atomic<Recorder*> active_recorder{nullptr};

// ---- ops -------------------------------------------------------------------------------------

struct OpContext : at::ObserverContext {
    explicit OpContext(Recorder::RunningOp running_op) : op(std::move(running_op)) {}
    Recorder::RunningOp op;
};

/// Factories and resizes allocate on behalf of the op around them: that op is who allocates.
bool is_factory(const char* name) {
    return std::strncmp(name, "aten::empty", 11) == 0 ||
           std::strncmp(name, "aten::resize", 12) == 0;
}

std::unique_ptr<at::ObserverContext> on_op_begin(const at::RecordFunction& function) {
    Recorder* const recorder = active_recorder.load(std::memory_order_relaxed);
    if (!recorder || is_factory(function.name())) return nullptr;
    return std::make_unique<OpContext>(recorder->begin_op(function));
}

void on_op_end(const at::RecordFunction& function, at::ObserverContext* context) {
    Recorder* const recorder = active_recorder.load(std::memory_order_relaxed);
    if (recorder && context) recorder->end_op(function, static_cast<OpContext*>(context)->op);
}

// ---- saved tensors ---------------------------------------------------------------------------

/// Holds a saved tensor in autograd's place, and so knows when autograd lets go of it.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
public:
    explicit SavedTensorHooks(Recorder& recorder)
        : recorder_(&recorder), generation_(recorder.generation()) {}

    void call_pack_hook(const at::Tensor& tensor) override {
        // Without the variable's history: keeping that would keep the graph alive in a cycle.
        tensor_ = tensor.tensor_data();
        save_ = recorder_->save(tensor);
    }
    at::Tensor call_unpack_hook() override { return tensor_; }

    ~SavedTensorHooks() override {
        // The recorder that saw the save may be gone, and another stand in its place.
        Recorder* const active = active_recorder.load();
        if (save_.valid() && active == recorder_ && active->generation() == generation_) {
            recorder_->release(save_);
        }
    }

private:
    Recorder* recorder_;
    uint64_t generation_;
    at::Tensor tensor_;
    Id<Save> save_;
};

/// torch's engine, asked by autograd for the default hooks of each tensor that it saves.
class HookingEngine final : public torch::autograd::Engine {
public:
    static torch::autograd::Engine& instance() {
        static auto* const engine = new HookingEngine;  // never destroyed: threads may outlive main
        return *engine;
    }
    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
        override {
        Recorder* const recorder = active_recorder.load(std::memory_order_relaxed);
        return recorder ? std::make_unique<SavedTensorHooks>(*recorder) : nullptr;
    }
};

}  // namespace

void install_torch_hooks(Recorder* recorder) {
    [[maybe_unused]] static const bool installed = [] {
        torch::autograd::set_default_engine_stub(&HookingEngine::instance);
        return true;
    }();
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
    active_recorder = recorder;
}

}  // namespace profiler
