#include "profiler/capture/torch_adapter/torch_hooks.h"

#include "models/observer/callback_target.h"
#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/capture/torch_adapter/passing_engine.h"

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace profiler {
namespace {

models::CallbackTarget<TorchListener> active_listener;
std::atomic<InnerTensors> inner_tensors = nullptr;

/// Calls use(listener) if that is still the listener of this generation.
template <typename Use>
void with_listener(uint64_t generation, const Use& use) {
    active_listener.with([&](TorchListener& listener) {
        if (listener.generation() == generation) use(listener);
    });
}

// ---- ops -------------------------------------------------------------------------------------

/// Factories and resizes allocate on behalf of the op around them, which gets the allocation.
bool is_factory(const char* name) {
    return std::strncmp(name, "aten::empty", 11) == 0 ||
           std::strncmp(name, "aten::resize", 12) == 0;
}

/// A dispatch mode written in Python calls the op again below it: the op is counted there.
bool is_dispatch_mode(const char* name) {
    return std::strncmp(name, "PythonDispatchMode", 18) == 0;
}

std::unique_ptr<at::ObserverContext> on_op_begin(const at::RecordFunction& function) {
    if (is_factory(function.name()) || is_dispatch_mode(function.name())) return nullptr;
    std::unique_ptr<at::ObserverContext> context;
    active_listener.with([&](TorchListener& listener) { context = listener.begin_op(function); });
    return context;
}

void on_op_end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context == nullptr) return;
    auto& op = *static_cast<RunningOp*>(context);
    const FuturePtr work = op.collective.valid() ? work_of(function) : FuturePtr();
    with_listener(op.generation, [&](TorchListener& listener) {
        listener.end_op(function, op);
        if (op.collective.valid()) listener.end_collective_call(op.collective, work != nullptr);
    });
    if (!work) return;
    const auto on_done = [collective = op.collective,
                          generation = op.generation](c10::ivalue::Future&) {
        with_listener(generation,
                      [&](TorchListener& listener) { listener.end_collective(collective); });
    };
    // It does not read the values, so no stream waits for others.
    work->addCallback(on_done, /*uses_future=*/false);
}

// ---- saved tensors ---------------------------------------------------------------------------

/// Whether the tensor has a storage of its own. A tensor of a subclass has none, and neither has a
/// tensor that a transform (vmap, grad) wraps.
bool is_plain(const at::Tensor& tensor) {
    constexpr c10::DispatchKeySet kWrapped(
        {c10::DispatchKey::Python, c10::DispatchKey::FuncTorchGradWrapper,
         c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::Functionalize});
    return !tensor.key_set().has_any(kWrapped);
}

/// Autograd's check that a saved tensor was not changed in place. Torch leaves it out where there
/// are hooks, since it does not know what they keep.
class ChangeCheck {
public:
    explicit ChangeCheck(const at::Tensor& tensor) {
        if (tensor.is_inference()) return;  // has no version
        version_ = tensor.unsafeGetTensorImpl()->version_counter();
        saved_version_ = version_->current_version();
    }
    /// Throws c10::Error, in torch's own words, if `tensor` has changed since.
    void require_unchanged(const at::Tensor& tensor) const {
        if (!version_ || version_->current_version() == saved_version_) return;
        TORCH_CHECK(false,
                    "one of the variables needed for gradient computation has been modified by an "
                    "inplace operation: [",
                    tensor.toString(), " ", tensor.sizes(), "] is at version ",
                    version_->current_version(), "; expected version ", saved_version_,
                    " instead.");
    }

private:
    std::optional<c10::VariableVersion> version_;
    uint32_t saved_version_ = 0;
};

/// Holds a saved tensor for autograd, and so knows when autograd releases it. By then the listener
/// of the save may be gone, and another one may be active.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
public:
    explicit SavedTensorHooks(uint64_t generation) : generation_(generation) {}

    void call_pack_hook(const at::Tensor& tensor) override {
        check_.emplace(tensor);
        // Without the tensor's autograd history, which would keep the graph alive in a cycle.
        if (is_plain(tensor)) {
            tensor_ = tensor.tensor_data();
            save({&tensor, 1});
        } else {
            tensor_ = tensor.detach();  // tensor_data() would lose the wrapper
            if (const InnerTensors of = inner_tensors) save(of(tensor));
        }
    }
    at::Tensor call_unpack_hook() override {
        check_->require_unchanged(tensor_);
        return tensor_;
    }

    ~SavedTensorHooks() override {
        if (saves_.empty()) return;
        with_listener(generation_, [&](TorchListener& listener) {
            for (const Id<Save> save : saves_) listener.release(save);
        });
    }

private:
    void save(std::span<const at::Tensor> tensors) {
        with_listener(generation_, [&](TorchListener& listener) {
            for (const at::Tensor& tensor : tensors) {
                const Id<Save> save = listener.save(tensor);
                if (save.valid()) saves_.push_back(save);
            }
        });
    }

    uint64_t generation_;
    at::Tensor tensor_;
    std::optional<ChangeCheck> check_;
    c10::SmallVector<Id<Save>, 1> saves_;
};

/// Autograd asks torch's engine for the default hooks of each tensor that it saves. The hooks of
/// the previous engine come first: in Python they are those of checkpoints and save_on_cpu.
class HookingEngine final : public PassingEngine {
public:
    using PassingEngine::PassingEngine;

    static torch::autograd::Engine& instance() { return *installed; }
    static void install() {
        if (installed != nullptr) return;
        // Never destroyed: threads may outlive main.
        installed = new HookingEngine(torch::autograd::Engine::get_default_engine());
        torch::autograd::set_default_engine_stub(&HookingEngine::instance);
    }

    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
        override {
        if (auto hooks = PassingEngine::get_default_saved_variable_hooks()) return hooks;
        std::unique_ptr<SavedTensorHooks> hooks;
        active_listener.with([&](const TorchListener& listener) {
            hooks = std::make_unique<SavedTensorHooks>(listener.generation());
        });
        return hooks;
    }

private:
    inline static HookingEngine* installed = nullptr;
};

}  // namespace

void install_hook_engine() { HookingEngine::install(); }

void set_inner_tensors(InnerTensors of) { inner_tensors = of; }

void install_torch_hooks(TorchListener* listener) {
    install_hook_engine();
    static std::optional<at::CallbackHandle> callback;
    if (listener && !callback) {
        callback = at::addGlobalCallback(
            at::RecordFunctionCallback(on_op_begin, on_op_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    } else if (!listener && callback) {
        at::removeCallback(*callback);
        callback.reset();
    }
    active_listener.set(listener);
}

}  // namespace profiler
