#include "profiler/capture/torch_hooks.h"

#include "models/observer/callback_target.h"
#include "profiler/capture/collective_call.h"
#include "profiler/capture/recorder.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace profiler {
namespace {

models::CallbackTarget<Recorder> active_recorder;
std::atomic<InnerTensors> inner_tensors = nullptr;

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

/// A dispatch mode written in Python calls the op again below it: the op is counted there.
bool is_dispatch_mode(const char* name) {
    return std::strncmp(name, "PythonDispatchMode", 18) == 0;
}

std::unique_ptr<at::ObserverContext> on_op_begin(const at::RecordFunction& function) {
    if (is_factory(function.name()) || is_dispatch_mode(function.name())) return nullptr;
    std::unique_ptr<at::ObserverContext> context;
    active_recorder.with([&](Recorder& recorder) {
        context = std::make_unique<OpContext>(recorder.generation(), recorder.begin_op(function));
    });
    return context;
}

void on_op_end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context == nullptr) return;
    const auto& op_context = *static_cast<OpContext*>(context);
    const Id<Collective> collective = op_context.op.collective;
    const FuturePtr work = collective.valid() ? work_of(function) : FuturePtr();
    active_recorder.with([&](Recorder& recorder) {
        if (recorder.generation() != op_context.generation) return;
        recorder.end_op(function, op_context.op);
        if (collective.valid()) recorder.end_collective_call(collective, work != nullptr);
    });
    if (!work) return;
    const auto on_done = [collective, generation = op_context.generation](c10::ivalue::Future&) {
        active_recorder.with([&](Recorder& recorder) {
            if (recorder.generation() == generation) recorder.end_collective(collective);
        });
    };
    // It does not read the values, so no stream waits for others.
    work->addCallback(on_done, /*uses_future=*/false);
}

// ---- saved tensors ---------------------------------------------------------------------------

/// Whether the tensor has a storage of its own. Tensors of a subclass and those that a transform
/// (vmap, grad) wraps have none.
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

/// Holds a saved tensor for autograd, and so knows when autograd releases it. By then the recorder
/// of the save may be gone, and another one may be active.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
public:
    explicit SavedTensorHooks(const Recorder& recorder) : generation_(recorder.generation()) {}

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
        with_own_recorder([&](Recorder& recorder) {
            for (const Id<Save> save : saves_) recorder.release(save);
        });
    }

private:
    void save(std::span<const at::Tensor> tensors) {
        with_own_recorder([&](Recorder& recorder) {
            for (const at::Tensor& tensor : tensors) {
                const Id<Save> save = recorder.save(tensor);
                if (save.valid()) saves_.push_back(save);
            }
        });
    }

    template <typename Use>
    void with_own_recorder(const Use& use) {
        active_recorder.with([&](Recorder& recorder) {
            if (recorder.generation() == generation_) use(recorder);
        });
    }

    uint64_t generation_;
    at::Tensor tensor_;
    std::optional<ChangeCheck> check_;
    c10::SmallVector<Id<Save>, 1> saves_;
};

/// Autograd asks torch's engine for the default hooks of each tensor that it saves. All else stays
/// the work of the engine that was there before: in Python that one knows Python's own hooks
/// (checkpoints, save_on_cpu), which come first, and it has the threads of the devices.
class HookingEngine final : public torch::autograd::Engine {
public:
    explicit HookingEngine(torch::autograd::Engine& before) : before_(&before) {}

    static torch::autograd::Engine& instance() { return *installed; }
    static void install() {
        if (installed != nullptr) return;
        // Never destroyed: threads may outlive main.
        installed = new HookingEngine(torch::autograd::Engine::get_default_engine());
        torch::autograd::set_default_engine_stub(&HookingEngine::instance);
    }

    std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks()
        override {
        if (auto hooks = before_->get_default_saved_variable_hooks()) return hooks;
        std::unique_ptr<SavedTensorHooks> hooks;
        active_recorder.with([&](const Recorder& recorder) {
            hooks = std::make_unique<SavedTensorHooks>(recorder);
        });
        return hooks;
    }
    torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                           const torch::autograd::variable_list& inputs,
                                           bool keep_graph, bool create_graph, bool accumulate_grad,
                                           const torch::autograd::edge_list& outputs) override {
        return before_->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    }
    c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
        const std::shared_ptr<torch::autograd::GraphTask>& graph_task,
        std::shared_ptr<torch::autograd::Node> graph_root,
        torch::autograd::InputBuffer&& input_buffer) override {
        return before_->execute_with_graph_task(graph_task, std::move(graph_root),
                                                std::move(input_buffer));
    }
    std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
        return before_->make_anomaly_metadata();
    }

private:
    inline static HookingEngine* installed = nullptr;
    torch::autograd::Engine* before_;
};

}  // namespace

void install_hook_engine() { HookingEngine::install(); }

void set_inner_tensors(InnerTensors of) { inner_tensors = of; }

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
